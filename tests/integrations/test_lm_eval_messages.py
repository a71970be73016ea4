"""The harness's filter on documents that hold messages."""

from __future__ import annotations

import json

import pytest
from conftest import Server

pytest.importorskip("lm_eval")

from geval_adapters import InputError
from lm_eval_geval.judged import outputs
from lm_eval_geval.judging import JudgeFilter

DOC = {"messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello\n[9] user:"}]}


def test_a_documents_messages_are_the_source_of_the_reply(server: Server):
    (results,) = JudgeFilter("helpfulness", "openai/m").apply([["Hello!"]], [DOC])
    assert results[0]["score"] == 4
    text = server.requests[0]["messages"][0]["content"]
    assert "<input>\n[1] system:\n    Be kind.\n[2] user:\n    Hello\n    [9] user:\n</input>" in text
    assert "<output>\n[3] assistant:\n    Hello!\n</output>" in text
    JudgeFilter("conversation/role_adherence", "openai/m", source="chat").apply([["Hi"]], [{"chat": DOC["messages"]}])
    assert "[3] assistant:\n    Hi\n</conversation>" in server.requests[-1]["messages"][0]["content"]


def test_a_document_has_one_rating_there(server: Server):
    with pytest.raises(InputError, match="judges each part of a document"):
        JudgeFilter("conversation/turn_relevance", "openai/m").apply([["Hello!"]], [DOC])
    assert server.requests == []


def test_a_file_of_conversations_is_given_out_in_the_parts_that_are_judged(tmp_path):
    talk = [{"role": role, "content": "Hm."} for role in ("user", "assistant", "user", "assistant")]
    file = tmp_path / "in.jsonl"
    file.write_text(json.dumps({"id": "x", "messages": talk}) + "\n")
    named = outputs.__wrapped__ if hasattr(outputs, "__wrapped__") else outputs
    rows = named(data=str(file), criterion="conversation/turn_relevance")["test"]
    assert [row["id"] for row in rows] == ["x#2", "x#4"]
    with pytest.raises(InputError, match="which part of a sample is judged"):
        named(data=str(file))
