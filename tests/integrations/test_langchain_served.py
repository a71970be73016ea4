"""What a LangChain chat model says of the model that was served stands in the rating."""

from __future__ import annotations

import itertools
from typing import Any

from chat_models import RATED
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from geval_adapters import GEval
from langchain_geval.chat_model import ChatModelJudge

NUMBERS = itertools.count()


class Changing(BaseChatModel):
    """Is another model after twelve requests, and says so as langchain-openai does."""

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        about = {"model_name": "m-2", "system_fingerprint": f"fp_{next(NUMBERS) // 12}", "logprobs": {"content": RATED}}
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Rating: 4", response_metadata=about))])

    @property
    def _llm_type(self) -> str:
        return "changing"


def test_ratings_by_a_chat_model_name_what_was_served() -> None:
    ratings = list(GEval("fluency", ChatModelJudge(Changing())).rate_many([f"Text {n}." for n in range(24)]))
    assert sorted(rating.served for rating in ratings) == [("m-2 (fp_0)",)] * 12 + [("m-2 (fp_1)",)] * 12
    assert len({str(rating.signature) for rating in ratings}) == 1
