"""A draw of the corpus of replies (`benchmarks/reading.py`), and of what nobody would write (`reading_fuzz.py`)."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from reading import corpus
from reading_fuzz import fault_of, read_one

CASES = list(corpus(12))


@pytest.mark.parametrize("kind", dict.fromkeys(case.kind for case in CASES))
def test_what_judges_write_is_read_as_people_read_it(kind):
    misread = [case for case in CASES if case.kind == kind and case.outcome() != "read"]
    assert misread == []


def test_whatever_comes_is_read_or_refused_and_stays_within_bounds():
    rng = random.Random(7)
    for number in range(6000):
        given, reading, scale = read_one(number % 3, CASES, rng)
        assert fault_of(reading, scale) is None, (given, reading)
