"""`hf:OWNER/NAME[/CONFIG][:SPLIT]` as input: through `datasets`, on files that lie where it looks first."""

from __future__ import annotations

import json
import sys

import pytest
from conftest import Server

from geval_adapters import InputError, MissingPackageError, read_samples

ROWS = [{"said": f"Text {place}.", "asked": "Hm?", "id": f"r{place}"} for place in range(3)]


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """Data sets of an owner, below the folder that is worked in: one of one split, and one of two."""
    monkeypatch.chdir(tmp_path)
    for name, splits in {"one": ["train"], "two": ["train", "test"]}.items():
        for split in splits:
            file = tmp_path / "owner" / name / f"{split}.jsonl"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(json.dumps({**row, "split": split}) + "\n" for row in ROWS), encoding="utf-8")
    offline(monkeypatch)


def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(sys.modules["huggingface_hub.constants"], "HF_HUB_OFFLINE", True)


def test_a_data_set_is_rated_by_its_columns(hub, geval, server: Server):
    words = ("-c", "coherence", "-m", "openai/gpt-4o-mini", "--n", 1, "--readout", "samples", "--output", "out.jsonl")
    code, _, err = geval("score", "hf:owner/two:test", *words, "--field", "output=said", "--limit", 2)
    assert code == 0, err
    with open("out.jsonl", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    assert [(row["id"], row["output"], row["score"]) for row in rows] == [("r0", "Text 0.", 4), ("r1", "Text 1.", 4)]
    code, _, err = geval("score", "hf:owner/two:test", *words)
    assert (code, len(err.strip().splitlines())) == (2, 1)
    assert "hf:owner/two:test:1: no output (the columns are said, asked, id, split)" in err


def test_the_only_split_needs_no_name_and_others_are_listed(hub):
    assert [each.output for each in read_samples("hf:owner/one", columns={"output": "said"})] == [
        "Text 0.", "Text 1.", "Text 2.",
    ]  # fmt: skip
    for place, said in {
        "hf:owner/two": "hf:owner/two: has the splits train, test; say which, as in hf:owner/two:train",
        "hf:owner/two:dev": r"hf:owner/two:dev: .*dev.*train",
        "hf:owner/two/other:test": r"hf:owner/two/other:test: .*other.*default",
        "hf:two": "hf:two: write hf:OWNER/NAME",
        "hf:": "hf:: write hf:OWNER/NAME",
    }.items():
        with pytest.raises(InputError, match=said) as error:
            list(read_samples(place))
        assert "\n" not in str(error.value)


def test_what_cannot_be_reached_is_one_line(hub, geval, server: Server):
    code, _, err = geval("score", "hf:nobody/nothing:test", "-c", "coherence", "-m", "openai/gpt-4o-mini")
    assert code == 2
    assert err.strip().startswith("error: hf:nobody/nothing:test: Couldn't reach") and "\n" not in err.strip()
    assert server.requests == []


def test_a_gated_data_set_says_so(hub, monkeypatch):
    import datasets

    def load(*_: object, **__: object) -> None:
        raise datasets.exceptions.DatasetNotFoundError("Dataset 'a/b' is a gated dataset on the Hub.\nVisit the page.")

    monkeypatch.setattr(datasets, "load_dataset", load)
    with pytest.raises(InputError, match=r"^hf:a/b: Dataset 'a/b' is a gated dataset on the Hub\.$"):
        list(read_samples("hf:a/b"))


def test_meta_eval_reads_ratings_from_there(hub, geval, tmp_path):
    rows = [
        {"id": str(n), "doc_id": str(n % 8), "score": n % 5 + 1, "human": n % 4 + 1, "output": "x"} for n in range(24)
    ]
    file = tmp_path / "owner" / "judged" / "train.jsonl"
    file.parent.mkdir()
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    code, out, err = geval("meta-eval", "hf:owner/judged", "-c", "coherence", "--resamples", 0, "--json")
    assert code == 0, err
    assert '"hf:owner/judged"' in out


def test_without_datasets_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=r"datasets is not installed: pip install 'geval-adapters\[hub\]'"):
        list(read_samples("hf:owner/one"))


def test_a_row_of_the_hub_may_name_no_file_of_this_machine(hub, tmp_path):
    (tmp_path / "owner" / "secret.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    file = tmp_path / "owner" / "pictures" / "train.jsonl"
    file.parent.mkdir()
    row = {"output": [{"type": "image_url", "image_url": {"url": "secret.png"}}], "source": "Hm?"}
    file.write_text(json.dumps(row) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"secret\.png"):
        list(read_samples("hf:owner/pictures"))
