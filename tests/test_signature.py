"""How a number is named: what is written is what is read, and differences are told in words."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geval_adapters import Comparer, Criterion, GEval, InputError, Scale, Signature

PARTS = st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), st.text(st.characters()), min_size=1)


@given(PARTS)
def test_a_signature_is_one_line_that_is_read_as_it_was_written(parts: dict[str, str]) -> None:
    signature = Signature(parts)
    line = str(signature)
    assert Signature.parse(line) == signature
    assert hash(Signature.parse(line)) == hash(signature)
    assert line.isprintable()
    assert not Signature.parse(line).differences(signature)


@given(PARTS, PARTS)
def test_signatures_are_equal_exactly_if_they_do_not_differ(one: dict[str, str], other: dict[str, str]) -> None:
    a, b = Signature(one), Signature(other)
    assert (a == b) == (not a.differences(b)) == (not b.differences(a))
    assert len(a.differences(b)) == sum(one.get(name) != other.get(name) for name in one | other)


def test_ordinary_signatures_look_as_they_always_did() -> None:
    line = "model:ollama/llama3:8b|criterion:summeval/coherence@1a2b3c4d|form:rate_explain+score_only|n:3-20@0.1"
    assert str(Signature.parse(line)) == line


@pytest.mark.parametrize("text", ["", "model", "model:a|b", "model:a|model:b", "a b:c", None, 7, "model:a|", "|"])
def test_what_is_no_signature_is_refused(text: object) -> None:
    with pytest.raises(InputError, match="not a signature"):
        Signature.parse(text)


def test_a_part_without_a_plain_name_is_refused() -> None:
    with pytest.raises(InputError, match="cannot be called 'a:b'"):
        Signature({"a:b": "c"})


def test_what_only_one_of_two_names_is_a_difference() -> None:
    one, other = Signature({"model": "a", "answered": "x"}), Signature({"model": "a"})
    assert one.differences(other) == ["answered is x there, unknown here"]
    assert other.differences(one) == ["answered is unknown there, x here"]


def test_names_that_hold_the_separators_stay_apart(server) -> None:  # type: ignore[no-untyped-def]
    strange = Criterion("tone|n:99 | a:b", "Is it polite?", Scale.of("1-5"))
    rating = GEval(strange, "openai/gpt-4o-mini:a|b", steps="none").rate("Thanks.")
    read = Signature.parse(rating.to_dict()["signature"])
    assert read == rating.signature == pickle.loads(pickle.dumps(rating.signature))
    assert read.parts["model"] == "openai/gpt-4o-mini:a|b"
    assert read.parts["criterion"].startswith("tone|n:99 | a:b@")
    assert read.parts["n"] == "20"


def test_ratings_and_comparisons_show_their_signature_in_the_same_way(server) -> None:  # type: ignore[no-untyped-def]
    rating = GEval("fluency", "openai/gpt-4o-mini").rate("Text.")
    verdict = Comparer("fluency", "openai/gpt-4o-mini").compare("One text.", "Another text.").there
    for result in (rating, verdict):
        assert isinstance(result.signature, Signature)
        assert result.to_dict()["signature"] == str(result.signature)
