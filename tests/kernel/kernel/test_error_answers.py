"""Errors of requests say what may be sent instead, and answers have no nulls."""

from __future__ import annotations

import json
from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.types.enums import BlockKind, Role, ToolKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.errors import raises
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


MADE = {"role": "user", "kind": "text"}


@pytest.mark.parametrize(
    ("tool", "params", "said"),
    [
        ("block.create", {"role": "user"}, "block.create needs kind, which is missing."),
        (
            "block.create",
            MADE | {"contents": "x"},
            "block.create does not know contents. Did you mean content?",
        ),
        (
            "block.create",
            MADE | {"role": "usr"},
            """cannot take role = "usr": expected 'user', 'model', 'system' or 'tool'.""",
        ),
        ("block.create", MADE | {"schema": {"type": "map"}}, "needs schema.fields, which is"),
        ("block.create", MADE | {"schema": {"type": "x"}}, "expected 'text', 'map', 'list', 'log'"),
        ("block.read", {"block_id": 5}, "cannot take block_id = 5: expected a string."),
        ("block.list", {"limit": 0}, "cannot take limit = 0: expected at least 1."),
        ("block.list", {"limit": 1.5}, "expected a whole number."),
        ("kernel.tools", {"all": True}, "does not know all. It takes no parameters."),
        (
            "block.edit",
            {"block_id": "default.amy.1", "operations": [{"type": "insert"}]},
            "expected an object with 'op'.",
        ),
    ],
)
def test_wrong_parameter_is_named_with_what_is_expected(
    tool: str, params: dict[str, object], said: str
) -> None:
    with raises(ErrorCode.INVALID_PARAMS) as caught:
        Registry(KERNEL_TOOLS)[tool].parse(params)
    assert said in caught.value.message
    assert set(caught.value.details["errors"][0]) - {"allowed"} == {"field", "expected", "found"}


def test_parameters_are_listed_by_the_names_that_callers_use() -> None:
    with pytest.raises(AntiphonError, match="content, schema, after"):
        Registry(KERNEL_TOOLS)["block.create"].parse({})


@pytest.mark.parametrize(
    ("name", "meant"),
    [("block.raed", "block.read"), ("block.reads", "block.read"), ("blocklist", "block.list")],
)
def test_unknown_tool_is_answered_with_the_likeliest_one(name: str, meant: str) -> None:
    with pytest.raises(AntiphonError, match=rf"Did you mean {meant}\?") as caught:
        Registry(KERNEL_TOOLS)[name]
    assert caught.value.code is ErrorCode.UNKNOWN_TOOL


def test_parameter_error_of_any_tool_hides_validator_wording() -> None:
    """No message speaks of inputs, extras or valid strings, as the validation library does."""
    said = []
    fields = [(tool, *one) for tool in KERNEL_TOOLS for one in tool.params.model_fields.items()]
    for tool, name, field in fields:
        for wrong in (None, 5.5, "?", [], [[]], {}, {"a": 1}):
            try:
                tool.parse({field.alias or name: wrong})
            except AntiphonError as error:
                said += [f"{error.message} {one['expected']}" for one in error.details["errors"]]
    assert not [one for one in said if "nput" in one or "valid" in one or "iscrimi" in one]


@pytest.mark.parametrize(
    ("tool", "params", "field", "expected"),
    [
        ("block.sync", {"versions": {"default.amy.1": -1}}, "versions.default.amy.1", "at least 0"),
        ("block.sync", {"versions": [["default.amy.1", "x"]]}, "versions.0.1", "a whole number"),
        ("block.sync", {"versions": 5}, "versions", "a list or an object"),
        ("block.create", MADE | {"content": 5}, "content", "a string or an object or a list"),
        ("block.create", MADE | {"unheard": None}, "unheard", "nothing of this name"),
        (
            "block.create",
            MADE | {"schema": {"type": "composite", "sections": [{"name": 3}]}},
            "schema.sections.0.name",
            "a string",
        ),
        (
            "block.edit",
            {"block_id": "b", "operations": [{"op": "insert", "line": "x", "content": ""}]},
            "operations.0.line",
            "a whole number",
        ),
        (
            "block.edit",
            {"block_id": "b", "operations": [{"op": "insert", "insert": "x", "line": 0}]},
            "operations.0.content",
            "a value",
        ),
        ("block.increment", {"block_id": "b", "field": "n", "by": "x"}, "by", "a whole number or"),
    ],
)
def test_parameter_error_names_path_in_request(
    tool: str, params: dict[str, object], field: str, expected: str
) -> None:
    with pytest.raises(AntiphonError) as caught:
        Registry(KERNEL_TOOLS)[tool].parse(params)
    first = caught.value.details["errors"][0]
    assert first["field"] == field
    assert first["expected"].startswith(expected)
    assert field in caught.value.message


def test_parameter_error_lists_first_twenty_values() -> None:
    operations = [{"op": "insert", "line": "x", "content": ""} for _ in range(5_000)]
    with pytest.raises(AntiphonError) as caught:
        Registry(KERNEL_TOOLS)["block.edit"].parse({"block_id": "b", "operations": operations})
    fields = [one["field"] for one in caught.value.details["errors"]]
    assert fields == [f"operations.{number}.line" for number in range(len(fields))]
    assert len(fields) == 20
