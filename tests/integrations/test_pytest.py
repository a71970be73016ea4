"""The pytest plugin, run by pytest itself: what passes, what fails and how it says so, and what is kept."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from conftest import KEY, Server, completion, refusal

from geval_adapters import GEval, LiteLLMJudge
from geval_adapters.report import mean_of

pytest_plugins = ["pytester"]

MODEL = "--geval-model=openai/gpt-4o-mini"
TWO = """
    def test_good(geval):
        rating = geval.assert_at_least("A good text.", 4, criterion="coherence")
        assert rating.score == 4

    def test_bad(geval):
        geval.assert_at_least("A bad text.", 4, criterion="coherence", source="Its source.")
"""


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """All that a rating imports: what a run in this process imports first, it throws away again, and comes back new."""
    started = Server()
    judge = LiteLLMJudge("openai/gpt-4o-mini", api_base=started.base, api_key=KEY, retries=0)
    rating = GEval("coherence", judge, readout="samples", n=2).rate("A text.")
    mean_of([rating.to_dict()] * 6)
    importlib.import_module("pytest_geval.asserting")
    importlib.import_module("pytest_geval.summary")
    importlib.import_module("scipy.special")
    started.close()


@pytest.fixture(autouse=True)
def judge(server: Server) -> Server:
    """Rates a bad text 2 or 3, an odd one not at all, any other 4."""

    def handler(request: dict) -> dict:
        told = request["messages"][0]["content"]
        if "odd text" in told:
            return completion("I would rather not say.")
        if "bad text" in told:
            rest = "\nRationale: It breaks off.\x1b[31m"
            step = [{"Rating": 1.0}, {":": 1.0}, {" 2": 0.6, " 3": 0.4}, {rest: 1.0}]
            return completion(f"Rating: 2{rest}", logprobs=step)
        return completion("Rating: 4", logprobs=[{"Rating": 1.0}, {":": 1.0}, {" 4": 1.0}])

    server.handler = handler
    return server


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """A run of pytest in this process, on a file with these tests; without other people's plugins, which are slow."""

    def run(tests: str, *arguments: str) -> pytest.RunResult:
        pytester.makepyfile(tests)
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        return pytester.runpytest_inprocess("-p", "pytest_geval.plugin", *arguments)

    return run


def test_a_low_rating_fails_and_says_why(run):
    result = run(TWO, MODEL)
    result.assert_outcomes(passed=1, failed=1)
    said = result.stdout.str()
    for line in (
        "E   *AssertionError: coherence: 2.4 is under 4",
        "E   *rating * 2.4 on 1-5, 2.4 to 2.4",
        "E   *distribution * 2: 60%, 3: 40%",
        "E   *method * logprobs, n 1, coverage 1.00",
        "E   *reason * It breaks off.*",
        "E   *judged * A bad text.",
        "E   *source * Its source.",
        "E   *signature * model:openai/gpt-4o-mini|criterion:*",
    ):
        result.stdout.fnmatch_lines([line])
    assert "\x1b[31m" not in said
    assert "asserting.py" not in said, "the message stands at the user's own line"
    result.stdout.re_match_lines(
        [r"=+ geval =+", r".*::test_good +coherence +4\.00 .*reached", r".*::test_bad .*under"]
    )


def test_what_is_not_rated_is_an_error_and_no_low_score(run):
    result = run(
        """
        import pytest
        from pytest_geval import RatingError

        def test_odd(geval):
            geval.assert_at_least("An odd text.", 1, criterion="coherence", n=2)

        def test_only_rated(geval):
            geval.rate("An odd text.", criterion="coherence", n=2)

        @pytest.mark.xfail(raises=AssertionError)
        def test_expected_to_be_low(geval):
            geval.assert_at_least("An odd text.", 1, criterion="coherence", n=2)

        def test_can_be_caught(geval):
            with pytest.raises(RatingError) as error:
                geval.rate("An odd text.", criterion="coherence", n=2)
            assert error.value.ratings[0].n_failed == 2
        """,
        MODEL,
    )
    result.assert_outcomes(failed=3, passed=1)
    result.stdout.fnmatch_lines(["E   *RatingError: coherence was not rated", "E   *reply * I would rather not say."])
    result.stdout.fnmatch_lines(["*::test_odd * coherence * not rated*"])


def test_a_judge_that_cannot_be_asked_is_an_error(run, judge: Server):
    def handler(request: dict) -> dict:
        raise refusal(401, f"bad key {KEY}")

    judge.handler = handler
    result = run(TWO, MODEL)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["E   *JudgeError: openai/gpt-4o-mini: *"])
    assert "client.py" not in result.stdout.str()
    assert KEY not in result.stdout.str()


def test_what_a_provider_says_does_nothing_to_a_terminal(run, judge: Server):
    def handler(request: dict) -> dict:
        raise refusal(401, "bad key \x1b[31m\x1b]0;owned\x07")

    judge.handler = handler
    result = run(TWO, MODEL)
    result.assert_outcomes(failed=2)
    assert "owned" in result.stdout.str()
    assert not {"\x1b", "\x07"} & {*result.stdout.str()}


def test_several_criteria_each_have_their_row_and_their_property(run, pytester, judge: Server):
    result = run(
        """
        def test_both(geval, record_property):
            for criterion in ("coherence", "fluency", "coherence"):
                geval.assert_at_least("A text.", 4, criterion=criterion)
            record_property("other", 1)
        """,
        MODEL,
        "--junitxml=out.xml",
    )
    result.assert_outcomes(passed=1)
    assert len(judge.requests) == 2, "what is rated twice is asked about once"
    told = {
        each.attrib["name"]: each.attrib["value"]
        for each in ElementTree.parse(pytester.path / "out.xml").iter("property")
    }
    assert set(told) == {"geval coherence", "geval fluency", "other"}
    rating = json.loads(told["geval fluency"])
    assert (rating["score"], rating["at_least"], rating["method"], rating["n_failed"]) == (4.0, 4, "logprobs", 0)
    assert rating["signature"].startswith("model:openai/gpt-4o-mini|criterion:")
    result.stdout.fnmatch_lines(["2 requests to the judge, $0.*"])


def test_properties_of_other_peoples_tests_are_theirs(run):
    result = run(
        """
        def test_theirs(record_property):
            record_property("geval score", 3)
            record_property("geval note", "not of ours")
            record_property("geval table", {"a": 1})
        """
    )
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*requests to the judge*")


def test_ratings_are_kept_for_later_runs_and_offline_takes_those_alone(run, judge: Server, monkeypatch):
    run(TWO, MODEL).assert_outcomes(passed=1, failed=1)
    asked = len(judge.requests)
    monkeypatch.delenv("OPENAI_API_KEY")
    result = run(TWO, MODEL, "--geval-offline")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["2 replies from the cache, 0 requests to the judge, free"])
    new = TWO.replace("A good text.", "A new text.")
    result = run(new, MODEL, "--geval-offline")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*none of the replies to this question are kept*run once without --geval-offline*"])
    assert len(judge.requests) == asked
    run(TWO, MODEL, "--cache-clear", "--geval-offline").assert_outcomes(failed=2)


def test_what_is_kept_does_not_depend_on_which_tests_ran_before(run, judge: Server):
    """A judge that turns out to give no log-probabilities is asked each question alike, first or last."""
    judge.handler = lambda request: completion(*["Rating: 4"] * request.get("n", 1))
    result = run(TWO + "\n        assert False", MODEL)
    result.assert_outcomes(passed=1, failed=1)
    assert result.stdout.str().count("gives no log-probabilities") == 0, "it was said in the test before"
    run(TWO, MODEL, "--geval-offline", "-k", "bad").assert_outcomes(passed=1, deselected=1)


def test_a_threshold_inside_the_interval_is_said_to_be_close(run, judge: Server, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")

    def handler(request: dict) -> dict:
        return completion(*[f"Rating: {3 + place % 2}" for place in range(request.get("n", 1))])

    judge.handler = handler
    result = run(
        """
        def test_close(geval):
            geval.assert_at_least("A text.", 3.6, criterion="coherence", readout="samples", n=8)

        def test_not_close(geval):
            geval.assert_at_least("A text.", 4.5, criterion="coherence", readout="samples", n=8)

        def test_close_but_reached(geval):
            geval.assert_at_least("A text.", 3.4, criterion="coherence", readout="samples", n=8)

        def test_single(geval):
            geval.assert_at_least("A text.", 4.5, criterion="coherence", readout="samples", n=1)
        """,
        MODEL,
    )
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(["E   *3.5 ± 0.19 on 1-5, 3.05 to 3.95; 3.6 lies within that"])
    result.stdout.fnmatch_lines(["E   *3.5 ± 0.19 on 1-5, 3.05 to 3.95"])
    result.stdout.fnmatch_lines(["E   *3 on 1-5, no error bar: one reply was read"])
    result.stdout.fnmatch_lines(["*test_close * under 3.6 ~", "*test_close_but_reached * reached 3.4 ~"])


def test_a_mean_fails_with_its_interval_and_has_no_value_where_one_is_not_rated(run):
    result = run(
        """
        TEXTS = [{"output": f"A {kind} text {place}.", "source": str(place)}
                 for place, kind in enumerate(["bad", "good"] * 4)]

        def test_mean(geval):
            assert len(geval.assert_mean_at_least(TEXTS, 3, criterion="coherence")) == 8

        def test_low_mean(geval):
            geval.assert_mean_at_least(TEXTS, 3.5, criterion="coherence")

        def test_one_is_missing(geval):
            geval.assert_mean_at_least([*TEXTS, "An odd text."], 1, criterion="coherence", n=1)

        def test_nothing(geval):
            geval.assert_mean_at_least([], 1, criterion="coherence")
        """,
        MODEL,
    )
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(
        [
            "E   *coherence: 3.2 is under 3.5",
            "E   *mean * 3.2 of 8 on 1-5, * lies within that",
            "E   *lowest 1 * 2.4: A bad text 0. (It breaks off.*",
            "E   *RatingError: coherence was not rated (1 of 9 outputs)",
            "E   *RatingError: there are no outputs to rate",
        ]
    )


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ('geval.rate("A text.")', "no criterion: say by what"),
        ('geval.rate("A text.", criterion="coherence", sauce="x")', "unknown setting sauce"),
        ('geval.rate("A text.", criterion="cohrence")', "unknown criterion 'cohrence'"),
        ('geval.rate("A text.", criterion="summeval/consistency")', "source"),
        ('geval.assert_at_least("A text.", 80, criterion="coherence")', "80 is not on the scale of coherence, 1-5"),
    ],
)
def test_what_cannot_be_asked_is_said(run, call, said):
    result = run(f"def test(geval):\n    {call}", MODEL)
    result.assert_outcomes(failed=1)
    assert re.search(rf"E .*InputError: .*{re.escape(said)}", result.stdout.str())
    assert "geval_adapters/" not in result.stdout.str(), "the message says all"


def test_each_turn_of_a_conversation_counts(run):
    result = run(
        """
        from geval_adapters import Criterion, Scale

        TURNS = Criterion("relevance", "Is it to the point?", Scale.of("1-5"), judges="each_turn")
        SAID = {"messages": [{"role": role, "content": text} for role, text in
                             [("user", "Hm?"), ("assistant", "A bad text."), ("user", "So?"), ("assistant", "Well.")]]}

        def test_turns(geval):
            ratings = geval.assert_mean_at_least([SAID], 3, criterion=TURNS)
            assert [round(each.score, 3) for each in ratings] == [2.4, 4]

        def test_several_are_no_single_rating(geval):
            geval.assert_at_least(SAID, 3, criterion=TURNS)
        """,
        MODEL,
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["E   *relevance makes 2 ratings of this sample: use assert_mean_at_least*"])


def test_outputs_of_one_mean_share_requests_where_the_recipe_says_so(run, judge: Server):
    def handler(request: dict) -> dict:
        told = request["messages"][0]["content"]
        shown = len(re.findall(r"<output_\d+>\n", told))
        return completion("\n".join(f"Output {place + 1}: 4" for place in range(shown)))

    judge.handler = handler
    result = run(
        """
        def test_mean(geval):
            texts = [f"Text {place}." for place in range(6)]
            geval.assert_mean_at_least(texts, 4, criterion="coherence", per_request=3, rounds=1, readout="samples",
                                       explain=False)
        """,
        MODEL,
    )
    result.assert_outcomes(passed=1)
    assert len(judge.requests) == 2


def test_the_page_of_the_docs_shows_what_runs(run, pytester):
    page = (Path(__file__).parents[2] / "docs" / "pytest.md").read_text(encoding="utf-8")
    conftest, tests = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    pytester.makeconftest(conftest)
    run(tests, MODEL).assert_outcomes(passed=3)


def test_settings_come_from_the_command_line_then_conftest_then_the_ini_file(run, pytester, judge: Server):
    pytester.makeini("[pytest]\ngeval_model = openai/from-ini\ngeval_cache = kept\n")
    test = 'def test(geval):\n    geval.rate("A text.")'
    settings = "import pytest\n@pytest.fixture\ndef geval_settings():\n    return {}"
    pytester.makeconftest(settings.format('{"criterion": "fluency", "explain": False}'))
    run(test).assert_outcomes(passed=1)
    assert (pytester.path / "kept" / "replies.sqlite").is_file()
    assert judge.requests[-1]["stop"]
    pytester.makeconftest(settings.format('{"criterion": "fluency", "model": "openai/from-conftest"}'))
    run(test).assert_outcomes(passed=1)
    run(test, MODEL).assert_outcomes(passed=1)
    assert [each["model"] for each in judge.requests] == ["from-ini", "from-conftest", "gpt-4o-mini"]


def test_without_a_judge_it_says_how_to_name_one(run):
    result = run(TWO)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["E   *InputError: no judge: name one with --geval-model*"])
    assert (
        "--geval-offline needs a --geval-cache"
        in run(TWO, MODEL, "--geval-offline", "-p", "no:cacheprovider").stdout.str()
    )


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_table_keeps_its_numbers_at_any_width(run, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    said = run(TWO, MODEL).stdout.str().rpartition(" geval ")[2].splitlines()
    table = [line for line in said[: said.index(next(x for x in said if "requests" in x))]]
    assert max(map(len, table[1:])) <= columns
    assert any("2.40" in line for line in table)


@pytest.mark.heavy
def test_workers_of_xdist_share_the_cache_and_tell_one_summary(pytester, judge: Server, monkeypatch):
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("place", range(12))
        def test(geval, place):
            geval.assert_at_least(f"Text {place}.", 4, criterion="coherence")
        """
    )
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    result = pytester.runpytest_subprocess(MODEL, "-n2", "-p", "xdist", "-p", "pytest_geval.plugin")
    result.assert_outcomes(passed=12)
    assert len(judge.requests) == 12
    assert len(re.findall(r"::test\[\d+\] +coherence +4\.00", result.stdout.str())) == 12
    result = pytester.runpytest_inprocess(MODEL, "--geval-offline", "-p", "pytest_geval.plugin")
    result.assert_outcomes(passed=12)
    result.stdout.fnmatch_lines(["12 replies from the cache, 0 requests to the judge, free"])


def test_pytest_finds_the_plugin_by_itself(pytester):
    result = pytester.runpytest_inprocess("--fixtures", "-p", "no:hypothesispytest", "-p", "no:langsmith_plugin")
    result.stdout.fnmatch_lines(["plugins: *geval-adapters-*", "geval -- *"])


def test_the_start_of_pytest_imports_nothing_of_ours():
    code = "import sys, pytest_geval.plugin; sys.exit('geval_adapters' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
