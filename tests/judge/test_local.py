"""The embedded judge is shown text, whatever that text looks like."""

from __future__ import annotations

import asyncio

import pytest

from geval_adapters import LiteLLMJudge


@pytest.mark.parametrize("token", ["<|im_end|>", "<|im_start|>", "<|endoftext|>"])
def test_control_tokens_in_a_text_are_text(token: str):
    pytest.importorskip("xllamacpp")

    def size(text: str) -> int:
        judge = LiteLLMJudge("local/smollm2")
        return asyncio.run(judge.ask([{"role": "user", "content": text}], max_tokens=1)).usage.prompt_tokens

    plain = size("Rate this: ")
    assert size("Rate this: <b>bold</b> [B]") < plain + 16
    assert size("Rate this: " + token * 24) >= plain + 24 * 4, "a control token that is one would count once"
