"""DeepEval's test cases as samples."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from deepeval.test_case import ConversationalTestCase, LLMTestCase, ToolCall

from geval_adapters import Sample
from geval_adapters.samples import to_sample

Message = dict[str, Any]


def sample_of_case(case: LLMTestCase) -> Sample:
    """Input, actual and expected output, and the retrieval context, else the context; tool calls as a conversation.

    Raises:
        InputError: it has no actual output.
    """
    called = list(_messages_of_tools(case.tools_called or ()))
    source: Any = [{"role": "user", "content": case.input}, *called] if called else case.input
    output: Any = [{"role": "assistant", "content": case.actual_output}] if called else case.actual_output
    return to_sample(
        {
            "id": case.name or "",
            "source": source,
            "output": output,
            "reference": case.expected_output,
            "context": _texts(case.retrieval_context or case.context),
        }
    )


def sample_of_conversation(case: ConversationalTestCase) -> Sample:
    """The turns with their tool calls; the chatbot's role as the system's message, the expected outcome as reference.

    Raises:
        InputError: a turn cannot be shown to a judge.
    """
    messages: list[Message] = []
    if case.chatbot_role:
        messages.append({"role": "system", "content": case.chatbot_role})
    for turn in case.turns:
        messages += _messages_of_tools(turn.tools_called or ())
        messages.append({"role": turn.role, "content": turn.content})
    found = [text for turn in case.turns for text in turn.retrieval_context or ()]
    return to_sample(
        {
            "id": case.name or "",
            "messages": messages,
            "reference": case.expected_outcome,
            "context": _texts(found or case.context),
        }
    )


def _messages_of_tools(called: Iterable[ToolCall]) -> Iterable[Message]:
    for number, call in enumerate(called, start=1):
        function = {"name": call.name, "arguments": json.dumps(call.input_parameters or {}, default=str)}
        identity = f"call_{number}"
        yield {"role": "assistant", "content": None, "tool_calls": [{"id": identity, "function": function}]}
        if call.output is not None:
            said = call.output if isinstance(call.output, str) else json.dumps(call.output, default=str)
            yield {"role": "tool", "tool_call_id": identity, "content": said}


def _texts(passages: Iterable[Any] | None) -> list[str] | None:
    """Passages as texts; DeepEval's own kind has its text and where it comes from."""
    texts = [each if isinstance(each, str) else str(getattr(each, "context", each)) for each in passages or ()]
    return texts or None
