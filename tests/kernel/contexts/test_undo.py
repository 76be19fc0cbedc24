"""Undo and redo against a simple oracle: every character is another one, so each can be followed.

A character is in the text if the unit that wrote it is not undone and no unit that removed it is in
force.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import OpenKernel

FIRST = 0x4E00


@dataclass
class Unit:
    made: set[str] = field(default_factory=set)
    took: set[str] = field(default_factory=set)


@dataclass
class Oracle:
    """Who wrote and removed what, as sets of characters."""

    units: list[Unit] = field(default_factory=list)
    stacks: dict[tuple[str, str], list[Unit]] = field(default_factory=dict)
    undone: list[Unit] = field(default_factory=list)

    def wrote(self, who: str, made: str, took: str) -> None:
        if made or took:
            unit = Unit(set(made), set(took))
            self.units.append(unit)
            self.stacks.setdefault((who, "undo"), []).append(unit)
            self.stacks.pop((who, "redo"), None)

    def visible(self) -> set[str]:
        there = {c for unit in self.units if unit not in self.undone for c in unit.made}
        return there - {c for unit in self.units if unit not in self.undone for c in unit.took}

    def turn(self, who: str, turn: str) -> bool:
        """The last unit that changes anything; false if there is none."""
        other = "redo" if turn == "undo" else "undo"
        before = self.visible()
        for unit in reversed(self.stacks.get((who, turn), [])):
            if turn == "undo":
                self.undone.append(unit)
            else:
                self.undone = [one for one in self.undone if one is not unit]
            if self.visible() != before:
                own = self.stacks[who, turn]
                self.stacks[who, turn] = [one for one in own if one is not unit]
                self.stacks.setdefault((who, other), []).append(unit)
                return True
            if turn == "undo":
                self.undone = [one for one in self.undone if one is not unit]
            else:
                self.undone.append(unit)
        return False


class Stage:
    """Three people at one text, and the oracle beside it."""

    def __init__(self, kernel: Kernel, actors: dict[str, Actor], block: str) -> None:
        self.kernel = kernel
        self.actors = actors
        self.block = block
        self.oracle = Oracle()
        self.next = FIRST
        self.seen: dict[str, int] = {}

    async def text(self) -> str:
        read = await self.kernel.call(self.kernel.system, "block.read", {"block_id": self.block})
        return str(read["content"])

    async def write(self, who: str, rng: random.Random) -> None:
        text = await self.text()
        offset = rng.randint(0, len(text))
        count = rng.randint(0, min(4, len(text) - offset)) if rng.random() < 0.6 else 0
        size = rng.randint(0 if count else 1, 4)
        made = "".join(chr(self.next + i) for i in range(size))
        self.next += size
        params = {"block_id": self.block, "offset": offset, "delete_count": count, "insert": made}
        await self.kernel.call(self.actors[who], "block.splice", params)
        self.oracle.wrote(who, made, text[offset : offset + count])

    async def turn(self, who: str, turn: str) -> bool:
        params = {"block_id": self.block, "principal": who}
        try:
            await self.kernel.call(self.actors[who], f"block.{turn}", params)
        except AntiphonError as error:
            if error.code not in (ErrorCode.NOTHING_TO_UNDO, ErrorCode.NOTHING_TO_REDO):
                raise
            return False
        return True

    async def check(self, before: str) -> None:
        text = await self.text()
        assert len(set(text)) == len(text), "a character is there twice"
        assert set(text) == self.oracle.visible()
        stayed = set(before) & set(text)
        assert [c for c in before if c in stayed] == [c for c in text if c in stayed]


async def staged(kernel: Kernel) -> Stage:
    actors = {"amy": kernel.open_session(kernel.owner, "test")}
    for name in ("bo", "cy"):
        actors[name] = kernel.open_session(await kernel.principal(name), "test")
    made = await kernel.call(actors["amy"], "block.create", {"role": "system", "kind": "text"})
    return Stage(kernel, actors, made["block_id"])


@pytest.mark.parametrize("seed", range(25))
async def test_each_turn_changes_what_its_unit_did_and_nothing_else(
    open_kernel: OpenKernel, seed: int
) -> None:
    rng = random.Random(seed)
    stage = await staged(await open_kernel())
    for _ in range(60):
        who, act = rng.choice(sorted(stage.actors)), rng.random()
        before = await stage.text()
        if act < 0.45:
            await stage.write(who, rng)
        elif act < 0.95:
            turn = "undo" if rng.random() < 0.6 else "redo"
            assert await stage.turn(who, turn) == stage.oracle.turn(who, turn)
        else:
            await stage.kernel.close()
            stage.kernel = kernel = await open_kernel()
            for name in stage.actors:
                stage.actors[name] = kernel.open_session(await kernel.principal(name), "test")
        await stage.check(before)


@pytest.mark.parametrize("seed", range(10))
async def test_undoing_everything_leaves_the_others_alone_and_redoing_gives_it_back(
    open_kernel: OpenKernel, seed: int
) -> None:
    rng = random.Random(1000 + seed)
    stage = await staged(await open_kernel())
    for _ in range(40):
        await stage.write(rng.choice(sorted(stage.actors)), rng)
    whole = await stage.text()
    others = {c for unit in stage.oracle.units for c in unit.made}
    others -= {c for unit in stage.oracle.stacks.get(("amy", "undo"), []) for c in unit.made}
    turns = 0
    while await stage.turn("amy", "undo"):
        turns += 1
    left = await stage.text()
    assert set(whole) & others <= set(left) <= others
    await stage.kernel.close()
    stage.kernel = kernel = await open_kernel()
    stage.actors["amy"] = kernel.open_session(kernel.owner, "test")
    for _ in range(turns):
        assert await stage.turn("amy", "redo")
    assert not await stage.turn("amy", "redo")
    assert await stage.text() == whole
