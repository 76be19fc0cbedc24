"""Items of lists are complete: their schema's defaults are in them, what is required is there."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.document.content import read_content
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Caller, Make
from tests.kernel.tools.report import value

ITEM: dict[str, Any] = {
    "type": "map",
    "fields": [
        {"name": "title", "field_type": "text", "required": True},
        {"name": "open", "field_type": "boolean", "required": True, "default": True},
        {"name": "tags", "field_type": "list", "default": ["new"]},
    ],
}
STEPS: dict[str, Any] = {"type": "list", "item_schema": ITEM}
BOARD: dict[str, Any] = {
    "type": "map",
    "fields": [{"name": "steps", "field_type": "list", "item_schema": ITEM}],
}
FULL = {"title": "t", "open": True, "tags": ["new"]}


@pytest.mark.parametrize(
    ("tool", "params"),
    [
        ("block.push_item", {"value": {"open": True}}),
        ("block.insert_item", {"value": {"title": None}, "index": 0}),
        ("block.import", {"content": [{"title": "fine"}, {"tags": []}]}),
    ],
)
async def test_an_item_without_a_required_field_is_refused(
    call: Caller, make: Make, tool: str, params: dict[str, Any]
) -> None:
    block = await make(schema=STEPS, content=None)
    error = await call.refused(tool, block_id=block, **params)
    assert (error.code, error.details["rule"]) == (ErrorCode.SCHEMA_VIOLATION, "required")
    assert error.details["path"] == "title"
    assert error.details["item"] == (1 if tool == "block.import" else 0)


async def test_a_required_field_is_found_in_sections_of_an_item_and_in_first_content(
    call: Caller,
) -> None:
    inside = {"type": "composite", "sections": [{"name": "in", "schema": ITEM}]}
    for schema, content in (
        ({"type": "list", "item_schema": inside}, [{}]),
        (BOARD, {"steps": [{"open": False}]}),
    ):
        request = {"role": "user", "kind": "text", "schema": schema, "content": content}
        error = await call.refused("block.create", **request)
        assert error.details["rule"] == "required"


async def test_the_defaults_of_an_item_are_applied_at_every_door(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    block = await make(schema=STEPS, content=[{"title": "t"}])
    request = {"block_id": block, "value": {"title": "t"}}
    await kernel.call(amy, "block.push_item", request)
    await kernel.call(amy, "block.insert_item", {**request, "index": 0})
    assert await value(kernel, amy, block) == [FULL, FULL, FULL]
    await kernel.call(amy, "block.import", {"block_id": block, "content": [{"title": "t"}]})
    assert await value(kernel, amy, block) == [FULL]
    board = await make(schema=BOARD, content={"steps": [{"title": "t", "open": False}]})
    assert await value(kernel, amy, board) == {"steps": [{**FULL, "open": False}]}
    field = {"block_id": board, "field": "steps", "value": [{"title": "t", "tags": []}]}
    await kernel.call(amy, "block.set_field", field)
    assert await value(kernel, amy, board) == {"steps": [{**FULL, "tags": []}]}


async def test_the_default_of_a_list_has_the_defaults_of_its_items(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    (field,) = BOARD["fields"]
    schema = {"type": "map", "fields": [{**field, "default": [{"title": "t"}]}]}
    block = await make(schema=schema, content=None)
    assert await value(kernel, amy, block) == {"steps": [FULL]}


async def test_a_default_in_an_item_schema_that_does_not_fit_is_refused(call: Caller) -> None:
    field = {"name": "a", "field_type": "number", "default": "one"}
    schema = {"type": "list", "item_schema": {"type": "map", "fields": [field]}}
    request = {"role": "user", "kind": "text", "schema": schema}
    assert (await call.refused("block.create", **request)).code is ErrorCode.INVALID_PARAMS


async def test_defaults_that_add_too_much_to_an_item_are_refused(call: Caller, make: Make) -> None:
    field = {"name": "a", "field_type": "text", "default": "x" * 90_000}
    item = {"type": "map", "fields": [field]}
    block = await make(schema={"type": "list", "item_schema": item}, content=None)
    many = {"block_id": block, "content": [{}] * 1_000}
    assert (await call.refused("block.import", **many)).code is ErrorCode.TOO_LARGE
    deep = {"type": "list", "item_schema": {"type": "list", "item_schema": item}}
    block = await make(schema=deep, content=None)
    value = {"block_id": block, "value": [{}] * 1_000}
    assert (await call.refused("block.push_item", **value)).code is ErrorCode.TOO_LARGE
    first = {"name": "b", "field_type": "list", "item_schema": item, "default": [{}] * 1_000}
    request = {"role": "user", "kind": "text", "schema": {"type": "map", "fields": [first]}}
    assert (await call.refused("block.create", **request)).code is ErrorCode.TOO_LARGE


async def test_an_item_that_lacks_a_required_field_is_reported(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    block = await make(schema=STEPS, content=None)
    context: Context = (await kernel.find_block(block))[0]
    items: Any = context.document.container(block)
    context.write(amy, "test", lambda: items.append({"tags": []}), blocks=[block])
    found = read_content(context.document, block).violations
    assert [(one.path, str(one.rule), one.item) for one in found] == [
        ("title", "required", 0),
        ("open", "required", 0),
    ]


async def test_an_edited_export_that_breaks_the_schema_is_refused_by_the_import(
    call: Caller, make: Make
) -> None:
    block = await make(schema=BOARD, content={"steps": [{"title": "t"}]})
    content = (await call("block.export", block_id=block))["content"]
    del content["steps"][0]["title"]
    error = await call.refused("block.import", block_id=block, content=content)
    assert [(one["path"], one["rule"], one["item"]) for one in error.details["violations"]] == [
        ("steps/title", "required", 0)
    ]
