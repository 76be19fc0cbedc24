"""Every kind and every header field goes in, comes out, and is still there after a restart."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.audit_log import audit_log
from antiphon_kernel.types.enums import BlockKind, Role, Status, ToolKind
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor, BlockHeader
from tests.clocks import ManualClock
from tests.errors import raises
from tests.kernel.kernel.calls import Caller, Make

SOURCE = f"{'a' * 32}.{'b' * 32}.7"
FIELDS: dict[str, Any] = {
    "tool_kind": "mcp",
    "drift_kind": "distill",
    "tool_name": "grep",
    "tool_call_id": "call-1",
    "input": {"pattern": "x"},
    "exit_code": -1,
    "is_error": True,
    "truncated": True,
    "source_context": "a" * 32,
    "source_block": SOURCE,
    "path": "src/ü.py",
    "language": "python",
    "collapsed": True,
    "excluded": True,
    "ephemeral": True,
    "stop_reason": "length",
}


async def test_every_kind_keeps_every_field_through_a_restart(
    kernel: Kernel, amy: Actor, make: Make, open_kernel: Any
) -> None:
    prompt = await make("?", status="done")
    made: dict[str, dict[str, Any]] = {}
    for kind, role in itertools.product(BlockKind, Role):
        metadata = {**FIELDS, "own": {"deep": [1, None, "x"]}}
        parent = prompt
        if kind is BlockKind.TOOL_RESULT:
            parent = await make("ls", kind="tool_call", parent_id=prompt, metadata=FIELDS)
        block = await make(
            "text", kind=kind, role=role, parent_id=parent, status="done", metadata=metadata
        )
        read = await kernel.call(amy, "block.read", {"block_id": block})
        assert (read["kind"], read["role"]) == (
            kind,
            Role.TOOL if kind is BlockKind.TOOL_RESULT else role,
        )
        assert {name: read[name] for name in FIELDS} == FIELDS
        assert read["metadata"] == {"own": {"deep": [1, None, "x"]}}
        made[block] = read
    await kernel.close()
    again = await open_kernel()
    amy = again.open_session(again.owner, "test")
    for block, read in made.items():
        assert await again.call(amy, "block.read", {"block_id": block}) == read


def test_header_is_shell_only_for_calls_and_results_of_shell_tools() -> None:
    for kind, tool_kind in itertools.product(BlockKind, [*ToolKind, None]):
        header = BlockHeader("a", kind, Role.TOOL, Status.DONE, "a0", "", "b", tool_kind=tool_kind)
        expected = kind in ("tool_call", "tool_result") and tool_kind == "shell"
        assert header.is_shell == expected


@pytest.mark.sqlite
async def test_clock_beyond_the_years_that_can_be_written_fails_no_read(
    call: Caller, make: Make, clock: ManualClock, data: Path
) -> None:
    for ms in (10**15, -(10**12)):
        clock.ms = ms
        block = await make("x", status="done")
        for tool in ("block.read", "block.blame", "block.history"):
            assert await call(tool, block_id=block)
    events = [event.as_json()["time"] for event in await audit_log(data)]
    assert {"1970-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"} <= set(events)
    exported = (await call("context.export"))["text"]
    assert (await call("context.import", text=exported, label="again"))["blocks"] == 2


async def test_stored_value_that_is_unknown_is_kept_and_shown(
    kernel: Kernel, context: Context, amy: Actor, make: Make, open_kernel: Any
) -> None:
    block = await make("x")
    odd = {"kind": "poem", "role": "muse", "status": "asleep", "tool_kind": "abacus"}
    odd |= {"drift_kind": "seep"}
    written = context.write(
        amy, "test", lambda: context.document.set_fields(block, **odd), blocks=[block]
    )
    await written.saved()
    await kernel.call(amy, "block.collapse", {"block_id": block})
    await kernel.close()
    again = await open_kernel()
    amy = again.open_session(again.owner, "test")
    read = await again.call(amy, "block.read", {"block_id": block})
    assert {name: read[name] for name in odd} == odd
    assert read["collapsed"]
    listed = await again.call(amy, "block.list", {})
    assert listed["blocks"][0]["kind"] == "poem"
    with raises(ErrorCode.INVALID_TRANSITION):
        await again.call(amy, "block.status", {"block_id": block, "status": "done"})


BAD_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"tool_kind": "abacus"}, "shell"),
    ({"drift_kind": "seep"}, "distill"),
    ({"exit_code": "0"}, "exit_code"),
    ({"exit_code": True}, "exit_code"),
    ({"exit_code": 1.5}, "exit_code"),
    ({"exit_code": 10**400}, "exit_code"),
    ({"collapsed": "yes"}, "collapsed"),
    ({"path": 3}, "path"),
    ({"source_block": "default.amy.1"}, "source_block"),
    ({"source_block": 5}, "source_block"),
    ({"source_context": "default"}, "source_context"),
    ({"source_context": None}, "source_context"),
    ({"input": "[" * 2_000}, "input"),
    ({"input": "[1]"}, "input"),
    ({"input": '{"a": 1, "a": 2}'}, "input"),
    ({"input": None}, "input"),
    ({"tool_name": "\x1b[31m"}, "tool_name"),
    ({"stop_reason": "a\nb"}, "stop_reason"),
    ({"own": [10**400]}, "metadata"),
]
"""Metadata, and what its refusal names."""


async def test_field_that_cannot_be_is_refused_by_name(kernel: Kernel, call: Caller) -> None:
    for metadata, names in BAD_FIELDS:
        with raises(ErrorCode.INVALID_PARAMS) as caught:
            await call("block.create", role="user", kind="text", metadata=metadata)
        assert names in caught.value.message
        assert len((await kernel.context()).document) == 0, metadata


async def test_exit_code_that_could_not_be_read_back_is_refused(call: Caller, make: Make) -> None:
    block = await make("ran")
    for exit_code in (2**53, 10**400):
        with raises(ErrorCode.INVALID_PARAMS):
            await call("block.status", block_id=block, status="done", exit_code=exit_code)


@pytest.mark.parametrize(
    "fields", [{"stopped_by": "\x1b[31m"}, {"stopped_by": "A B"}, {"stop_reason": "\x00"}]
)
async def test_status_with_a_field_that_cannot_be_is_refused_by_name(
    call: Caller, make: Make, fields: dict[str, str]
) -> None:
    block = await make("x")
    error = await call.refused("block.status", block_id=block, status="done", **fields)
    assert error.code is ErrorCode.INVALID_PARAMS
    assert error.details["field"] in fields


async def test_parameters_without_a_bottom_are_refused(call: Caller) -> None:
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    with raises(ErrorCode.INVALID_PARAMS):
        await call("block.list", context=deep)
