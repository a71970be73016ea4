"""Threads, event loops and processes, mixed as users mix them: everything comes to an end, and nothing is lost."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from geval_adapters import Answer, GEval, Judge, JudgeError, Reply, Usage
from geval_adapters.judge import concurrently


class Plain(Judge):
    """Answers after a moment."""

    name = "plain"
    concurrency = 8
    pause = 0.003

    async def ask(self, messages, *, n=1, **_):
        await asyncio.sleep(self.pause)
        return self.answer(messages[0]["content"], n)

    def answer(self, prompt: str, n: int) -> Answer:
        steps = "Write the evaluation steps" in prompt
        return Answer([Reply("1. Read.\n2. Rate." if steps else "Rating: 4")] * n, Usage(requests=n))


class Cascading(Plain):
    """Asks another judge, by the call that is not asynchronous."""

    name = "cascading"

    async def ask(self, messages, *, n=1, **_):
        score = geval(Plain()).rate("Some text.").score
        return Answer([Reply(f"Rating: {score:g}")] * n, Usage(requests=n))


class CascadingInThread(Plain):
    name = "cascading-in-thread"

    async def ask(self, messages, *, n=1, **_):
        score = (await asyncio.to_thread(geval(Cascading()).rate, "Some text.")).score
        return Answer([Reply(f"Rating: {score:g}")] * n, Usage(requests=n))


def geval(judge: Judge, **options) -> GEval:
    return GEval("coherence", judge, n=1, readout="samples", **options)


def within(seconds: float, work):
    """What the work returns, if it ends in time."""
    results: list = []
    thread = threading.Thread(target=lambda: results.append(work()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert results, "it hangs, or failed"
    return results[0]


@pytest.mark.parametrize("judge", [Cascading(), CascadingInThread()], ids=lambda judge: judge.name)
def test_a_judge_may_ask_another_judge(judge: Judge):
    ratings = within(60, lambda: list(geval(judge).rate_many(["text"] * 24)))
    assert [rating.score for rating in ratings] == [4] * 24


def test_what_is_rated_may_come_from_ratings():
    first = geval(Plain())

    def chosen():
        yield from (f"text {i}" for i in range(24) if first.rate(f"text {i}").score == 4)
        yield from (rating.sample.output for rating in first.rate_many(["text"] * 24))

    assert within(60, lambda: len(list(first.rate_many(chosen())))) == 48


def test_an_iterator_that_is_given_up_may_be_collected_in_any_thread():
    class Collecting(Plain):
        asked = 0

        async def ask(self, messages, *, n=1, **_):
            if not self.asked % 8:
                gc.collect()
            self.asked += 1
            return await super().ask(messages, n=n)

    class Stuck(Plain):
        async def ask(self, messages, *, n=1, **_):
            await asyncio.sleep(1000)

    def work() -> int:
        for judge in (Plain(), Stuck(), Plain(), Stuck()):
            ratings = geval(judge).rate_many(["text"] * 500)
            if not isinstance(judge, Stuck):
                next(ratings)
            circle = [ratings]
            circle.append(circle)
            del ratings, circle
        return sum(rating.score == 4 for rating in geval(Collecting()).rate_many(["text"] * 24))

    assert within(60, work) == 24


def test_steps_are_written_while_calls_of_all_kinds_wait_for_them(monkeypatch, tmp_path):
    monkeypatch.setenv("GEVAL_CACHE", str(tmp_path))

    class Writing(Plain):
        pause = 0.05

    rater = geval(Writing(), steps="auto")

    async def both() -> list:
        waiting = asyncio.ensure_future(rater.arate("text"))
        await asyncio.sleep(0.01)
        return [rater.rate("text"), await waiting]  # the first blocks the loop that the second runs in

    ratings = within(60, lambda: asyncio.run(both()))
    threads = [threading.Thread(target=lambda: ratings.append(rater.rate("text"))) for _ in range(6)]
    threads += [threading.Thread(target=lambda: ratings.append(asyncio.run(rater.arate("text")))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(ratings) == 14
    assert len({str(rating.signature) for rating in ratings}) == 1


def test_steps_that_were_half_written_are_written_again(monkeypatch, tmp_path):
    monkeypatch.setenv("GEVAL_CACHE", str(tmp_path))
    assert geval(Plain()).write_steps() == ["Read.", "Rate."]
    (store,) = tmp_path.iterdir()
    store.write_text(store.read_text()[:20])
    assert geval(Plain()).write_steps() == ["Read.", "Rate."]
    assert [store] == list(tmp_path.iterdir())


@pytest.mark.parametrize("as_completed", [True, False])
def test_what_is_under_way_when_a_run_stops_is_waited_for(as_completed: bool):
    class Stopping(Plain):
        asked = 0

        async def ask(self, messages, *, n=1, **_):
            self.asked += 1
            if self.asked == 40:
                raise JudgeError("the key was withdrawn")
            return await super().ask(messages, n=n)

    judge, rated = Stopping(), []

    error = within(60, lambda: ended(geval(judge), map(str, range(200)), rated, as_completed))
    assert isinstance(error, JudgeError)
    assert 40 <= judge.asked <= 40 + 2 * judge.concurrency
    assert sum(rating.score is not None for rating in rated) == judge.asked - 1


def ended(rater: GEval, texts, rated: list, as_completed: bool = False) -> Exception | None:
    """The error that rating the texts ends with; ratings go into the list."""
    try:
        for rating in rater.rate_many(texts, as_completed=as_completed):
            rated.append(rating)
    except Exception as error:
        return error
    return None


def test_jobs_that_cannot_be_made_end_the_run_after_those_that_were_begun():
    async def job(number: int) -> int:
        await asyncio.sleep(0.01)
        return number

    def jobs():
        yield from map(job, range(30))
        raise OSError("the disk is gone")

    done = []

    async def work() -> None:
        async for result in concurrently(jobs(), 8, ordered=True):
            done.append(result)

    with pytest.raises(OSError, match="disk"):
        asyncio.run(work())
    assert done == list(range(30))


SCRIPT = """
    import os, sys
    sys.path.insert(0, {tests!r})
    from test_loops import Plain, geval
    class Stuck(Plain):
        asked = 0
        async def ask(self, messages, *, n=1, **_):
            Stuck.asked += 1
            if Stuck.asked > 30:
                self.pause = 1000
            return await super().ask(messages, n=n)
    rater = geval(Stuck())
    {body}
"""


def script(body: str) -> tuple[str, float]:
    code = textwrap.dedent(SCRIPT).format(tests=str(Path(__file__).parent), body=body)
    began = time.monotonic()
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert not ended.stderr, ended.stderr
    return ended.stdout, time.monotonic() - began


def test_a_script_ends_though_ratings_are_under_way():
    out, took = script("ratings = rater.rate_many(['text'] * 1000); print(next(ratings).score)")
    assert out == "4.0\n"
    assert took < 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_rates_on_its_own():
    body = "geval(Plain()).rate('text'); child = os.fork(); score = geval(Plain()).rate('text').score"
    many = "many = len(list(geval(Plain()).rate_many(['a'] * 24)))"
    told = "os.write(1, f'{score} {many}\\n'.encode())"  # in one piece: both processes write to the same pipe
    out, took = script(f"{body}; {many}; {told}; child and os.wait()")
    assert sorted(out.split()) == ["24", "24", "4.0", "4.0"]
    assert took < 30
