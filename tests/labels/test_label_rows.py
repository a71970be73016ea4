"""Labels of people: rows of ours, and files that people already have."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from geval_adapters import InputError
from geval_adapters.criteria import find_criterion
from geval_adapters.labels import Draw, Label, read_labels

COHERENCE = find_criterion("summeval/coherence")


def jsonl(path: Path, *rows: dict) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def table(path: Path, *rows: list) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def own(**fields: object) -> dict:
    label = Label.model_validate(
        {"id": "a", "criterion": COHERENCE.name, "criterion_hash": "x", "annotator": "ann"} | fields
    )
    return label.model_dump(mode="json")


def brief(labels: list[Label]) -> list[tuple]:
    return [(each.id, each.annotator, each.score) for each in labels]


def test_own_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    rows = [
        own(score=4, seconds=2.5, note="näh", marked=[("output", 0, 12)], wave=1, design="random", seed=3, doc_id="d"),
        own(id="b", skipped="cannot tell"),
        own(id="b", other="c", score=0.5, swapped=True),
        own(score=3, repeat=1),
        own(score=5, annotator="ben"),
    ]
    assert [each.model_dump(mode="json") for each in read_labels(jsonl(tmp_path / "l.jsonl", *rows), COHERENCE)] == rows


def test_a_correction_takes_the_place_of_what_it_corrects(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path / "l.jsonl", own(score=4), own(id="b", score=1), own(score=2), own(id="b", skipped="bad item")
    )
    assert brief(read_labels(path)) == [("a", "ann", 2.0), ("b", "ann", None)]


def test_a_wave_cut_short_scales_its_probabilities(tmp_path: Path) -> None:
    first = {"wave": 1, "design": "active", "probability": 0.5}
    second = {"wave": 2, "design": "active", "probability": 0.9}
    rows = [
        own(id="a", score=1, draw=Draw(weight=1, before=0, rate=0.25, queued=2), **first),
        own(id="b", skipped="cannot tell", draw=Draw(weight=2, before=0, rate=0.25, queued=2), **first),
    ]
    whole = read_labels(jsonl(tmp_path / "l.jsonl", *rows))
    assert [each.probability for each in whole] == [0.25, 0.5]
    cut = read_labels(jsonl(tmp_path / "l.jsonl", rows[0]))
    assert [each.probability for each in cut] == [0.125]
    more = own(id="c", score=2, draw=Draw(weight=1, before=0.25, rate=0.75, queued=4), **second)
    # a quarter of the second wave was shown: .25 + ¼ (.75 - .25) and .5 + ¼ (1 - .5)
    again = read_labels(jsonl(tmp_path / "l.jsonl", *rows, more))
    assert [each.probability for each in again] == [0.375, 0.625, 0.375]


def test_a_column_of_scores(tmp_path: Path) -> None:
    path = table(tmp_path / "l.csv", ["id", "mine"], ["x", 3], ["y", ""], ["z", 3.5])
    assert brief(read_labels(path, COHERENCE, columns={"score": "mine"})) == [("x", "1", 3.0), ("z", "1", 3.5)]


def test_long_form_with_repeats_and_criteria(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path / "l.jsonl",
        {"id": "x", "worker": "w1", "criterion": "coherence", "score": 3},
        {"id": "x", "worker": "w2", "criterion": "coherence", "score": "4"},
        {"id": "x", "worker": "w1", "criterion": "coherence", "score": 2},
        {"id": "x", "worker": "w1", "criterion": "fluency", "score": 5},
    )
    labels = read_labels(path, COHERENCE)
    assert brief(labels) == [("x", "w1", 3.0), ("x", "w2", 4.0), ("x", "w1", 2.0)]
    assert [each.repeat for each in labels] == [0, 0, 1]
    assert {each.criterion for each in labels} == {"summeval/coherence"}


def test_unnamed_annotators_are_told_apart(tmp_path: Path) -> None:
    path = table(tmp_path / "l.csv", ["doc_id", "system_id", "score"], ["d", "s", 1], ["d", "s", 2], ["e", "s", 3])
    assert brief(read_labels(path)) == [("d/s", "1", 1.0), ("d/s", "2", 2.0), ("e/s", "1", 3.0)]


def test_wide_form(tmp_path: Path) -> None:
    path = table(tmp_path / "l.csv", ["id", "ann", "ben"], ["x", 1, 2], ["y", "", 3])
    assert brief(read_labels(path, columns={"score": "ann,ben"})) == [
        ("x", "ann", 1.0),
        ("x", "ben", 2.0),
        ("y", "ben", 3.0),
    ]
    with pytest.raises(InputError, match="no column 'bob' for score; there are ann, ben, id"):
        read_labels(path, columns={"score": "ann,bob"})


def test_a_list_of_annotators_each_with_several_criteria(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "l.jsonl", {"id": "x", "expert": [{"coherence": 1, "fluency": 5}, {"coherence": 2}]})
    assert brief(read_labels(path, COHERENCE, columns={"score": "expert"})) == [("x", "1", 1.0), ("x", "2", 2.0)]
    everything = read_labels(path, columns={"score": "expert"})
    assert [(each.criterion, each.score) for each in everything] == [("coherence", 1), ("fluency", 5), ("coherence", 2)]


def test_a_judges_ratings_are_no_labels(tmp_path: Path) -> None:
    row = {"id": "x", "criterion": COHERENCE.name, "score": 4.8, "signature": "model:m", "human": 2.0}
    assert brief(read_labels(jsonl(tmp_path / "r.jsonl", row), COHERENCE)) == [("x", "1", 2.0)]
    with pytest.raises(InputError, match="holds no labels"):
        read_labels(jsonl(tmp_path / "r.jsonl", row | {"human": None}), COHERENCE)


def test_parquet(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(
        arrow.table({"id": ["x", "y"], "ann": [1.0, float("nan")], "ben": [2, 3]}), tmp_path / "l.parquet"
    )
    labels = read_labels(tmp_path / "l.parquet", columns={"score": "ann,ben"})
    assert brief(labels) == [("x", "ann", 1.0), ("x", "ben", 2.0), ("y", "ben", 3.0)]


def test_words_of_the_scale_are_scores(tmp_path: Path) -> None:
    yes_no = find_criterion("Is the reply polite?", scale="0-1")
    path = table(tmp_path / "l.csv", ["id", "label"], ["x", "Yes"], ["y", "no"])
    assert brief(read_labels(path, yes_no)) == [("x", "1", 1.0), ("y", "1", 0.0)]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"id": "x", "label": 9}, r"l.jsonl:1: score 9 is not on the scale of summeval/coherence \(1-5\)"),
        ({"id": "x", "label": "good"}, "l.jsonl:1: score: .*valid number.*'good'"),
        ({"id": "x", "label": "nan"}, "l.jsonl:1: score: .*finite number"),
        ({"id": "x", "annotator": "a", "probability": 0, "label": 3}, "l.jsonl:1: probability: .*greater than 0"),
        ({"annotator": "a", "label": 3}, "l.jsonl:1: no id; name the column with --field id=COLUMN"),
        ({"id": "x", "criterion": "fluency", "label": 3}, "holds no labels of 'summeval/coherence', but of fluency"),
        ({"id": "x", "text": "?"}, "holds no labels of .* looked for a score in scores, human, label, score"),
        (own(score=None, skipped="?") | {"skipped": ""}, "l.jsonl:1: a label has a score, or says in skipped why"),
        (own(score=2) | {"skipped": "bad item"}, "l.jsonl:1: a label has a score or was skipped, not both"),
        (own(score=1, other="b") | {"score": 2}, "the score of a pair"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_told_with_file_line_and_field(tmp_path: Path, row: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_labels(jsonl(tmp_path / "l.jsonl", row), COHERENCE)


def test_an_unknown_field_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown field rating; a label has id,"):
        read_labels(jsonl(tmp_path / "l.jsonl", own(score=1)), columns={"rating": "x"})
