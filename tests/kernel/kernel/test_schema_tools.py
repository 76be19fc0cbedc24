"""Blocks with a schema through the tools: what is written reads back, what is wrong is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from antiphon_kernel.kernel.kernel import Kernel
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor

Make = Callable[..., Awaitable[str]]

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


async def refused(kernel: Kernel, actor: Actor, tool: str, params: dict[str, Any]) -> AntiphonError:
    """The error of a call that must fail without changing the document."""
    context = await kernel.context()
    before = context.document.state_vector()
    with pytest.raises(AntiphonError) as caught:
        await kernel.call(actor, tool, params)
    assert context.document.state_vector() == before
    return caught.value


@pytest.fixture
async def lsp(kernel: Kernel) -> Actor:
    return kernel.open_session(await kernel.principal("lsp", PrincipalKind.SOURCE), "test")


@pytest.fixture
async def report(make: Make) -> str:
    return await make(schema=REPORT, content=None)


async def value(kernel: Kernel, actor: Actor, block: str, *path: str) -> Any:
    """What `block.get` says: path is a section, or a section and a field."""
    request = dict(zip(("section", "field"), path, strict=False))
    found = await kernel.call(actor, "block.get", {"block_id": block, **request})
    assert found["violations"] == []
    return found.get("value")


async def test_a_new_block_has_its_defaults(kernel: Kernel, amy: Actor, report: str) -> None:
    found = await kernel.call(amy, "block.get", {"block_id": report})
    assert found["value"] == {
        "notes": "",
        "task": {
            "title": "",
            "effort": None,
            "open": True,
            "tags": [],
            "due": None,
            "votes": 2,
            "Found by": "lsp",
        },
        "diagnostics": {"errors": [], "raw": ""},
        "steps": [],
    }
    assert found["violations"] == []
    assert (await kernel.call(amy, "block.render", {"block_id": report}))["text"] == (
        "## notes\n\n"
        "## task\ntitle:\neffort:\nopen: true\ntags: []\ndue:\nvotes: 2\n"
        "Found by [read-only]: lsp\n\n"
        "## diagnostics [read-only]\n## diagnostics/errors\n\n## diagnostics/raw\n\n"
        "## steps\n"
    )
