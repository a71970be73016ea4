"""Files as people have them, and as nobody should: a broken one is named with line, field and what to do."""

from __future__ import annotations

import gzip
import importlib.util
import io
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from geval_adapters import GEval, InputError, Sample, read_samples

NUMBERS = "9" * 5000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"output": "x", "id": ' + NUMBERS + "}", "f.jsonl:2: is not valid JSON: Exceeds the limit"),
        ('{"output": "x", "source": %s' % ("[" * 200_000), "f.jsonl:2: is not valid JSON: maximum recursion"),
        ('{"output": "x", "scores": "{bad"}', "f.jsonl:2: scores: is not valid JSON"),
        ('{"output": "x", "scores": [[1]]}', "must be a valid number, found [1]"),
        ('{"output": "x", "scores": {"a": {"b": 1}}}', "f.jsonl:2: scores: a: must be a valid number"),
        ('{"output": "x", "scores": {"a": 1e999}}', "f.jsonl:2: scores: a: must be a finite number, found inf"),
        ('{"output": "x", "scores": "much"}', "f.jsonl:2: scores: must be a valid number"),
        ('{"output": NaN}', "f.jsonl:2: no output (the columns are output)"),
        ('{"output": true}', "f.jsonl:2: output: must be text, found True"),
        ('{"output": "x", "source": {"deep": [1]}}', "f.jsonl:2: source: must be text"),
        ('{"output": "x", "id": ["1"]}', "f.jsonl:2: id: must be text"),
        ("7", "f.jsonl:2: expected an object"),
        ("[" * 200_000, "f.jsonl:2: is not valid JSON"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_by_line_and_field(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "f.jsonl"
    good = '{"output": "fine", "scores": {"coherence": 3, "fluency": null}}\n'
    file.write_text(good + text + "\n" + good)
    with pytest.raises(InputError) as error:
        list(read_samples(file))
    assert said in str(error.value)
    assert len(str(error.value)) < 500
    bad: list[str] = []
    assert len(list(read_samples(file, bad_rows=bad))) == 2
    assert len(bad) == 1


@pytest.mark.parametrize("damage", ["cut", "garbled", "checksum"])
def test_a_broken_gzip_file_is_named(tmp_path: Path, damage: str) -> None:
    packed = bytearray(gzip.compress(b'{"output": "x"}\n' * 500))
    if damage == "cut":
        packed = packed[:40]
    elif damage == "garbled":
        packed[30:34] = b"\xff\xff\xff\xff"
    else:
        packed[-6] ^= 0xFF
    file = tmp_path / "f.jsonl.gz"
    file.write_bytes(packed)
    with pytest.raises(InputError, match=r"f\.jsonl\.gz: "):
        list(read_samples(file))


@pytest.mark.parametrize(
    "given",
    [
        b'\xef\xbb\xbf{"output": "a, b", "input": "s"}\n{"output": "c", "input": "t"}\n',
        b'\r\n\r\n[{"output": "a, b", "input": "s"},\r\n{"output": "c", "input": "t"}]',
        b'\xef\xbb\xbfoutput,input\r\n"a, b",s\r\nc,t\r\n',
        b"output\tinput\na, b\ts\nc\tt\n",
        gzip.compress(b'input,output\ns,"a, b"\nt,c\n', mtime=0),
    ],
)
def test_standard_input_takes_what_files_hold(given: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    assert [(each.output, each.source) for each in read_samples("-")] == [("a, b", "s"), ("c", "t")]


def test_numbers_are_text_and_nan_is_nothing(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    file.write_text('{"output": 42, "source": NaN, "doc_id": 7, "system_id": 1.5, "scores": {"a": NaN, "b": "4.5"}}\n')
    assert list(read_samples(file)) == [
        Sample("42", id="7/1.5", doc_id="7", system_id="1.5", human={"b": 4.5}),
    ]


BOMB = "a: &a [x]\n" + "".join(
    f"{name}: &{name} [*{before}, *{before}]\n" for before, name in pairwise("abcdefghijklmnopqrstu")
)
"""A list of lists of lists … a million in all, if it were written out."""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: x\ndefinition: *nothing\n", "cannot be read as YAML"),
        ("a: " + "[" * 5000, "cannot be read as YAML"),
        ("criteria: [a, b]\n", "criteria: must be a mapping, found ['a', 'b']"),
        ("criteria: {a: [b]}\n", "criteria.a: must be a mapping"),
        ("5: 6\n", "5: Keys should be strings"),
        ("name: x\ndefinition: 7\nscale: 1-5\n", "definition: must be text, found 7"),
        ("name: x\ndefinition: y\nscale: 1-100000000\n", "scale: a scale has at most 1001 steps"),
        (f"name: x\ndefinition: y\nscale: {NUMBERS}\n", "cannot be read as YAML"),
        (f"name: x\ndefinition: y\nscale: 1-{NUMBERS}\n", "not a scale"),
        ("name: x\ndefinition: y\nscale: [1, .inf]\n", "must be finite"),
        ("name: x\ndefinition: y\nscale: {a: {b: c}, d: e}\n", "not a scale"),
        ("name: x\ndefinition: y\nscale: 1-5\nsteps: Read it.\n", "steps: must be a list, found 'Read it.'"),
        ("name: x\ndefinition: y\nscale: 1-5\nsteps: [Read: it]\n", "steps.0: must be text"),
        (f"{BOMB}definition: *u\nscale: 1-5\n", "is unknown; known: name, definition"),
    ],
)  # fmt: skip
def test_yaml_that_is_no_criterion_is_named_with_its_field(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        GEval(str(file), "openai/none")
    assert said in str(error.value)
    assert "c.yaml:" in str(error.value)
    assert len(str(error.value)) < 5000


@pytest.mark.skipif(importlib.util.find_spec("inspect_ai") is not None, reason="Inspect AI is installed")
def test_a_log_of_inspects_says_what_reads_it(geval):
    code, _, err = geval("score", "run.eval", "-c", "coherence", "-m", "openai/gpt-4o-mini")
    assert code == 2 and "pip install 'geval-adapters[inspect]'" in " ".join(err.split())
