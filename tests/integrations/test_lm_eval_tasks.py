"""The rating tasks: the unmodified harness, with models that answer by a script."""

from __future__ import annotations

import gzip
import json
import logging
import math

import datasets
import pytest
from harness import DATA, Scripted, evaluate, figures, needs_data

from geval_adapters import InputError, load_criteria, read_text
from geval_adapters.agreement.levels import agreement
from geval_adapters.prompts import Prompt
from geval_adapters.reading import combine
from lm_eval_geval import data as loading
from lm_eval_geval.data import load

pytestmark = needs_data
FAMILIES = ("summeval", "topical_chat", "qags")
RANKED = {"summeval": "document_spearman", "topical_chat": "document_spearman", "qags": "dataset_spearman"}


def human_rating(doc, repetition):
    return f"Analysis: read.\nRating: {doc['human']}"


def human_distribution(doc, place):
    """Log-probabilities of the two neighbouring scores, so that their expectation is what people say."""
    scores = load_criteria()[doc["criterion"]].scale.values
    p = max(0.0, 1 - abs(doc["human"] - scores[place]))
    return math.log(p) if p else -100.0


def human_likelihood(doc, place):
    """A log-likelihood that grows with what people say; in whole numbers, so that dividing by bytes is exact."""
    return round(doc["human"] * 1000) * len(doc["output"].encode())


def perfect():
    return Scripted(human_rating)


# --- a judge that agrees with people ---------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("variant", ["", "_score_only", "_free_text", "_analyze_rate", "_logprobs", "_gptscore"])
def test_a_judge_that_says_what_people_say_agrees_with_them_fully(family, variant):
    likelihood = human_likelihood if variant == "_gptscore" else human_distribution
    group = f"{family}_geval{variant}"
    result = evaluate(group, Scripted(human_rating, likelihood), limit=48)
    found = figures(result, group)
    assert found[RANKED[family]] == pytest.approx(1)
    assert found["dataset_pearson"] == pytest.approx(1)
    assert found.get("unread", 0) == 0
    tasks = result["group_subtasks"][group]
    assert len(tasks) == sum(name.startswith(f"{family}/") for name in load_criteria())
    assert all(figures(result, task)[RANKED[family]] == pytest.approx(1) for task in tasks)


def test_all_twenty_samples_are_used():
    def reply(doc, repetition):  # nineteen say 1: the mean orders the items by the twentieth
        return f"Rating: {doc['human'] if repetition == 19 else 1}"

    result = evaluate("topical_chat_geval_n20_coherence", Scripted(reply), limit=60)
    assert figures(result, "topical_chat_geval_n20_coherence")["document_spearman"] == pytest.approx(1)
    sample = result["samples"]["topical_chat_geval_n20_coherence"][0]
    assert sample["filtered_resps"][0]["n_valid"] == 20
    assert sample["filtered_resps"][0]["score"] == pytest.approx((19 + sample["doc"]["human"]) / 20)


def test_samples_that_never_differ_are_called_out(caplog):
    with caplog.at_level(logging.WARNING):
        evaluate("qags_geval_n20", perfect(), limit=10)
    assert "the 20 replies to each item are all the same" in caplog.text


def test_the_samples_are_drawn_at_temperature_one_and_the_single_reply_greedily():
    seen = []

    class Spy(Scripted):
        def generate_until(self, requests, disable_tqdm=False):
            seen.append([request.args[1] for request in requests])
            return super().generate_until(requests)

    for task in ("qags_geval_n20", "qags_geval"):
        evaluate(task, Spy(human_rating), limit=2)
    sampled, greedy = seen
    assert len(sampled) == 40 and len(greedy) == 2
    assert all(sent["do_sample"] and sent["temperature"] == 1 for sent in sampled)
    assert not greedy[0]["do_sample"] and greedy[0]["max_gen_toks"] <= 16


def test_log_probabilities_give_the_expected_score_and_the_coverage():
    def likelihood(doc, place):  # half of the mass on the scale: .1 .1 .3
        return math.log((0.1, 0.1, 0.3)[place])

    result = evaluate("topical_chat_geval_logprobs_coherence", Scripted(None, likelihood), limit=6)
    sample = result["samples"]["topical_chat_geval_logprobs_coherence"][0]
    assert sample["coverage"]["score"] == pytest.approx((0.1 * 1 + 0.1 * 2 + 0.3 * 3) / 0.5)
    assert sample["coverage"]["distribution"] == pytest.approx({"1": 0.2, "2": 0.2, "3": 0.6})
    assert figures(result, "topical_chat_geval_logprobs_coherence")["coverage"] == pytest.approx(0.5)


def test_a_model_that_would_not_have_answered_with_a_score_is_called_out(caplog):
    with caplog.at_level(logging.WARNING):
        evaluate("qags_geval_logprobs", Scripted(None, lambda doc, place: -10.0 - place), limit=3)
    assert "coverage 6.21e-05" in caplog.text


def test_no_choice_is_the_beginning_of_another_and_the_prompt_ends_with_the_label():
    result = evaluate("summeval_geval_logprobs_coherence", Scripted(None, human_distribution), limit=1)
    contexts, continuations = zip(*result["samples"]["summeval_geval_logprobs_coherence"][0]["arguments"], strict=True)
    assert continuations == (" 1\n", " 2\n", " 3\n", " 4\n", " 5\n")
    assert all(context.endswith("\n\nRating:") for context in contexts)


# --- a judge that does not answer ------------------------------------------------------------------------------------


def test_nonsense_is_unread_and_never_a_score_of_zero():
    result = evaluate("topical_chat_geval", Scripted(lambda doc, repetition: "lol"), limit=12)
    found = figures(result, "topical_chat_geval")
    assert found["unread"] == 1
    assert math.isnan(found["document_spearman"]) and math.isnan(found["dataset_pearson"])
    for samples in result["samples"].values():
        assert all(sample["filtered_resps"][0]["score"] is None for sample in samples)
        assert all("no rating in the reply: lol" in sample["filtered_resps"][0]["error"] for sample in samples)


def test_what_was_read_counts_and_the_rest_is_counted():
    def reply(doc, repetition):  # a model of the harness may also return nothing at all
        return None if "?" in doc["output"] else human_rating(doc, repetition)

    result = evaluate("topical_chat_geval_coherence", Scripted(reply))
    found = figures(result, "topical_chat_geval_coherence")
    silent = sum("?" in sample.output for sample in load("topical_chat", DATA))
    assert 0 < silent < 360
    assert found["unread"] == pytest.approx(silent / 360)
    assert found["dataset_pearson"] == pytest.approx(1)


# --- the published replies -------------------------------------------------------------------------------------------

PUBLISHED = {  # dataset-level r, document-level tau
    "geval": {"nat": (0.393, 0.358), "coh": (0.468, 0.391), "eng": (0.549, 0.513), "gro": (0.319, 0.59)},
    "llm_eval_no_cot": {"nat": (0.464, 0.476), "coh": (0.524, 0.426), "eng": (0.611, 0.557), "gro": (0.563, 0.666)},
    "rate_explain": {"nat": (0.569, 0.512), "coh": (0.505, 0.425), "eng": (0.564, 0.509), "gro": (0.561, 0.663)},
}
FORMS = {"geval": "score_only", "llm_eval_no_cot": "free_text", "rate_explain": "rate_explain"}
NAMES = {"nat": "naturalness", "coh": "coherence", "eng": "engagingness", "gro": "groundedness"}


def published_replies(kind):
    """ChatGPT's twenty replies to each item, by criterion and item."""
    replies = {}
    for short, name in NAMES.items():
        with gzip.open(DATA / "responses" / f"topical_chat_gpt3.5_{short}_{kind}.json.gz", "rt") as file:
            for row in json.load(file):
                key = (f"topical_chat/{name}", row["source"], row["system_id"])
                replies[key] = row["all_responses"]
    return replies


@pytest.mark.parametrize("kind", PUBLISHED)
def test_the_published_replies_give_the_published_table(kind):
    replies = published_replies(kind)

    def reply(doc, repetition):
        given = replies.get((doc["criterion"], doc["source"], doc["system"]), [])
        return given[repetition] if repetition < len(given) else ""

    result = evaluate("topical_chat_geval_n20", Scripted(reply), form=FORMS[kind], off_grid="floor")
    for short, (pearson, kendall) in PUBLISHED[kind].items():
        found = figures(result, f"topical_chat_geval_n20_{NAMES[short]}")
        assert found["dataset_pearson"] == pytest.approx(pearson, abs=0.005), short
        assert found["document_kendall_b"] == pytest.approx(kendall, abs=0.005), short

    # The same replies without the harness between: every figure is the same number.
    criterion = load_criteria()["topical_chat/naturalness"]
    scores, humans, documents = [], [], []
    for sample in load("topical_chat", DATA):
        given = replies.get((criterion.name, sample.source, sample.system_id), [""])
        shown = (sample.source, sample.context, sample.output)
        read = [
            read_text(each, criterion.scale, FORMS[kind], criterion, off_grid="floor", shown=shown) for each in given
        ]
        scores.append(combine(read).score)
        humans.append(sample.human_score(criterion))
        documents.append(sample.doc_id)
    expected = agreement(scores, humans, documents)
    found = figures(result, "topical_chat_geval_n20_naturalness")
    for name, coefficient in (
        ("document_spearman", expected.document.spearman),
        ("document_kendall_b", expected.document.kendall_b),
        ("dataset_pearson", expected.dataset.pearson),
    ):
        assert found[name] == coefficient.value
        assert (found[f"{name}_low"], found[f"{name}_high"]) == (coefficient.low, coefficient.high)


# --- what the harness shows ------------------------------------------------------------------------------------------


def test_the_group_is_the_mean_over_its_criteria():
    def reply(doc, repetition):
        return f"Rating: {doc['human'] if doc['criterion'].endswith('fluency') else 6 - doc['human']}"

    result = evaluate("summeval_geval", Scripted(reply), limit=32)
    tasks = [figures(result, task)["document_spearman"] for task in result["group_subtasks"]["summeval_geval"]]
    assert sorted(tasks) == pytest.approx([-1, -1, -1, 1])
    assert figures(result, "summeval_geval")["document_spearman"] == pytest.approx(-0.5)


def test_the_log_of_samples_shows_score_reading_and_what_people_say():
    result = evaluate("summeval_geval_relevance", perfect(), limit=1)
    sample = json.loads(json.dumps(result["samples"]["summeval_geval_relevance"][0]))
    assert sample["filtered_resps"][0]["score"] == sample["doc"]["human"]
    assert sample["filtered_resps"][0]["n_valid"] == 1
    assert sample["document_spearman"]["human"] == sample["document_spearman"]["score"] == sample["doc"]["human"]


def test_higher_is_better_but_for_what_could_not_be_read():
    direction = evaluate("summeval_geval_relevance", perfect(), limit=1)["higher_is_better"]["summeval_geval_relevance"]
    assert {name for name, higher in direction.items() if not higher} == {"unread"}


def test_the_prompt_is_the_packages_own():
    result = evaluate("topical_chat_geval_engagingness", perfect(), limit=1)
    (context, _) = result["samples"]["topical_chat_geval_engagingness"][0]["arguments"][0]
    first = load("topical_chat", DATA)[0]
    assert context == Prompt(load_criteria()["topical_chat/engagingness"]).messages(first)[0]["content"]


def test_a_limit_that_cuts_a_document_is_said(caplog):
    with caplog.at_level(logging.WARNING):
        evaluate("summeval_geval_relevance", perfect(), limit=16)
        assert "incomplete" not in caplog.text
        evaluate("summeval_geval_relevance", perfect(), limit=20)
    assert "1 of 2 documents are incomplete" in caplog.text
    assert "up to 16" in caplog.text


# --- options ---------------------------------------------------------------------------------------------------------


def test_published_prompt_files_replace_the_wording(tmp_path):
    (tmp_path / "con_detailed.txt").write_text("Rate {{Summary}} against {{Document}}.\n- Consistency:")
    result = evaluate("qags_geval_score_only", perfect(), limit=1, prompt_dir=str(tmp_path))
    (context, _) = result["samples"]["qags_geval_score_only_consistency"][0]["arguments"][0]
    first = load("qags", DATA)[0]
    assert context == f"Rate {first.output} against {first.source}.\n- Consistency:"


def test_a_missing_prompt_file_is_named(tmp_path):
    (tmp_path / "coh_detailed.txt").write_text("{{Summary}}")
    with pytest.raises(InputError, match=r"expected one prompt file con\*\.txt for 'qags/consistency', found none"):
        evaluate("qags_geval", perfect(), limit=1, prompt_dir=str(tmp_path))


def test_an_unknown_policy_is_refused():
    with pytest.raises(InputError, match="known: keep, floor, reject"):
        evaluate("qags_geval", perfect(), limit=1, off_grid="round")


# --- the data --------------------------------------------------------------------------------------------------------


def hub_rows():
    """SummEval as the hub has it: a row for each article, other spacing and case, documents in another order."""
    articles = {}
    for sample in load("summeval", DATA):
        articles.setdefault(sample.doc_id, []).append(sample)
    for document, samples in sorted(articles.items(), reverse=True):
        scores = {
            name: [s.human[name] for s in samples[::-1]]
            for name in ("relevance", "coherence", "fluency", "consistency")
        }
        texts = {"machine_summaries": [f" {s.output.lower()}" for s in samples[::-1]], "human_summaries": ["one"] * 11}
        yield {"id": document, "text": samples[0].source, **texts, **scores}


@pytest.fixture(scope="module")
def hub():
    return datasets.Dataset.from_list(list(hub_rows()))


def same_items(found, expected):
    assert len(found) == len(expected) == 1600
    for one, other in zip(found, expected, strict=True):
        assert (one.doc_id, one.source, one.output.strip()) == (
            other.doc_id,
            other.source,
            other.output.lower().strip(),
        )
        assert one.human == other.human


def test_the_hub_has_the_same_items_in_the_same_order(hub, monkeypatch):
    asked = []
    monkeypatch.setattr(datasets, "load_dataset", lambda path, split: asked.append((path, split)) or hub)
    same_items(load("summeval"), load("summeval", DATA))
    assert asked == [("mteb/summeval", "test")]


def test_a_copy_of_the_hubs_file_has_the_same_items(hub, tmp_path):
    hub.to_parquet(str(tmp_path / "summeval.parquet"))
    same_items(load("summeval", tmp_path), load("summeval", DATA))


def test_a_public_file_has_the_same_items(monkeypatch):
    asked = []

    class Local:
        def download(self, url):
            asked.append(url)
            return str(DATA / "topical_chat.json")

    monkeypatch.setattr(datasets, "DownloadManager", Local)
    assert load("topical_chat") == load("topical_chat", DATA / "topical_chat.json")
    assert asked[0].endswith("/dialogue/topical_chat.json")


def test_documents_are_whole_and_follow_one_another():
    documents = [sample.doc_id for sample in load("topical_chat", DATA)]
    assert all(len(set(documents[start : start + 6])) == 1 for start in range(0, 360, 6))
    assert len(set(documents)) == 60


def test_no_data_is_a_clear_error(monkeypatch):
    def offline(*args, **options):
        raise ConnectionError("no route to host")

    monkeypatch.setattr(datasets, "load_dataset", offline)
    with pytest.raises(InputError, match=r"mteb/summeval cannot be had .*no route to host.*--metadata '{\"data\": "):
        load("summeval")


def test_a_folder_without_the_file_is_a_clear_error(tmp_path):
    with pytest.raises(InputError, match=r"expected one file qags\*\.json, found none"):
        load("qags", tmp_path)


def test_every_data_set_has_a_source():
    assert set(loading.SOURCES) == set(FAMILIES)
    assert all(source.address for source in loading.SOURCES.values())
