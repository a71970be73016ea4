"""Keys that stand in a router file: no message, row, page or log tells one, though the server repeats them all."""

from __future__ import annotations

import base64
import json
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Server, completion, refusal

SECRETS = ("rk-literal-0123456789", "header-secret-456789", "cookie-secret-456789")


def router_file(base: str) -> dict[str, Any]:
    headers = {"X-Tenant-Auth": SECRETS[1], "Cookie": f"session={SECRETS[2]}"}
    told = {"model": "openai/m", "api_base": base, "api_key": SECRETS[0], "extra_headers": headers}
    return {"model_list": [{"model_name": "group", "litellm_params": told}]}


@pytest.mark.parametrize("status", [200, 401])
def test_no_key_of_a_router_file_is_told(
    server: Server, geval: Any, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    caplog.set_level(logging.DEBUG)
    Path("router.yaml").write_text(yaml.safe_dump(router_file(server.base)))
    Path("in.jsonl").write_text("".join(json.dumps({"output": f"Text {number}."}) + "\n" for number in range(8)))

    def handler(request: dict[str, Any]) -> dict[str, Any]:
        echoed = json.dumps(server.headers[-1])
        if status != 200:
            raise refusal(status, f"no: {echoed}")
        return completion(f"Rating: 4\nRationale: {echoed}")

    server.handler = handler
    command = (
        "score",
        "in.jsonl",
        "-c",
        "fluency",
        "--router",
        "router.yaml",
        "-o",
        "out.jsonl",
        "--readout",
        "samples",
    )
    _, out, err = geval(*command, "--readout", "samples", "--explain", "--html", "page.html", "--timeout", 5)
    assert server.requests
    sent = json.dumps(server.headers)
    assert SECRETS[1] in sent, "the test is of headers that are sent"
    written = "".join(
        path.read_text() for path in Path().iterdir() if path.name != "router.yaml" and path.suffix != ".part"
    )
    everything = out + err + written + caplog.text
    for secret in SECRETS:
        assert secret not in everything
        assert base64.b64encode(secret.encode()).decode() not in everything
