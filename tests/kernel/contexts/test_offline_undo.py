"""People type offline into several cells, come back, and undo in between.

Every character is another one, so that each can be followed: an undo changes one block, and there
only what its author has written or removed.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest

from antiphon_kernel.contexts import Context, apply_large_update
from antiphon_kernel.contexts.undo_stack import StackChange, UndoStacks
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.history.undo_units import UndoDirection
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.storage import UndoRow
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import OpenKernel

SEEDS = int(os.environ.get("ANTIPHON_CASES", "45")) // 15
FIRST = 0x4E00
NAMES = ("bo", "cy")


class Offline:
    """One person's replica, and what they have typed and deleted: characters by block."""

    def __init__(self, number: int) -> None:
        self.client = 7_000 + number
        self.document = Document(self.client)
        self.made: dict[str, set[str]] = {}
        self.took: dict[str, set[str]] = {}
        self.undone: set[str] = set()
        """Characters that undo has taken out of texts, and redo can bring back."""
        self.undone_for_good: set[str] = set()
        """The same, after which they wrote on: nothing is left to redo."""
        self.has_typed = False

    def own(self, block: str) -> set[str]:
        return self.made.get(block, set()) | self.took.get(block, set())

    def hear(self, context: Context) -> None:
        self.document.apply_update(context.document.update_since())

    async def send(self, context: Context, actor: Actor) -> None:
        update = self.document.update_since(context.document.state_vector())
        await (await apply_large_update(context, actor, update, "client", catching_up=True))
        self.hear(context)
        if self.has_typed:
            self.undone_for_good |= self.undone
            self.undone.clear()
        self.has_typed = False


class Stage:
    def __init__(self, kernel: Kernel, blocks: list[str], rng: Random) -> None:
        self.kernel, self.blocks, self.rng = kernel, blocks, rng
        self.people = {name: Offline(at) for at, name in enumerate(NAMES)}
        self.actors: dict[str, Actor] = {}
        self.next = FIRST

    async def enter(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.context = await kernel.context()
        for name, one in self.people.items():
            self.actors[name] = kernel.open_session(await kernel.principal(name), "test")
            one.hear(self.context)

    def texts(self) -> dict[str, str]:
        return {block: self.context.document.text(block) for block in self.blocks}

    def type_offline(self, name: str) -> None:
        one, rng = self.people[name], self.rng
        one.has_typed = True
        for block in rng.sample(self.blocks, rng.randint(1, len(self.blocks))):
            for _ in range(rng.randint(1, 3)):
                text = one.document.text(block)
                at = rng.randint(0, len(text))
                gone = text[at : at + rng.choice((0, 0, 1, 2))]
                new = "".join(chr(self.next + i) for i in range(rng.randint(1, 4)))
                self.next += len(new)
                one.document.splice(block, at, len(gone), new)
                one.made.setdefault(block, set()).update(new)
                one.took.setdefault(block, set()).update(gone)

    async def turn(self, name: str, tool: str, block: str | None) -> bool:
        """Undo or redo; check that one block changes, and there what is the person's own."""
        before = self.texts()
        params = {"block_id": block} if block is not None else {}
        try:
            answer = await self.kernel.call(self.actors[name], f"block.{tool}", params)
        except AntiphonError as error:
            if error.code not in (ErrorCode.NOTHING_TO_UNDO, ErrorCode.NOTHING_TO_REDO):
                raise
            return False
        (changed,) = answer["undone"]
        assert block in (None, changed)
        after, person = self.texts(), self.people[name]
        for one in self.blocks:
            moved = set(after[one]) ^ set(before[one])
            assert moved <= person.own(changed) if one == changed else not moved
            assert len(set(after[one])) == len(after[one]), "a character is there twice"
        gone, came = set(before[changed]) - set(after[changed]), set(after[changed])
        for other in self.people.values():
            other.undone -= came
        if tool == "undo":
            person.undone |= gone
        return True

    async def check_nothing_is_lost(self) -> None:
        """Redo all that can be redone: what nobody has deleted is there."""
        for name in NAMES:
            while await self.turn(name, "redo", None):
                pass
        for block, text in self.texts().items():
            took = set[str]().union(*(one.took.get(block, ()) for one in self.people.values()))
            for one in self.people.values():
                left = one.made.get(block, set()) - took - one.undone_for_good
                assert left <= set(text), "typed text is nowhere"


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_undo_between_offline_edits_of_several_cells_changes_one_block_of_one_author(
    open_kernel: OpenKernel, seed: int
) -> None:
    rng = Random(seed)
    kernel = await open_kernel()
    amy = kernel.open_session(kernel.owner, "test")
    fields = {"role": "user", "kind": "text", "status": "done", "content": ""}
    blocks = [(await kernel.call(amy, "block.create", fields))["block_id"] for _ in range(3)]
    stage = Stage(kernel, blocks, rng)
    await stage.enter(kernel)
    for _ in range(25):
        name, act = rng.choice(NAMES), rng.random()
        if act < 0.4:
            stage.type_offline(name)
        elif act < 0.6:
            await stage.people[name].send(stage.context, stage.actors[name])
        elif act < 0.95:
            tool = "undo" if rng.random() < 0.6 else "redo"
            await stage.turn(name, tool, rng.choice((None, *blocks)))
        else:
            for one in NAMES:
                await stage.people[one].send(stage.context, stage.actors[one])
            await stage.kernel.close()
            await stage.enter(await open_kernel())
    for name in NAMES:
        await stage.people[name].send(stage.context, stage.actors[name])
    await stage.check_nothing_is_lost()


async def test_undo_that_takes_back_what_others_wrote_is_noticed(
    open_kernel: OpenKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, record, people = UndoStacks.rows, UndoStacks.record, dict[str, None]()

    def of_everybody(
        stacks: UndoStacks, _: str, turn: UndoDirection, block: str | None
    ) -> list[UndoRow]:
        return [row for name in people for row in rows(stacks, name, turn, block)]

    def recorded(stacks: UndoStacks, actor: Actor, *args: Any) -> StackChange:
        people[actor.principal.id] = None
        return record(stacks, actor, *args)

    monkeypatch.setattr(UndoStacks, "record", recorded)
    monkeypatch.setattr(UndoStacks, "rows", of_everybody)
    with pytest.raises(AssertionError):
        await test_undo_between_offline_edits_of_several_cells_changes_one_block_of_one_author(
            open_kernel, 0
        )
