"""What people see: commands run in real pseudo-terminals of several widths."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from conftest import Server, completion

FOUR = [{"Rating": 1.0}, {":": 1.0}, {" 4": 0.75, " 5": 0.25}]
WIDTHS = [60, 80, 120]


def seen(width: int, *arguments: str, folder: Path) -> tuple[int, str]:
    """Exit code and what a terminal of that width shows of a command, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "geval_adapters", *arguments],
        cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env={**environment, "TERM": "xterm"}, close_fds=True,
    )  # fmt: skip
    os.close(theirs)
    out = b""
    while True:
        try:
            got = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not got:
            break
        out += got
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", out.decode())
    return process.wait(30), text.replace("\r\n", "\n")


def rating(id: str, score: float, human: float, **more: object) -> dict:
    usage = {"prompt_tokens": 1, "cached_tokens": 0, "completion_tokens": 1, "requests": 1, "cost": 0.0}
    row = {
        "id": id, "doc_id": id[0], "system_id": id[1:], "criterion": "coherence", "score": score, "human": human,
        "method": "logprobs", "n_valid": 1, "n_failed": 0, "output": "A short text.", "distribution": {}, "error": None,
        "usage": usage, "signature": "model:a|n:1",
    }  # fmt: skip
    return row | more


@pytest.mark.parametrize("width", WIDTHS)
def test_every_number_can_be_read_at_any_width(server: Server, tmp_path: Path, width: int):
    server.handler = lambda request: completion("Rating: 4", logprobs=FOUR)
    rows = [
        {"id": f"{place}-cnn-dailymail/T5-large", "source": f"Article {place}.", "output": "A long summary. " * 9}
        for place in (3, 1, 2)
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, text = seen(
        width, "score", "in.jsonl", "-c", "summeval/coherence", "-m", "openai/gpt-4o-mini", folder=tmp_path
    )
    assert code == 0
    lines = text.splitlines()
    assert max(len(line) for line in lines if "model:" not in line) <= width
    assert sum(bool(re.search(r"\b4\.25\b", line)) for line in lines) == 3  # a score in each row
    assert re.search(r"\b4\.250\b", text)  # their mean
    assert "300 (120) / 9" in text  # tokens
    assert re.findall(r"^(\d)-cnn.* 4\.25 ", text, re.MULTILINE) == ["3", "1", "2"]


@pytest.mark.parametrize("width", WIDTHS)
def test_intervals_can_be_read_at_any_width(tmp_path: Path, width: int):
    scores = [1.0, 2.5, 3.0, 2.0, 3.0, 2.0, 5.0, 4.5, 4.0, 2.0, 1.0, 2.0, 3.0, 4.0, 1.0, 2.0]
    human = [1.0, 2.0, 3.0, 2.0, 3.5, 1.0, 5.0, 4.0, 4.0, 1.0, 1.5, 2.0, 3.0, 3.0, 2.0, 1.0]
    ids = [f"{document}{system}" for document in "abcdefgh" for system in "xy"]
    name = "a-judge-with-a-name-that-is-too-long-for-any-terminal-of-today.jsonl"
    rows = [rating(*each) for each in zip(ids, scores, human, strict=True)]
    (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, wide = seen(300, "meta-eval", name, "-c", "coherence", folder=tmp_path)
    _, narrow = seen(width, "meta-eval", name, "-c", "coherence", folder=tmp_path)
    interval = r"-?\d\.\d{3} \[-?\d\.\d{3}, -?\d\.\d{3}\]"
    assert len(re.findall(interval, wide)) > 10
    assert sorted(re.findall(interval, narrow)) == sorted(re.findall(interval, wide))
    assert max(map(len, narrow.splitlines())) <= width


def test_reasons_are_shown_whole(server: Server, tmp_path: Path):
    reason = "It holds together, and each of its many sentences leads to the next one, as a reader would wish it."
    server.handler = lambda request: completion(f"Rating: 4\nRationale: {reason}", logprobs=FOUR)
    (tmp_path / "in.jsonl").write_text('{"id": "a", "output": "A text."}\n')
    _, text = seen(60, "score", "in.jsonl", "-c", "coherence", "-m", "openai/gpt-4o-mini", "--explain", folder=tmp_path)
    assert reason in " ".join(text.split())
