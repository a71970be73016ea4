"""Text from outside does nothing: not to a terminal, not to a page, not to what a pipe can take."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Server, completion, refusal

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e[bold]<script>alert(1)</script>$\\frac{"
SIGNATURE = "model:a%1B%5B2J|n:1"
FORBIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def write(name: str, *rows: dict) -> None:
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def rated(score: float, name: str) -> dict:
    return {
        "id": f"{name}{EVIL}", "doc_id": f"{name}{EVIL}", "system_id": EVIL, "criterion": "coherence", "score": score,
        "human": score, "output": EVIL, "signature": SIGNATURE, "distribution": {}, "rationale": EVIL,
    }  # fmt: skip


def commands() -> list[tuple]:
    criterion = ("-c", "coherence")
    return [
        ("score", "in.jsonl", *criterion, "-m", f"openai/{EVIL.replace(chr(0x2028), '')}", "--html", "page.html"),
        ("score", "in.jsonl", *criterion, "-m", "openai/gpt-4o-mini", "--explain", "--html", "page.html"),
        ("score", "in.jsonl", "-c", EVIL, "-m", "openai/gpt-4o-mini"),
        ("score", f"none{EVIL}.jsonl", *criterion, "-m", "openai/gpt-4o-mini"),
        ("score", "in.jsonl", *criterion, "-m", "openai/gpt-4o-mini", "--field", f"output={EVIL}"),
        ("prompt", "coherence", "in.jsonl"),
        ("meta-eval", "old.jsonl", *criterion, "--html", "page.html"),
        ("compare", "old.jsonl", "new.jsonl", "--html", "page.html"),
        ("estimate", "old.jsonl", "--html", "page.html"),
    ]


@pytest.mark.parametrize("replies", ["evil", "refused"])
@pytest.mark.parametrize("place", range(9))
def test_no_escape_sequence_reaches_the_terminal_or_a_page(server: Server, geval, caplog, place: int, replies: str):
    def handler(request: dict) -> dict:
        if replies == "refused":
            raise refusal(400, EVIL)
        return completion(*[f"Rating: 4\nRationale: {EVIL}"] * request.get("n", 1))

    server.handler = handler
    write("in.jsonl", {"id": EVIL, "output": EVIL, "source": EVIL})
    write("old.jsonl", *(rated(1.0 + place % 4, str(place)) for place in range(8)))
    write("new.jsonl", *(rated(5.0 - place % 4, str(place)) for place in range(8)))
    _, out, err = geval(*commands()[place])
    assert not FORBIDDEN.findall(out + err)
    if Path("page.html").is_file():
        page = Path("page.html").read_text()
        assert not FORBIDDEN.findall(page)
        assert "<script>alert" not in page


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_pipe_that_lacks_a_character_takes_the_rest(server: Server, tmp_path: Path, encoding: str):
    server.handler = lambda request: completion("Rating: 4\nRationale: 好 → ± ρ")
    (tmp_path / "in.jsonl").write_text(json.dumps({"id": "好", "output": "τ-b → 好 ± \ud800"}) + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "geval_adapters", "score", "in.jsonl", "-c", "coherence", "-m", "openai/gpt-4o-mini",
         "--n", "1", "--readout", "samples", "--explain"],
        cwd=tmp_path, env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}, capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode(encoding, "replace")
    assert b"4.000" in done.stdout
    assert b"Traceback" not in done.stderr
