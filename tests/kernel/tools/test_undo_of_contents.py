"""Undo and redo of what a call writes into a field, a list, a counter or a section.

The oracle replays, for each part of a content, the calls that are in force.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import OpenKernel

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


async def write(kernel: Kernel, actor: Actor, block: str, part: str, value: Any) -> None:
    if part in ("effort", "open"):
        request = {"section": "task", "field": part, "value": value}
        await kernel.call(actor, "block.set_field", {"block_id": block, **request})
    elif part == "votes":
        request = {"section": "task", "field": part, "by": value}
        await kernel.call(actor, "block.increment", {"block_id": block, **request})
    elif part == "notes":
        text = (await content(kernel, actor, block))["notes"]
        request = {"section": "notes", "offset": len(text), "insert": value}
        await kernel.call(actor, "block.splice", {"block_id": block, **request})
    else:
        place = {"section": "steps"} if part == "steps" else {"section": "task", "field": "tags"}
        await kernel.call(actor, "block.push_item", {"block_id": block, "value": value, **place})


async def content(kernel: Kernel, actor: Actor, block: str) -> dict[str, Any]:
    found: dict[str, Any] = await value(kernel, actor, block)
    return found


async def value(kernel: Kernel, actor: Actor, block: str) -> Any:
    return (await kernel.call(actor, "block.get", {"block_id": block}))["value"]


async def turn(kernel: Kernel, actor: Actor, block: str, which: str) -> bool:
    try:
        await kernel.call(actor, f"block.{which}", {"block_id": block})
    except AntiphonError as error:
        if error.code not in (ErrorCode.NOTHING_TO_UNDO, ErrorCode.NOTHING_TO_REDO):
            raise
        return False
    return True


@pytest.mark.parametrize("seed", range(12))
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
            value: Any = {"effort": number, "open": bool(number % 2), "votes": number % 7 + 1}.get(
                part, chr(0x4E00 + number)
            )
            if part == "open" and oracle.content()["task"]["open"] == value:
                continue
            await write(kernel, actors[who], block, part, value)
            oracle.did(who, part, value)
        elif act < 0.75:
            assert await turn(kernel, actors[who], block, "undo") == oracle.turn(who, "undo")
        elif act < 0.95:
            assert await turn(kernel, actors[who], block, "redo") == oracle.turn(who, "redo")
        else:
            await kernel.close()
            kernel = await open_kernel()
            for one in names:
                actors[one] = kernel.open_session(await kernel.principal(one), "test")
        assert await content(kernel, actors["amy"], block) == oracle.content()


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
