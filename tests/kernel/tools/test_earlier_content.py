"""Maps, lists, logs and counters as they were at earlier versions, read and brought back."""

from __future__ import annotations

import random
from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Caller, Make, OpenKernel, refused
from tests.kernel.tools.report import REPORT, value


async def at_version(kernel: Kernel, actor: Actor, block: str, version: int) -> Any:
    found = await kernel.call(actor, "block.get", {"block_id": block, "version": version})
    assert found["version"] == version
    return found["value"]


def _random_write(rng: random.Random, steps: int) -> tuple[str, dict[str, Any]]:
    task = {"section": "task"}
    number = rng.randint(0, 9)
    writes: list[tuple[str, dict[str, Any]]] = [
        ("block.set_field", {**task, "field": "effort", "value": rng.choice([None, number])}),
        ("block.set_field", {**task, "field": "title", "value": "漢" * number}),
        ("block.set_field", {**task, "field": "tags", "value": ["a", "b", "c"][: number % 4]}),
        ("block.increment", {**task, "field": "votes", "by": number - 4.5}),
        ("block.push_item", {"section": "steps", "value": {"n": [number, 0.5]}}),
        ("block.insert_item", {"section": "steps", "index": 0, "value": number}),
        ("block.delete_item", {"section": "steps", "index": rng.randint(0, max(0, steps - 1))}),
        ("block.append_log", {"section": "diagnostics/errors", "entry": number}),
        ("block.undo", {}),
        ("block.redo", {}),
    ]
    return rng.choice(writes)


@pytest.mark.parametrize("seed", range(8))
async def test_each_version_of_a_content_reads_and_comes_back_as_it_was_also_after_a_restart(
    open_kernel: OpenKernel, seed: int
) -> None:
    rng = random.Random(seed)
    kernel = await open_kernel()
    lsp = kernel.system
    request = {"kind": "text", "schema": REPORT, "status": "done"}
    block = (await kernel.call(lsp, "block.create", request))["block_id"]
    contents = {1: await value(kernel, lsp, block)}
    for _ in range(40):
        steps = len(contents[max(contents)]["steps"])
        tool, params = _random_write(rng, steps)
        if rng.random() < 0.15:
            old = rng.choice(sorted(contents))
            tool, params = "block.restore", {"version": old}
        try:
            done = await kernel.call(lsp, tool, {"block_id": block, **params})
        except AntiphonError as error:
            if error.code not in (
                ErrorCode.NOTHING_TO_UNDO,
                ErrorCode.NOTHING_TO_REDO,
                ErrorCode.SCHEMA_VIOLATION,
            ):
                raise
            continue
        found = await kernel.call(lsp, "block.get", {"block_id": block})
        if tool == "block.restore":
            assert found["value"] == contents[params["version"]], done
        contents[found["version"]] = found["value"]
    assert len(contents) > 15
    for restarts in (False, True):
        if restarts:
            await kernel.close()
            kernel = await open_kernel()
        for version, content in contents.items():
            assert await at_version(kernel, kernel.system, block, version) == content


async def test_a_section_and_a_field_are_read_and_restored_alone(
    kernel: Kernel, amy: Actor, report: str
) -> None:
    task = {"block_id": report, "section": "task"}
    steps = {"block_id": report, "section": "steps"}
    await kernel.call(amy, "block.set_field", {**task, "field": "effort", "value": 1})
    await kernel.call(amy, "block.push_item", {**steps, "value": "one"})
    await kernel.call(amy, "block.set_field", {**task, "field": "effort", "value": 2})
    asked = {**task, "field": "effort", "version": 2}
    assert (await kernel.call(amy, "block.get", asked))["value"] == 1
    assert (await kernel.call(amy, "block.get", {**steps, "version": 2}))["value"] == []
    await kernel.call(amy, "block.restore", {**task, "version": 2})
    assert await value(kernel, amy, report, "task", "effort") == 1
    assert await value(kernel, amy, report, "steps") == ["one"]
    await kernel.call(amy, "block.undo", {"block_id": report})
    assert await value(kernel, amy, report, "task", "effort") == 2
    error = await refused(kernel, amy, "block.get", {**steps, "version": 9})
    assert error.code is ErrorCode.INVALID_PARAMS


async def test_restoring_a_log_takes_later_entries_away_and_undo_brings_them_back(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    block = await make(schema={"type": "log"}, content=["one"])
    await kernel.call(amy, "block.append_log", {"block_id": block, "entry": "two"})
    await kernel.call(amy, "block.restore", {"block_id": block, "version": 1})
    assert await value(kernel, amy, block) == ["one"]
    await kernel.call(amy, "block.undo", {"block_id": block})
    assert await value(kernel, amy, block) == ["one", "two"]


async def test_restoring_changes_what_is_read_only_for_its_source_alone(
    kernel: Kernel, amy: Actor, lsp: Actor, report: str
) -> None:
    raw = {"block_id": report, "section": "diagnostics/raw"}
    await kernel.call(amy, "block.append", {"block_id": report, "section": "notes", "text": "n"})
    await kernel.call(lsp, "block.append", {**raw, "text": "x"})
    error = await refused(kernel, amy, "block.restore", {"block_id": report, "version": 1})
    assert error.code is ErrorCode.READ_ONLY_SECTION
    await kernel.call(amy, "block.restore", {"block_id": report, "section": "notes", "version": 1})
    assert await value(kernel, amy, report, "diagnostics", "raw") == "x"
    await kernel.call(lsp, "block.restore", {"block_id": report, "version": 1})
    assert await value(kernel, amy, report, "diagnostics", "raw") == ""


async def test_restoring_what_would_break_the_schema_is_refused(call: Caller, make: Make) -> None:
    field = {"name": "due", "field_type": "timestamp", "required": True}
    block = await make(schema={"type": "map", "fields": [field]}, content=None)
    await call("block.set_field", block_id=block, field="due", value="2026-01-31T09:30:00Z")
    error = await call.refused("block.restore", block_id=block, version=1)
    assert (error.code, error.details["rule"]) == (ErrorCode.SCHEMA_VIOLATION, "required")
