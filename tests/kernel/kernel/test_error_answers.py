"""Errors of requests say what may be sent instead, and answers have no nulls."""

from __future__ import annotations

import json
from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.enums import BlockKind, Role, ToolKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Caller, Make, check_error, refused
from tests.kernel.tools.files import TASK

HALF = "\ud83d"


@pytest.mark.parametrize(
    ("params", "field", "allowed"),
    [
        ({"role": "usr", "kind": "text"}, "role", list(Role)),
        ({"role": "user", "kind": "txt"}, "kind", list(BlockKind)),
        ({"role": "user", "kind": "text", "status": "x"}, "status", ["pending", "done"]),
        (
            {"role": "user", "kind": "text", "schema": {"type": "tree"}},
            "schema",
            ["text", "map", "list", "log", "composite"],
        ),
    ],
)
async def test_a_wrong_word_in_a_request_is_answered_with_those_allowed(
    call: Caller, params: dict[str, Any], field: str, allowed: list[str]
) -> None:
    error = await call.refused("block.create", **params)
    (wrong,) = error.details["errors"]
    assert (wrong["field"], wrong["allowed"]) == (field, allowed)
    assert error.details["allowed"] == allowed


async def test_a_wrong_word_in_metadata_is_answered_with_those_allowed(call: Caller) -> None:
    params = {"role": "user", "kind": "text", "metadata": {"tool_kind": "magic"}}
    error = await call.refused("block.create", **params)
    assert error.details["allowed"] == list(ToolKind)


@pytest.mark.parametrize(
    ("tool", "params", "field"),
    [
        ("block.append", {"block_id": "x", "text": HALF}, "text"),
        ("block.push_item", {"block_id": "x", "value": [{"a": HALF}]}, "value.0.a"),
        ("block.import", {"block_id": "x", "content": {HALF: 1}}, "content"),
        ("block.create", {"role": "user", "kind": "text", "metadata": {"x": HALF}}, "metadata.x"),
        ("context.import", {"text": HALF}, "text"),
        ("block.get", {HALF: 1}, "parameters"),
    ],
)
async def test_half_a_surrogate_pair_in_a_request_has_a_sentence_of_its_own(
    call: Caller, tool: str, params: dict[str, Any], field: str
) -> None:
    error = await call.refused(tool, **params)
    assert (error.code, error.details["field"]) == (ErrorCode.INVALID_PARAMS, field)
    assert "half a surrogate pair" in error.message and error.message.endswith("characters.")


async def test_half_a_surrogate_pair_in_an_import_has_a_sentence_of_its_own(
    call: Caller, make: Make
) -> None:
    await make("smile")
    text = (await call("context.export"))["text"]
    params = {"text": text.replace("smile", "\\ud83d"), "label": "copy"}
    error = await call.refused("context.import", **params)
    assert "half a surrogate pair" in error.message and "line" in error.details


async def test_a_new_context_is_answered_with_its_version(call: Caller, make: Make) -> None:
    made = await call("context.create", label="other")
    assert made["context_version"] == (await call.context("other")).seq
    await make("some text")
    text = (await call("context.export"))["text"]
    copy = await call("context.import", text=text, label="copy")
    assert copy["context_version"] == (await call.context("copy")).seq


async def test_an_error_that_has_nothing_to_say_in_a_field_leaves_it_out(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    block = await make(schema=TASK, content={"title": "t"})
    error = await refused(kernel, amy, "block.import", {"block_id": block, "content": 3})
    assert "path" not in error.as_json()
    assert '"path"' not in json.dumps(error.as_json())
    call = await make(kind="tool_call", role="user", content="c")
    result = {"role": "tool", "kind": "tool_result", "parent_id": call}
    error = await refused(
        kernel, amy, "block.create", {**result, "metadata": {"tool_call_id": "x"}}
    )
    assert "expected" not in error.as_json()


async def test_an_imported_header_that_is_too_long_names_its_limit(
    kernel: Kernel, call: Caller, make: Make
) -> None:
    await make("text", metadata={"path": "short"})
    text = (await call("context.export"))["text"]
    long = text.replace('"short"', json.dumps("x" * 5_000))
    with pytest.raises(AntiphonError) as caught:
        await call("context.import", text=long, label="copy")
    assert caught.value.details["limit_name"] == "header_code_points"
    check_error(kernel, "context.import", caught.value)
