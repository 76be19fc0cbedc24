"""Schemas that there are, and the first content of a block with one."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import ErrorCode
from tests.kernel.kernel.calls import Caller, Make
from tests.kernel.tools.report import TASK


async def test_new_block_has_its_defaults(call: Caller, report: str) -> None:
    found = await call("block.get", block_id=report)
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
    assert (await call("block.render", block_id=report))["text"] == (
        "## notes\n\n"
        "## task\ntitle:\neffort:\nopen: true\ntags: []\ndue:\nvotes: 2\n"
        "Found by [read-only]: lsp\n\n"
        "## diagnostics [read-only]\n## diagnostics/errors\n\n## diagnostics/raw\n\n"
        "## steps\n"
    )


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "tree"},
        {"type": "map", "fields": [{"name": "a", "field_type": "colour"}]},
        {"type": "map", "fields": [{"name": "a/b", "field_type": "text"}]},
        {
            "type": "map",
            "fields": [{"name": "a", "field_type": "text"}, {"name": "a", "field_type": "text"}],
        },
        {"type": "map", "fields": [{"name": "a", "field_type": "text", "max_items": 3}]},
        {"type": "map", "fields": [{"name": "a", "field_type": "number", "default": "one"}]},
        {"type": "map", "fields": [{"name": "a", "field_type": "list", "default": 1}]},
        {
            "type": "map",
            "fields": [{"name": "a", "field_type": "list", "max_items": 1, "default": [1, 2]}],
        },
        {"type": "composite", "sections": [{"name": "A", "schema": {"type": "text"}}]},
        {"type": "list", "max_items": 0},
        {"type": "text", "colour": "red"},
    ],
)
async def test_schema_that_means_nothing_is_refused(call: Caller, schema: dict[str, Any]) -> None:
    request = {"role": "user", "kind": "text", "schema": schema}
    assert (await call.refused("block.create", **request)).code is ErrorCode.INVALID_PARAMS


async def test_block_begins_with_a_content_that_fits(call: Caller, make: Make) -> None:
    request = {"role": "user", "kind": "text", "schema": TASK}
    for content in ("text", {"effort": 1}, {"title": None}, {"title": "t", "open": None}, [1]):
        error = await call.refused("block.create", **request, content=content)
        assert error.code is ErrorCode.SCHEMA_VIOLATION
    error = await call.refused("block.create", role="user", kind="text", content=[1])
    assert error.code is ErrorCode.SCHEMA_VIOLATION
    block = await make(schema=TASK, content={"title": "t", "Found by": "me", "votes": 5})
    found = await call("block.get", block_id=block)
    assert found["version"] == 1
    assert (found["value"]["Found by"], found["value"]["votes"]) == ("me", 5)


async def test_schema_beyond_any_limit_is_rejected(
    kernel: Kernel, call: Caller, make: Make
) -> None:
    deep: dict[str, Any] = {"type": "text"}
    for _ in range(40):
        deep = {"type": "composite", "sections": [{"name": "in", "schema": deep}]}
    request = {"role": "user", "kind": "text", "schema": deep}
    assert (await call.refused("block.create", **request)).code is ErrorCode.TOO_LARGE
    block = await make(schema={"type": "list"}, content=None)
    limit = kernel.limits.value_code_points
    big = {"block_id": block, "value": "x" * limit}
    assert (await call.refused("block.push_item", **big)).code is ErrorCode.TOO_LARGE
    many = {"block_id": block, "content": [0] * (kernel.limits.list_items + 1)}
    assert (await call.refused("block.import", **many)).code is ErrorCode.TOO_LARGE
    nested: Any = 0
    for _ in range(100):
        nested = [nested]
    error = await call.refused("block.push_item", block_id=block, value=nested)
    assert error.code is ErrorCode.SCHEMA_VIOLATION
