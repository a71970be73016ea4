"""What the tests of the LangChain adapter share: chat models by script, a server, and a watch on what is uploaded."""

import asyncio
import json
import math
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult

from geval_adapters.judge import local

embedded = pytest.mark.skipif(not local.is_installed(), reason="the embedded judge is not installed")
TEXT = "The cat sat on the mat. It was warm there."


def token(text: str, alternatives: dict[str, float]) -> dict[str, Any]:
    top = [{"token": other, "logprob": math.log(p)} for other, p in alternatives.items()]
    return {"token": text, "logprob": math.log(alternatives.get(text, 1.0)), "top_logprobs": top}


RATED = [token("Rating", {"Rating": 1.0}), token(":", {":": 1.0}), token(" 4", {" 4": 0.5, " 5": 0.3, "3": 0.2})]
"""'Rating: 4' with a weighted score of 4·.5 + 5·.3 + 3·.2 = 4.1."""


class Scripted(BaseChatModel):
    """Answers each request with the next of its replies, and keeps what it was sent."""

    replies: list[Any]
    model: str = "scripted-1"
    seen: list[dict[str, Any]] = []  # noqa: RUF012
    refuses: str = ""
    alternatives: int = 20
    pause: float = 0.0
    most: int = 0
    now: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self.pause)
        self.now -= 1
        if self.refuses and self.refuses in kwargs:
            raise TypeError(f"create() got an unexpected keyword argument '{self.refuses}'")
        if kwargs.get("top_logprobs", 0) > self.alternatives:
            raise ValueError(f"top_logprobs must be at most {self.alternatives}")
        self.seen.append({"messages": messages, "stop": stop, **kwargs})
        reply = self.replies[(len(self.seen) - 1) % len(self.replies)]
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, str):
            reply = AIMessage(reply)
        return ChatResult(generations=[ChatGeneration(message=reply)])


def scripted(*replies: Any, **options: Any) -> Scripted:
    return Scripted(replies=list(replies), seen=[], **options)


def weighted(**about: Any) -> AIMessage:
    return AIMessage("Rating: 4", response_metadata={"logprobs": {"content": RATED}, **about})


class OpenAIChat(BaseChatModel):
    """As little of a chat model as it takes to talk to a server that speaks the OpenAI protocol."""

    base: str
    key: str = "none"
    model: str = "gpt-4o-mini"

    @property
    def _llm_type(self) -> str:
        return "openai-chat"

    def _get_ls_params(self, stop: Any = None, **kwargs: Any) -> Any:
        return {"ls_provider": "openai", "ls_model_name": self.model, "ls_model_type": "chat"}

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        body = {"model": self.model, "messages": convert_to_openai_messages(messages), **kwargs}
        if stop:
            body["stop"] = stop
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.base}/chat/completions", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request) as response:
            data = json.load(response)
        choice = data["choices"][0]
        about = {"finish_reason": choice["finish_reason"], "logprobs": choice.get("logprobs")}
        usage = data["usage"]
        spent = {
            "input_tokens": usage["prompt_tokens"],
            "output_tokens": usage["completion_tokens"],
            "total_tokens": usage["prompt_tokens"] + usage["completion_tokens"],
        }
        message = AIMessage(choice["message"]["content"], response_metadata=about, usage_metadata=spent)
        return ChatResult(generations=[ChatGeneration(message=message)])


@pytest.fixture
def server() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server that rates everything 4 with the weights of RATED, and the requests that it got."""
    seen: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            choice = {
                "index": 0,
                "message": {"role": "assistant", "content": "Rating: 4"},
                "logprobs": {"content": RATED},
                "finish_reason": "stop",
            }
            usage = {"prompt_tokens": 100, "completion_tokens": 3, "total_tokens": 103}
            body = json.dumps({"choices": [choice], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    served = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=served.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{served.server_port}/v1", seen
    served.shutdown()
    served.server_close()


@pytest.fixture(autouse=True)
def uploaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the runs that would have been sent to LangSmith; nothing leaves the machine."""
    names: list[str] = []
    monkeypatch.setattr("langsmith.Client.create_run", lambda *_, **run: names.append(run["name"]))
    monkeypatch.setattr("langsmith.Client.update_run", lambda *_, **run: None)
    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "LANGSMITH_API_KEY", "OPENAI_API_KEY", "GEVAL_MODEL"):
        monkeypatch.delenv(name, raising=False)
    return names


class RouteByPrompt(BaseChatModel):
    """Answers by the first of the words that the prompt holds."""

    replies: dict[str, str]

    @property
    def _llm_type(self) -> str:
        return "route"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        prompt = str(messages[0].content)
        reply = next((reply for word, reply in self.replies.items() if word in prompt), "?")
        return ChatResult(generations=[ChatGeneration(message=AIMessage(reply))])


class Watcher(BaseCallbackHandler):
    """Keeps the runs that it is told of."""

    def __init__(self) -> None:
        self.chains: list[dict[str, Any]] = []
        self.models: list[dict[str, Any]] = []
        self.ends: list[Any] = []
        self.errors: list[BaseException] = []

    def on_chain_start(self, serialized: Any, inputs: Any, **about: Any) -> None:
        self.chains.append({"inputs": inputs, **about})

    def on_chain_end(self, outputs: Any, **about: Any) -> None:
        self.ends.append(outputs)

    def on_chain_error(self, error: BaseException, **about: Any) -> None:
        self.errors.append(error)

    def on_chat_model_start(self, serialized: Any, messages: Any, **about: Any) -> None:
        self.models.append(about)


class Preferring(BaseChatModel):
    """Prefers the text that holds a word; without it, the label in `leaning`."""

    word: str
    leaning: str = "A"

    @property
    def _llm_type(self) -> str:
        return "preferring"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        prompt = str(messages[0].content)
        first, second = prompt.find("<output_A>"), prompt.find("<output_B>")
        where = prompt.find(self.word)
        label = self.leaning if where < 0 else "A" if first < where < second else "B"
        top = [{"token": label, "logprob": math.log(0.8)}, {"token": "AB".strip(label), "logprob": math.log(0.2)}]
        content = [{**top[0], "top_logprobs": top}]
        message = AIMessage(label, response_metadata={"logprobs": {"content": content}})
        return ChatResult(generations=[ChatGeneration(message=message)])
