"""Images in batches: OpenAI's file holds content parts as they are, Anthropic's request has its own."""

from __future__ import annotations

import base64
from pathlib import Path

import batch_server
import pytest
from batch_server import MODELS, BatchServer

from geval_adapters import GEval
from geval_adapters.judge.batches import BatchJudge

server = batch_server.server
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\none").decode()


@pytest.mark.parametrize("model", MODELS)
def test_images_travel_in_batches(model: str, server: BatchServer, tmp_path: Path):
    judge = BatchJudge(model, batch=tmp_path / "ledger.db", wait=True, api_key="sk-x")
    rows = [
        {
            "id": str(number),
            "source": "S",
            "output": [{"type": "image_url", "image_url": f"data:image/png;base64,{PNG}"}],
        }
        for number in range(10)
    ]
    ratings = list(GEval("helpfulness", judge, n=1, readout="samples").rate_many(rows))
    assert [rating.error for rating in ratings] == [None] * 10
    sent = [row for batch in server.batches.values() for row in batch["rows"]]
    assert sent, "some of them were asked in a batch"
    for _, body in sent:
        content = body["messages"][0]["content"]
        kinds = [part["type"] for part in content]
        if model.startswith("anthropic"):
            assert kinds == ["text", "image", "text"] and content[1]["source"]["data"] == PNG
        else:
            assert kinds == ["text", "image_url", "text"] and content[1]["image_url"]["url"].endswith(PNG)
