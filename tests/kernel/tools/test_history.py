"""Every version of a block can be listed, read and brought back; who wrote each character.

Maps, lists, logs and counters as they were at earlier versions, and undo of what calls write: the
oracle replays, for each part of a content, the calls that are in force.
"""

from __future__ import annotations

import asyncio
import os
import random
from dataclasses import dataclass
from typing import Any

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Caller, Make, OpenKernel, refused
from tests.kernel.tools.files import REPORT, value

SEEDS = int(os.environ.get("ANTIPHON_CASES", "20")) // 10


async def content(kernel: Kernel, actor: Actor, block: str, version: int | None = None) -> str:
    asked: dict[str, Any] = {} if version is None else {"version": version}
    return str((await kernel.call(actor, "block.read", {"block_id": block, **asked}))["content"])


async def test_context_history_names_changed_blocks_in_pages(
    kernel: Kernel, call: Caller, bo: Actor, make: Make
) -> None:
    first, second = await make("one\n"), await make("two\n")
    begun = (await call("context.history"))["versions"][-1]["version"]
    await kernel.call(bo, "block.splice", {"block_id": first, "offset": 0, "insert": "X"})
    await call("block.append", block_id=second, text="more")
    seen, after = [], begun
    while True:
        page = await call("context.history", after_version=after, limit=1)
        seen += page["versions"]
        if not page["truncated"]:
            break
        after = page["next"]
    assert [(one["version"], one["username"], one["operation"]) for one in seen] == [
        (begun + 1, "bo", "splice"),
        (begun + 2, "amy", "append"),
    ]
    assert [one["blocks"] for one in seen] == [{first: 2}, {second: 2}]
    assert (await call("context.history", last=2))["versions"] == seen


async def test_long_history_comes_in_pages(call: Caller, make: Make) -> None:
    block = await make("")
    for letter in "abcdefg":
        await call("block.append", block_id=block, text=letter)
    seen, after = [], 0
    while True:
        page = await call("block.history", block_id=block, limit=3, after_version=after)
        seen += [one["version"] for one in page["versions"]]
        if not page["truncated"]:
            break
        after = page["next"]
    assert seen == list(range(1, 9))


async def test_restoring_can_be_undone_and_changes_only_what_differs(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make
) -> None:
    block = await make("one\ntwo\nthree\n")
    await kernel.call(
        bo, "block.splice", {"block_id": block, "offset": 4, "delete_count": 3, "insert": "ZWEI"}
    )
    await kernel.call(amy, "block.restore", {"block_id": block, "version": 1})
    assert await content(kernel, amy, block) == "one\ntwo\nthree\n"
    runs = (await kernel.call(amy, "block.blame", {"block_id": block}))["runs"]
    assert [(run["start"], run["end"], run["version"]) for run in runs] == [
        (0, 4, 1),
        (4, 7, 3),
        (7, 14, 1),
    ]
    await kernel.call(amy, "block.undo", {"block_id": block})
    assert await content(kernel, amy, block) == "one\nZWEI\nthree\n"


async def test_restoring_what_is_there_commits_nothing(call: Caller, make: Make) -> None:
    block = await make("one\n")
    restored = await call("block.restore", block_id=block, version=1)
    assert restored["version"] == 1


async def test_reader_that_breaks_off_takes_nothing_from_another(
    context: Context, amy: Actor, make: Make
) -> None:
    block = await make("before")
    first, second = (asyncio.create_task(context.history(block)) for _ in range(2))
    await asyncio.sleep(0)
    second.cancel()
    context.write(
        amy, "splice", lambda: context.document.splice(block, 0, 6, "after"), blocks=[block]
    )
    await asyncio.wait((second,))
    assert (await first).text() == "after"


async def test_undo_preview_says_how_much_and_changes_nothing(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    block = await make("one two\nthree")
    edit = {"block_id": block, "offset": 4, "delete_count": 3, "insert": "2\n"}
    await kernel.call(amy, "block.splice", edit)
    previewed = await kernel.call(amy, "block.undo", {"block_id": block, "preview": True})
    assert previewed["removed"] == {"characters": 2, "words": 1, "lines": 1}
    assert previewed["restored"] == {"characters": 3, "words": 1, "lines": 1}
    assert (previewed["undone"], previewed["versions"]) == ([block], {})
    assert await content(kernel, amy, block) == "one 2\n\nthree"
    undone = await kernel.call(amy, "block.undo", {"block_id": block})
    assert {**undone, "versions": {}, "context_version": 0} == {**previewed, "context_version": 0}
    assert await content(kernel, amy, block) == "one two\nthree"


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


@pytest.mark.parametrize("seed", range(SEEDS))
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


SCHEMA: dict[str, Any] = {
    "type": "composite",
    "sections": [
        {"name": "notes", "schema": {"type": "text"}},
        {
            "name": "task",
            "schema": {
                "type": "map",
                "fields": [
                    {"name": "effort", "field_type": "number"},
                    {"name": "open", "field_type": "boolean", "default": True},
                    {"name": "votes", "field_type": "counter", "default": 10},
                    {"name": "tags", "field_type": "list"},
                ],
            },
        },
        {"name": "steps", "schema": {"type": "list"}},
    ],
}


@dataclass(eq=False)
class Did:
    who: str
    part: str
    value: Any
    undone: bool = False


class Oracle:
    def __init__(self) -> None:
        self.done: list[Did] = []
        self.stacks: dict[tuple[str, str], list[Did]] = {}

    def did(self, who: str, part: str, value: Any) -> None:
        self.done.append(Did(who, part, value))
        self.stacks.setdefault((who, "undo"), []).append(self.done[-1])
        self.stacks.pop((who, "redo"), None)

    def content(self) -> dict[str, Any]:
        in_force = [one for one in self.done if not one.undone]
        fields = {one.part: one.value for one in in_force if one.part in ("effort", "open")}
        pushed = {part: [one.value for one in in_force if one.part == part] for part in PUSHED}
        return {
            "notes": "".join(pushed["notes"]),
            "task": {
                **fields,
                "effort": fields.get("effort"),
                "open": fields.get("open", True),
                "votes": 10 + sum(one.value for one in in_force if one.part == "votes"),
                "tags": pushed["tags"],
            },
            "steps": pushed["steps"],
        }

    def turn(self, who: str, turn: str) -> bool:
        """The last one whose turning changes anything; false if there is none."""
        before = self.content()
        stack = self.stacks.get((who, turn), [])
        for one in reversed(stack):
            one.undone = turn == "undo"
            if self.content() != before:
                stack.remove(one)
                other = "redo" if turn == "undo" else "undo"
                self.stacks.setdefault((who, other), []).append(one)
                return True
            one.undone = turn != "undo"
        return False


PUSHED = ("notes", "tags", "steps")


async def write(kernel: Kernel, actor: Actor, block: str, part: str, given: Any) -> None:
    if part in ("effort", "open"):
        request = {"section": "task", "field": part, "value": given}
        await kernel.call(actor, "block.set_field", {"block_id": block, **request})
    elif part == "votes":
        request = {"section": "task", "field": part, "by": given}
        await kernel.call(actor, "block.increment", {"block_id": block, **request})
    elif part == "notes":
        text = (await value(kernel, actor, block))["notes"]
        request = {"section": "notes", "offset": len(text), "insert": given}
        await kernel.call(actor, "block.splice", {"block_id": block, **request})
    else:
        place = {"section": "steps"} if part == "steps" else {"section": "task", "field": "tags"}
        await kernel.call(actor, "block.push_item", {"block_id": block, "value": given, **place})


async def turn(kernel: Kernel, actor: Actor, block: str, which: str) -> bool:
    try:
        await kernel.call(actor, f"block.{which}", {"block_id": block})
    except AntiphonError as error:
        if error.code not in (ErrorCode.NOTHING_TO_UNDO, ErrorCode.NOTHING_TO_REDO):
            raise
        return False
    return True


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_turning_a_unit_leaves_what_the_calls_in_force_have_written(
    open_kernel: OpenKernel, seed: int
) -> None:
    rng = random.Random(seed)
    kernel, oracle = await open_kernel(), Oracle()
    names = ("amy", "bo")
    actors = {one: kernel.open_session(await kernel.principal(one), "test") for one in names}
    made = await kernel.call(
        actors["amy"], "block.create", {"role": "user", "kind": "text", "schema": SCHEMA}
    )
    block, number = made["block_id"], 0
    for _ in range(50):
        who = rng.choice(names)
        act = rng.random()
        if act < 0.5:
            number += 1
            part = rng.choice(["effort", "open", "votes", *PUSHED])
            given: Any = {"effort": number, "open": bool(number % 2), "votes": number % 7 + 1}.get(
                part, chr(0x4E00 + number)
            )
            if part == "open" and oracle.content()["task"]["open"] == given:
                continue
            await write(kernel, actors[who], block, part, given)
            oracle.did(who, part, given)
        elif act < 0.75:
            assert await turn(kernel, actors[who], block, "undo") == oracle.turn(who, "undo")
        elif act < 0.95:
            assert await turn(kernel, actors[who], block, "redo") == oracle.turn(who, "redo")
        else:
            await kernel.close()
            kernel = await open_kernel()
            for one in names:
                actors[one] = kernel.open_session(await kernel.principal(one), "test")
        assert await value(kernel, actors["amy"], block) == oracle.content()


async def test_deleted_item_and_an_imported_content_come_back(
    kernel: Kernel, amy: Actor, bo: Actor
) -> None:
    schema = {"type": "list"}
    made = await kernel.call(
        amy,
        "block.create",
        {"role": "user", "kind": "text", "schema": schema, "content": [{"a": 1}, "b", None]},
    )
    block = made["block_id"]
    await kernel.call(bo, "block.delete_item", {"block_id": block, "index": 0})
    await kernel.call(amy, "block.push_item", {"block_id": block, "value": [1, 2.5]})
    assert await value(kernel, amy, block) == ["b", None, [1, 2.5]]
    await kernel.call(bo, "block.undo", {"block_id": block})
    assert await value(kernel, amy, block) == [{"a": 1}, "b", None, [1, 2.5]]
    await kernel.call(bo, "block.redo", {"block_id": block})
    assert await value(kernel, amy, block) == ["b", None, [1, 2.5]]
