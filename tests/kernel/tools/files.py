"""Files of every kind that can be attached, and a block with every kind of content."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.records import Actor

PNG: Final = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(17)
PDF: Final = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj\n%%EOF\n"
FILES: Final = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF\0",
    "image/gif": b"GIF89a\x01\0\x01\0",
    "image/webp": b"RIFF\x04\0\0\0WEBPVP8 ",
    "application/pdf": PDF,
    "text/plain": "Größe\r\n日本 👩‍👧\n".encode(),
}


def sent(name: str, data: bytes, **more: Any) -> dict[str, Any]:
    """Return a file as `block.attach` takes its bytes."""
    return {"name": name, "data": b64encode(data).decode(), **more}


TASK: dict[str, Any] = {
    "type": "map",
    "fields": [
        {"name": "title", "field_type": "text", "required": True},
        {"name": "effort", "field_type": "number"},
        {"name": "open", "field_type": "boolean", "required": True, "default": True},
        {"name": "tags", "field_type": "list", "max_items": 3, "item_schema": {"type": "text"}},
        {"name": "due", "field_type": "timestamp"},
        {"name": "votes", "field_type": "counter", "default": 2},
        {"name": "Found by", "field_type": "text", "read_only": True, "default": "lsp"},
    ],
}
REPORT: dict[str, Any] = {
    "type": "composite",
    "sections": [
        {"name": "notes", "schema": {"type": "text"}},
        {"name": "task", "schema": TASK, "description": "what is to be done"},
        {
            "name": "diagnostics",
            "read_only": True,
            "schema": {
                "type": "composite",
                "sections": [
                    {"name": "errors", "schema": {"type": "log", "display_limit": 2}},
                    {"name": "raw", "schema": {"type": "text"}},
                ],
            },
        },
        {"name": "steps", "schema": {"type": "list", "max_items": 100}},
    ],
}


async def value(kernel: Kernel, actor: Actor, block: str, *path: str) -> Any:
    """Return the value that `block.get` shows: path is a section, or a section and a field."""
    request = dict(zip(("section", "field"), path, strict=False))
    found = await kernel.call(actor, "block.get", {"block_id": block, **request})
    assert found["violations"] == []
    return found.get("value")
