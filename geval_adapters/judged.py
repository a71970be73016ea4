"""One sample, several ratings: the parts of it that a criterion judges, each a sample of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .content import CUT_AT, Conversation, last_turn, turn_fields
from .criteria import Criterion
from .errors import InputError
from .samples import Sample

SEVERAL = ("each_turn", "each_context")
"""What makes several ratings of one sample."""


def judged(sample: Sample, criterion: Criterion) -> list[Sample]:
    """The parts of a sample that a criterion judges: itself, mostly; a part's only part is itself.

    A turn is called by the sample's id and the turn's number (`x#3`), a context likewise (`x#c2`). Their document is
    the sample's where it was named, else the sample itself, so that what is resampled is conversations and not turns.
    People's scores of the whole are not those of its parts.

    Raises:
        InputError: there is nothing to judge: no turn of the assistant's, no context, no output.

    >>> from geval_adapters.criteria import Criterion, Scale
    >>> from geval_adapters.samples import to_sample
    >>> each = Criterion("relevance", "Is it to the point?", Scale.of("1-5"), judges="each_turn")
    >>> said = [{"role": role, "content": "Hm."} for role in ("user", "assistant", "user", "assistant")]
    >>> [part.id for part in judged(to_sample({"id": "x", "messages": said}), each)]
    ['x#2', 'x#4']
    """
    if criterion.judges == "each_context":
        contexts = sample.contexts or ((sample.context,) if sample.context is not None else ())
        if not contexts and sample.lacks_output:
            raise InputError(f"sample {sample.id or '?'}: no context, which criterion {criterion.name!r} judges")
        return [
            _part(sample, f"c{number}", output=text, source=sample.source)
            for number, text in enumerate(contexts, start=1)
        ] or [sample]
    if sample.conversation is None:
        if sample.lacks_output:
            raise InputError(f"sample {sample.id or '?'}: no output, which criterion {criterion.name!r} judges")
        return [sample]
    return _of_conversation(sample, sample.conversation, criterion)


def _of_conversation(sample: Sample, conversation: Conversation, criterion: Criterion) -> list[Sample]:
    if criterion.judges == "conversation":
        whole = conversation.whole(criterion.cut_at)
        document = sample.doc_id if sample.own_doc_id else None
        told = {"source": None, "output": whole.text, "left_out": whole.left_out, "lacks_output": False}
        return [_changed(sample, told | {"doc_id": document, "conversation": None})]
    if not conversation.assistant:
        raise InputError(f"sample {sample.id or '?'}: no turn of the assistant's, which {criterion.name!r} judges")
    if criterion.judges == "last_turn":
        if criterion.cut_at == CUT_AT:
            return [sample]
        return [_changed(sample, last_turn(conversation, cut_at=criterion.cut_at) | {"conversation": None})]
    return [
        _part(sample, str(number), **turn_fields(conversation, number, cut_at=criterion.cut_at))
        for number in conversation.assistant
    ]


def _part(sample: Sample, name: str, **texts: Any) -> Sample:
    fields: dict[str, Any] = {
        "human": {},
        "annotators": {},
        "conversation": None,
        "contexts": (),
        "lacks_output": False,
    }
    if name.startswith("c"):
        fields["context"] = None
    document = sample.doc_id if sample.own_doc_id else sample.id or sample.doc_id
    return _changed(sample, fields | texts | {"id": f"{sample.id}#{name}", "doc_id": document})


def _changed(sample: Sample, fields: dict[str, Any]) -> Sample:
    return replace(sample, **fields)
