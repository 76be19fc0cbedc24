"""Results of servers: every kind of content that is kept, and that is named only."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from mcp_types import CallToolResult

from antiphon_kernel.mcp_servers import read_result

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(20)


def image(data: bytes | str, kind: str = "image/png", type_: str = "image") -> dict[str, Any]:
    said = data if isinstance(data, str) else b64encode(data).decode()
    return {"type": type_, "data": said, "mimeType": kind}


def resource(**fields: Any) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": "a://b", **fields}}


@pytest.mark.parametrize(
    ("content", "text", "files"),
    [
        ([], "", []),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb", []),
        ([image(PNG), image(PNG)], "[image: result-1.png]\n[image: not kept]", ["result-1.png"]),
        ([image(b"\xff\xd8\xff")], "[image: result-1.jpg]", ["result-1.jpg"]),
        ([image(b"<svg/>", "image/svg+xml")], "[image]\n<svg/>", []),
        ([image(b"\0" * 9)], "[image: not kept]", []),
        ([image(PNG * 100)], "[image: not kept]", []),
        ([image("?")], "[image: not base64]", []),
        ([image(b"\0\1", "audio/wav", "audio")], "[audio: not kept]", []),
        ([resource(text="x")], "[resource a://b]\nx", []),
        ([resource(blob=b64encode(b"%PDF-1").decode())], "[resource a://b: result-1.pdf]", 1),
        (
            [{"type": "resource_link", "uri": "a://b", "name": "B", "description": "of a"}],
            "[resource B | a://b | of a]",
            [],
        ),
    ],
)
def test_content_is_kept_or_named(
    content: list[dict[str, Any]], text: str, files: list[str] | int
) -> None:
    found, kept = read_result(CallToolResult.model_validate({"content": content}), 1, 1_000)
    said = [
        line if "not kept" not in line else line.split(":")[0] + ": not kept]"
        for line in found.split("\n")
    ]
    assert "\n".join(said) == text
    named = [one.name for one in kept]
    assert len(named) == files if isinstance(files, int) else named == files


@pytest.mark.parametrize(
    ("text", "data", "kept"),
    [
        (None, {"a": 1}, '{\n "a": 1\n}'),
        ('{"a":1}', {"a": 1}, '{"a":1}'),
        ("said", {"content": "said"}, "said"),
        ("said", {"a": 1}, 'said\n{\n "a": 1\n}'),
    ],
)
def test_structured_content_is_said_once(text: str | None, data: object, kept: str) -> None:
    content = [] if text is None else [{"type": "text", "text": text}]
    result = CallToolResult.model_validate({"content": content, "structuredContent": data})
    assert read_result(result, 1, 1_000)[0] == kept
