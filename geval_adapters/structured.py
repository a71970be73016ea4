"""The JSON schema of an answer, for judges that can be held to one."""

from __future__ import annotations

from typing import Any

from .criteria import Scale


def answer_schema(scale: Scale) -> dict[str, Any]:
    """The schema of `{"score": …, "reason": …}`: the score first, so that it is not argued for.

    >>> answer_schema(Scale.of("1-5"))["properties"]["score"]
    {'type': 'integer', 'minimum': 1, 'maximum': 5}
    """
    properties = {"score": _score(scale), "reason": {"type": "string"}}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _score(scale: Scale) -> dict[str, Any]:
    if scale.worded:
        return {"type": "string", "enum": list(scale.words)}
    if scale.values == tuple(range(round(scale.low), round(scale.high) + 1)):
        return {"type": "integer", "minimum": round(scale.low), "maximum": round(scale.high)}
    return {"type": "number", "enum": list(scale.values)}
