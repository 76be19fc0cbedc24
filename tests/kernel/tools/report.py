"""A block with every kind of content, and how it reads."""

from __future__ import annotations

from typing import Any

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.records import Actor

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
