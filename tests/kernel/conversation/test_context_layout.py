"""The layout of a context follows its document, also while it is read."""

from __future__ import annotations

import asyncio
import operator
import random
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.conversation import ContextLayout, current_layout, layout_of
from antiphon_kernel.conversation.context_layout import READERS_KEPT
from antiphon_kernel.layout import read_layout
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.records import Actor
from tests.bench.filled import Filled, filled


async def test_layout_that_is_loaded_while_somebody_writes_is_up_to_date(tmp_path: Path) -> None:
    async with filled(tmp_path) as kernel:
        first, *_, last = await kernel.add_blocks(1_200, "Hello")
        context = kernel.context
        loading = asyncio.create_task(current_layout(context))
        await asyncio.sleep(0)
        for block in (first, last):
            await kernel.call("block.splice", block_id=block, offset=0, insert="Well. ")
        await loading
        assert layout_of(context).arranged() == ContextLayout(context.document).arranged()
        texts = [turn.items[1].block.text for turn in layout_of(context).arranged().turns]
        assert texts[0] == texts[-1] == "Well. Hello"


STEPS = 25


class Edits:
    """People and a model who write in a context at random."""

    def __init__(self, filled: Filled, rng: random.Random, writers: Sequence[Actor]) -> None:
        self._filled = filled
        self._rng = rng
        self._writers = writers
        self._rounds = 0
        self.made = set[str]()
        """Changes that the kernel has taken, by name."""

    async def step(self) -> None:
        """Make one change; those that the kernel refuses change nothing."""
        blocks = list(self._filled.context.document.block_ids())
        changes = (self._ask, self._append, self._splice, self._move, self._exclude)
        others = (self._delete, self._undo, self._compact, self._expand)
        change = self._rng.choice((*changes, *changes, *others)) if blocks else self._append
        actor = self._rng.choice(self._writers)
        with suppress(AntiphonError):
            await change(actor, self._rng.choice(blocks or [""]))
            self.made.add(change.__name__)

    async def _call(self, actor: Actor, tool: str, **params: Any) -> dict[str, Any]:
        return await self._filled.kernel.call(actor, tool, params)

    async def _ask(self, actor: Actor, block: str) -> None:
        role = "model" if actor.principal.kind is PrincipalKind.MODEL else "user"
        parent = {"parent_id": block} if role == "model" else {}
        said = {"kind": "text", "content": f"[TURN {block[-3:]}", "status": "done", **parent}
        await self._call(actor, "block.create", role=role, **said)

    async def _append(self, actor: Actor, block: str) -> None:
        self._rounds += 1
        use = {"type": "tool-use", "id": f"c{self._rounds}", "name": "ls", "parameters": {}}
        messages = [
            {"role": "user", "content": f"Question {self._rounds}"},
            {"role": "assistant", "content": [use]},
            {"role": "tool", "tool_call_id": use["id"], "content": '{"found": []}'},
        ]
        placed = await self._call(self._writers[0], "message.path", context="default")
        last = [one["message_id"] for one in placed["messages"]][-1:]
        parent = {"parent": last[0]} if last else {}
        await self._call(self._writers[0], "message.append", messages=messages, **parent)

    async def _splice(self, actor: Actor, block: str) -> None:
        await self._call(actor, "block.splice", block_id=block, offset=0, insert="Well. ")

    async def _move(self, actor: Actor, block: str) -> None:
        other = self._rng.choice(list(self._filled.context.document.block_ids()))
        await self._call(actor, "block.move", block_id=block, after=other)

    async def _exclude(self, actor: Actor, block: str) -> None:
        excluded = self._rng.random() < 0.7
        await self._call(self._writers[0], "block.exclude", block_id=block, excluded=excluded)

    async def _delete(self, actor: Actor, block: str) -> None:
        await self._call(
            self._writers[0], "message.delete", messages=[block], descendants="reparent"
        )

    async def _undo(self, actor: Actor, block: str) -> None:
        await self._call(actor, "block.undo")

    async def _compact(self, actor: Actor, block: str) -> None:
        await self._call(self._writers[0], "context.compact", keep_turns=2)

    async def _expand(self, actor: Actor, block: str) -> None:
        await self._call(self._writers[0], "context.expand")


@pytest.mark.parametrize("seed", range(2))
async def test_reading_after_each_edit_is_that_of_a_layout_read_anew(
    tmp_path: Path, seed: int
) -> None:
    async with filled(tmp_path) as kernel:
        ben = await kernel.kernel.principal("ben")
        opus = await kernel.kernel.principal("opus", PrincipalKind.MODEL)
        sessions = [kernel.kernel.open_session(one, "test") for one in (ben, opus)]
        context, document = kernel.context, kernel.context.document
        edits = Edits(kernel, random.Random(seed), [kernel.owner, *sessions])
        for _ in range(STEPS):
            await edits.step()
            await current_layout(context)
            for model in (opus.id, kernel.kernel.owner.id, None):
                anew = read_layout(ContextLayout(document).arranged(), model)
                reading = layout_of(context).read(model)
                assert reading.items == anew.items
                assert reading.request() == anew.request()
                assert reading.message_tokens() == anew.message_tokens()
        assert len(edits.made) > 5, edits.made


async def test_readings_of_the_readers_that_read_last_are_kept_and_no_others(
    tmp_path: Path,
) -> None:
    async with filled(tmp_path) as kernel:
        await kernel.add_blocks(3, "Hello")
        layout = layout_of(kernel.context)
        models = [f"{number:032}" for number in range(READERS_KEPT + 1)]
        parts = [layout.read(model).parts for model in models]
        again = [layout.read(model).parts for model in reversed(models)]
        kept = [all(map(operator.is_, *two)) for two in zip(parts, reversed(again), strict=True)]
        assert kept == [False] + [True] * READERS_KEPT


async def test_path_and_turn_of_a_block_are_found(tmp_path: Path) -> None:
    async with filled(tmp_path) as kernel:
        blocks = await kernel.add_blocks(3, "Hello")
        layout = layout_of(kernel.context)
        for turn in layout.arranged().turns:
            item = turn.items[1]
            assert item.path is not None
            assert layout.find(item.path) == item.block.id
            assert layout.turn_of(item.block.id) == turn.id
        assert layout.turn_of(blocks[0] + "0") is None
