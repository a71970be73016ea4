"""`geval score` against a server that does everything wrong, killed at random and begun again: what comes out of it.

    uv run python benchmarks/soak.py [--items N] [--through N] [--kills N] [--seed N]

A loopback server, another process, answers each item with a rating that follows from its text; but 13 in 100 requests
get a fault instead, of all kinds mixed: 429 with a good, a past, a negative and no number of seconds, 500, 503, no
answer in time, a connection that breaks, a redirect, floods plain and compressed, bodies that are no JSON, deep JSON,
responses without choices or of odd shapes, usage of odd shapes, and an error that echoes the request. It also takes
neither `temperature` nor more than five alternatives. `--items` go the direct way, `--through` through LiteLLM, 64 at
once; the command is killed (SIGKILL) `--kills` times on each way, and then run until it has written all rows.

The table: rows written, of which rated, missing or twice, and wrong; requests sent for one row; the resident set of the
last, undisturbed run at a quarter of it and at its end.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from answering import Answering, counts, http, serve, start
from throughput import KEY, MODEL, table

CONCURRENCY, FAULTS, LATENCY = 64, 0.13, 0.02


def rating(number: int) -> int:
    """What is right for an item."""
    return 1 + number * 7 % 5


# --- the server -------------------------------------------------------------------------------------------------------


def completion(number: int) -> dict[str, Any]:
    names = [f" {rating(number)}", *(f" {score}" for score in range(1, 6) if score != rating(number))]
    tops = [{"token": name, "logprob": -0.01 if place == 0 else -9.0 - place} for place, name in enumerate(names)]
    tokens = [{"token": text, "logprob": 0.0, "top_logprobs": []} for text in ("Rating", ":")]
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": f"Rating: {rating(number)}"},
        "logprobs": {"content": [*tokens, tops[0] | {"top_logprobs": tops}]},
    }
    usage = {"prompt_tokens": 100, "completion_tokens": 3, "total_tokens": 103}
    return {"id": "1", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice], "usage": usage}


def error(message: str) -> bytes:
    return json.dumps({"error": {"message": message}}).encode()


def faults(number: int, request: dict[str, Any]) -> list[bytes | float]:
    """Answers that are none; a number is seconds of silence, nothing a connection that breaks."""
    good, flood = completion(number), json.dumps({"choices": " " * 3_000_000}).encode()
    odd: list[Any] = [{}, [], {"choices": []}, {"choices": {}}, {"choices": [None]}, {"choices": [{"message": {}}]}]
    odd += [good | {"choices": [{"message": {"content": {"a": 1}}}]}, "text", None]
    odd_but_good = [good | {"usage": usage} for usage in (None, [], {"prompt_tokens": -1}, {"prompt_tokens": 10**400})]
    return [
        *(http(429, error("too many"), f"Retry-After: {told}") for told in ("0.05", "0", "-3", "nan", "soon")),
        *(http(status, error("try again")) for status in (500, 502, 503)),
        30.0,
        b"",
        http(200, json.dumps(good).encode())[:-20],
        http(307, b"", "Location: http://127.0.0.1:9/"),
        http(200, flood),
        http(200, gzip.compress(flood), "Content-Encoding: gzip"),
        http(200, b"["),
        http(200, b"[" * 50_000),
        *(http(200, json.dumps(each).encode()) for each in (*odd, *odd_but_good)),
        http(500, error(f"failed for {json.dumps(request)[:3000]}: temperature and logprobs are not supported")),
    ]


class Faulty(Answering):
    dice = random.Random(0)

    def answer(self, request: dict[str, Any], size: int) -> None:
        self.counts["requests"] += 1
        number = int(re.findall(r"Output (\d+):", json.dumps(request["messages"]))[-1])
        answer: bytes | float
        if "temperature" in request:
            self.counts["refused"] += 1
            answer = http(400, error("Unsupported parameter: 'temperature' is not supported with this model."))
        elif request.get("top_logprobs", 0) > 5:
            self.counts["refused"] += 1
            answer = http(400, error("'top_logprobs' must be less than or equal to 5"))
        elif self.dice.random() < FAULTS:
            self.counts["faults"] += 1
            answer = self.dice.choice(faults(number, request))
        else:
            answer = http(200, json.dumps(completion(number)).encode())
        if isinstance(answer, float):
            return
        asyncio.get_running_loop().call_later(LATENCY, self.send, answer)


# --- the command ------------------------------------------------------------------------------------------------------


class Soaked(NamedTuple):
    """What came of one way: figures as in the table."""

    rows: int
    rated: int
    missing: int
    twice: int
    wrong: int
    sent: int
    faults: int
    kills: int
    early: float
    late: float
    seconds: float


def resident(process: int) -> float:
    """Mebibytes of a process, 0 where it is gone or the system does not tell."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def soak(folder: Path, base: str, items: int, direct: bool, kills: int, dice: random.Random) -> Soaked:
    path, output = folder / "rows.jsonl", folder / "ratings.jsonl"
    output.unlink(missing_ok=True)
    with path.open("w") as file:
        for number in range(items):
            told = {"id": str(number), "source": f"Source {number // 16}.", "output": f"Output {number}: a text."}
            file.write(json.dumps(told) + "\n")
    command = [sys.executable, "-c", "from geval_adapters.cli import main; main()", "score", str(path)]
    command += ["--criterion", "summeval/coherence", "--model", f"openai/{MODEL}", "--concurrency", str(CONCURRENCY)]
    command += ["--timeout", "3", "--output", str(output), *([] if direct else ["--no-direct"])]
    environment = os.environ | {"OPENAI_API_BASE": base, "OPENAI_API_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    counts(base)
    began, killed, sizes = time.perf_counter(), 0, [0.0]
    stops = sorted(dice.randrange(items // 2) for _ in range(kills))
    while True:
        sizes = []
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            time.sleep(0.25)
            sizes.append(resident(process.pid))
            if killed < kills and lines(output) >= stops[killed]:
                process.send_signal(signal.SIGKILL)
                killed += 1
        if process.returncode == 0 or (process.returncode > 0 and killed >= kills and lines(output) >= items):
            break
        if time.perf_counter() - began > 1800:
            sys.exit(f"not done after half an hour: exit code {process.returncode}, {lines(output)} rows")
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    rated = [row for row in rows if row["score"] is not None]
    ids = Counter(row["id"] for row in rows)
    told = counts(base)
    sizes = [size for size in sizes if size] or [0.0]
    return Soaked(
        rows=len(rows),
        rated=len(rated),
        missing=items - len(ids),
        twice=sum(count > 1 for count in ids.values()),
        wrong=sum(abs(row["score"] - rating(int(row["id"]))) > 0.01 for row in rated),
        sent=told.get("requests", 0),
        faults=told.get("faults", 0),
        kills=killed,
        early=sizes[len(sizes) // 4],
        late=sizes[-1],
        seconds=time.perf_counter() - began,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="geval score under all faults at once")
    parser.add_argument("--items", type=int, default=14_000, help="by the direct route")
    parser.add_argument("--through", type=int, default=3_000, help="through LiteLLM")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)
    server, pipe = start(serve, Faulty)
    base = pipe.recv()
    rows = []
    for name, items in (("direct", arguments.items), ("LiteLLM", arguments.through)):
        with tempfile.TemporaryDirectory() as folder:
            came = soak(Path(folder), base, items, name == "direct", arguments.kills, dice)
        figures = (came.rows, came.rated, came.missing, came.twice, came.wrong, came.sent, came.faults, came.kills)
        sizes = f"{came.early:.0f} → {came.late:.0f}"
        needed = f"{came.sent / max(1, came.rows):.2f}"
        rows.append([name, f"{items:,}", *(f"{figure:,}" for figure in figures), needed, sizes, f"{came.seconds:.0f}"])
        print(*rows[-1], file=sys.stderr)
    server.terminate()
    head = ["", "items", "rows", "rated", "missing", "twice", "wrong", "sent", "faults", "kills"]
    table([*head, "sent / needed", "MiB", "seconds"], rows)


if __name__ == "__main__":
    main()
