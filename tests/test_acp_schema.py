"""The check of lines of ACP finds what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acp_schema import AcpLines, schema

pytestmark = pytest.mark.skipif(
    not schema(), reason="the schema of ACP is not installed: `make programs` does it, takes npm"
)

ASKED = {"jsonrpc": "2.0", "id": 1, "method": "session/new"}
RIGHT = {**ASKED, "params": {"cwd": "/", "mcpServers": []}}
ANSWER = {"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}}
CHUNK = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Hm."}}


def update(**params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", **params}}


def test_right_lines_are_taken(tmp_path: Path) -> None:
    said = [("client", RIGHT), ("agent", update(update=CHUNK)), ("agent", ANSWER)]
    path = tmp_path / "lines"
    path.write_text("".join(f"{side} {json.dumps(one)}\n" for side, one in said) + "agent {")
    found = AcpLines.recorded(path)
    methods = [("client", "session/new"), ("agent", "session/update"), ("agent", "session/new")]
    assert found.checked == methods


@pytest.mark.parametrize(
    ("sender", "message", "words"),
    [
        ("client", {**RIGHT, "jsonrpc": 2}, "jsonrpc"),
        ("client", {**ASKED, "params": {"cwd": "/"}}, "'mcpServers' is a required property"),
        ("client", {**RIGHT, "method": "session/make"}, "has no Request session/make"),
        ("agent", RIGHT, "has no Request session/new for the client"),
        ("agent", update(update={**CHUNK, "content": "Hm."}), "in"),
        ("agent", update(), "'update' is a required property"),
        ("agent", ANSWER, "no request has this id"),
        ("agent", {**ANSWER, "error": {"code": 1, "message": "No."}}, "error"),
    ],
)
def test_wrong_lines_are_found(sender: str, message: dict[str, Any], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        AcpLines().check(sender, message)


def test_answer_is_checked_by_what_it_answers() -> None:
    lines = AcpLines()
    lines.check("client", RIGHT)
    with pytest.raises(AssertionError, match="sessionId"):
        lines.check("agent", {**ANSWER, "result": {}})
