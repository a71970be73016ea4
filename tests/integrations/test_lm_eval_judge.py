"""The judge inside the harness: the metric and the filter `geval`, and the tasks that use them."""

from __future__ import annotations

import json
import math
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from harness import Scripted, evaluate, figures, needs_data
from lm_eval import simple_evaluate
from lm_eval.api.registry import get_metric, get_metric_aggregation, is_higher_better
from lm_eval.tasks import TaskManager

from geval_adapters import InputError
from lm_eval_geval import JudgeFilter, judging


class JudgeServer(ThreadingHTTPServer):
    """A judge behind the OpenAI protocol that rates by a rule, and remembers what it was asked."""

    daemon_threads = True

    def __init__(self, reply):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reply = reply
        self.asked = []
        self.busy = self.most_busy = 0
        self.lock = threading.Lock()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        with server.lock:
            server.asked.append(body)
            server.busy += 1
            server.most_busy = max(server.most_busy, server.busy)
        time.sleep(0.05)  # long enough for requests to meet
        with server.lock:
            server.busy -= 1
        choice = {"message": {"content": server.reply(body["messages"][0]["content"])}, "finish_reason": "stop"}
        answer = json.dumps({"choices": [choice] * body.get("n", 1)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format, *args):
        pass


@pytest.fixture
def served(monkeypatch):
    """A judge server: "good" in what is rated makes a 5, "silent" no rating, all else a 2."""

    def reply(prompt):
        return "Well." if "silent" in prompt else f"Rating: {5 if 'good' in prompt else 2}"

    server = JudgeServer(reply)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-key-but-long-enough")
    judging._judge.cache_clear()
    yield server
    server.shutdown()
    server.server_close()


def task_of(folder, task, rows):
    """Anybody's task: a YAML file, over rows in a JSON file."""
    data = folder / "rows.json"
    data.write_text("\n".join(json.dumps(row) for row in rows))
    head = f"""
task: own
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: generate_until
generation_kwargs: {{until: ["\\n"], max_gen_toks: 9}}
doc_to_text: question
"""
    (folder / "own.yaml").write_text(head + task)
    return TaskManager(include_path=str(folder), include_defaults=False)


def run(manager, reply):
    return simple_evaluate(Scripted(reply), tasks=["own"], task_manager=manager, bootstrap_iters=0)


METRIC = """
doc_to_target: question
metric_list:
  - metric: !function lm_eval_geval.geval
    criterion: relevance
    judge: openai/judge
    recipe: prompt_scoring
"""


def test_the_metric_is_the_mean_of_what_was_rated_and_counts_the_rest(served, tmp_path):
    manager = task_of(tmp_path, METRIC, [{"question": f"What is {n}?"} for n in range(40)])
    result = run(manager, lambda doc, repetition: "good" if "1" in doc["question"] else "silent")
    with_one = sum("1" in str(n) for n in range(40))
    assert figures(result, "own") == {"geval": 5.0, "geval_unrated": 1 - with_one / 40}
    assert result["higher_is_better"]["own"]["geval"]
    unrated = [s["geval"]["score_of"] for s in result["samples"]["own"] if "1" not in s["doc"]["question"]]
    assert {each["score"] for each in unrated} == {None}
    assert all("no rating in the reply" in each["error"] for each in unrated)
    assert all({"method", "coverage", "n_failed", "signature"} <= set(each) for each in unrated)


def test_without_a_single_rating_the_metric_is_no_number(served, tmp_path):
    manager = task_of(tmp_path, METRIC, [{"question": "What?"}])
    found = figures(run(manager, lambda doc, repetition: "silent"), "own")
    assert math.isnan(found["geval"]) and found["geval_unrated"] == 1


def test_the_whole_task_is_judged_at_once_within_bounds(served, tmp_path):
    manager = task_of(tmp_path, METRIC, [{"question": f"What is {n}?"} for n in range(60)])
    run(manager, lambda doc, repetition: "good")
    assert len(served.asked) == 60
    assert 4 < served.most_busy <= 16


def test_the_judge_sees_the_target_as_the_source(served, tmp_path):
    run(task_of(tmp_path, METRIC, [{"question": "Why is it dark?"}]), lambda doc, repetition: "good night")
    prompt = served.asked[0]["messages"][0]["content"]
    assert "<input>\nWhy is it dark?\n</input>" in prompt and "<output>\ngood night\n</output>" in prompt
    assert served.asked[0]["model"] == "judge"


def test_judge_criterion_and_recipe_come_from_the_environment(served, tmp_path, monkeypatch):
    monkeypatch.setenv("GEVAL_MODEL", "openai/from-environment")
    monkeypatch.setenv("GEVAL_CRITERION", "conciseness")
    monkeypatch.setenv("GEVAL_RECIPE", "prompt_scoring")
    bare = "doc_to_target: question\nmetric_list:\n  - metric: !function lm_eval_geval.geval\n"
    result = run(task_of(tmp_path, bare, [{"question": "Why?"}]), lambda doc, repetition: "good")
    assert served.asked[0]["model"] == "from-environment"
    rating = result["samples"]["own"][0]["geval"]["score_of"]
    assert rating["criterion"] == "conciseness"
    assert "form:score_only" in rating["signature"]


def test_no_criterion_is_a_clear_error(tmp_path, monkeypatch):
    monkeypatch.delenv("GEVAL_CRITERION", raising=False)
    bare = "doc_to_target: question\nmetric_list:\n  - metric: !function lm_eval_geval.geval\n"
    with pytest.raises(InputError, match=r"no criterion: name it in the task's YAML .*\$GEVAL_CRITERION"):
        run(task_of(tmp_path, bare, [{"question": "Why?"}]), lambda doc, repetition: "good")


FILTER = """
doc_to_target: ""
filter_list:
  - name: geval
    filter:
      - function: !function lm_eval_geval.JudgeFilter
        criterion: groundedness
        judge: openai/judge
        recipe: prompt_scoring
        source: "About {{topic}}: {{question}}"
        context: facts
metric_list:
  - metric: !function lm_eval_geval.geval
"""


def test_the_filter_lets_the_judge_see_any_column(served, tmp_path):
    row = {"question": "Why?", "topic": "night", "facts": "The sun is down."}
    result = run(task_of(tmp_path, FILTER, [row, row]), lambda doc, repetition: "good")
    assert figures(result, "own") == {"geval": 5.0, "geval_unrated": 0.0}
    prompt = served.asked[0]["messages"][0]["content"]
    assert "<context>\nThe sun is down.\n</context>" in prompt and "<input>\nAbout night: Why?\n</input>" in prompt
    assert len(served.asked) == 2
    assert result["samples"]["own"][0]["filtered_resps"][0][0]["score"] == 5


def test_metadata_sets_the_judge_of_a_task_whose_data_is_loaded_for_it(served, tmp_path):
    manager = task_of(tmp_path, FILTER, [{"question": "Why?", "topic": "night", "facts": "The sun is down."}])
    text = (
        (tmp_path / "own.yaml")
        .read_text()
        .replace(
            "dataset_path: json\ndataset_kwargs: {",
            "custom_dataset: !function lm_eval_geval.dataset\ndataset_kwargs: {path: json, ",
        )
    )
    (tmp_path / "own.yaml").write_text(text)
    metadata = {"judge": "openai/from-metadata", "pretrained": "other/things"}
    manager = TaskManager(include_path=str(tmp_path), include_defaults=False, metadata=metadata)
    run(manager, lambda doc, repetition: "good")
    assert served.asked[0]["model"] == "from-metadata"


def test_an_unknown_option_of_the_filter_is_refused():
    with pytest.raises(InputError, match="unknown option sauce"):
        JudgeFilter(criterion="fluency", sauce="article")


def test_the_metric_is_registered_with_the_harness():
    assert get_metric("geval") is judging.geval
    assert get_metric_aggregation("geval") is judging.geval_figure
    assert is_higher_better("geval") is True


# --- ready-made ------------------------------------------------------------------------------------------------------


@needs_data
def test_summaries_are_rated_by_four_criteria_and_written_once(served):
    written = []

    def reply(doc, repetition):
        written.append(doc["document"])
        return "A good summary." if len(written) <= 2 else "Bad."

    result = evaluate("summarization_geval", Scripted(reply), limit=4, judge="openai/judge", recipe="prompt_scoring")
    found = figures(result, "summarization_geval")
    # Articles may hold the word as well; the fluency of a summary is rated without its article.
    assert found["fluency"] == pytest.approx((5 + 5 + 2 + 2) / 4)
    assert set(found) == {"coherence", "consistency", "fluency", "relevance", "unrated"}
    assert found["unrated"] == 0
    assert len(written) == len(set(written)) == 4 and len(served.asked) == 16


def test_outputs_that_are_there_already_are_rated(served, tmp_path):
    file = tmp_path / "outputs.jsonl"
    rows = [
        {"output": "good", "source": "Why?"},
        {"output": "bad", "source": "Why?"},
        {"output": "silent", "source": "Why?"},
    ]
    file.write_text("\n".join(json.dumps(row) for row in rows))
    options = {"criterion": "relevance", "judge": "openai/judge", "recipe": "prompt_scoring"}
    result = evaluate("geval_outputs", "dummy", data=file, **options)
    assert figures(result, "geval_outputs") == {"geval": 3.5, "geval_unrated": pytest.approx(1 / 3)}


def test_without_a_file_of_outputs_the_error_says_what_to_do():
    manager = judged_manager()
    with pytest.raises(InputError, match=r"no file of outputs: name it with --metadata"):
        simple_evaluate("dummy", tasks=["geval_outputs"], task_manager=manager)


def judged_manager():
    from harness import TASKS

    return TaskManager(include_path=str(TASKS), include_defaults=False)
