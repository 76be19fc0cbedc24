"""Extent of one undo: typing, calls and streams, each in one block."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon_kernel.contexts import Broadcast, Context, apply_update
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.history.undo_units import UndoDirection
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.clocks import ManualClock
from tests.kernel.kernel.calls import Make, refused


class Typist:
    """bo at a replica, who hears at once of what others and the kernel write."""

    def __init__(self, kernel: Kernel, context: Context, bo: Actor, clock: ManualClock) -> None:
        self.kernel, self.context, self.bo, self.clock = kernel, context, bo, clock
        self.document = Document(4711)
        self.document.apply_update(context.document.update_since())
        context.committed.listen(self._hear)
        self._sent = self.document.state_vector()

    def _hear(self, one: Broadcast) -> None:
        if one.source is None:
            self.document.apply_update(one.update)

    async def type(self, block: str, text: str, at: int | None = None, *, pause: int = 100) -> None:
        offset = self.document.length(block) if at is None else at
        await self.splice(block, offset, 0, text, pause=pause)

    async def splice(
        self, block: str, offset: int, deleted: int, text: str = "", *, pause: int = 100
    ) -> None:
        self.document.splice(block, offset, deleted, text)
        await self.send(pause)

    async def send(self, pause: int = 100) -> None:
        self.clock.ms += pause
        update = self.document.update_since(self._sent)
        self._sent = self.document.state_vector()
        await apply_update(self.context, self.bo, update, "client")

    async def undo(self, **params: Any) -> str | None:
        """Undo once and return the block that was changed; None if there is nothing to undo."""
        undone = await self.kernel.call(self.bo, "block.undo", params)
        (block,) = undone["undone"]
        return str(block)

    async def history(self, block: str) -> list[str]:
        """Undo until nothing is left; returns the text after each step."""
        texts = []
        while self.context.undo.rows(self.bo.principal.id, UndoDirection.UNDO, block):
            await self.undo(block_id=block)
            texts.append(self.context.document.text(block))
        return texts


@pytest.fixture
async def block(make: Make) -> str:
    return await make("", status="done")


@pytest.fixture
async def typist(
    kernel: Kernel, context: Context, bo: Actor, clock: ManualClock, block: str
) -> Typist:
    return Typist(kernel, context, bo, clock)


async def test_undo_of_typing_takes_back_what_was_typed_without_a_pause(
    typist: Typist, block: str
) -> None:
    for pause, text in ((100, "he"), (900, "llo"), (1_000, " w"), (200, "or")):
        await typist.type(block, text, pause=pause)
    assert await typist.history(block) == ["hello", ""]


async def test_undo_of_typing_takes_back_no_more_than_three_seconds(
    typist: Typist, block: str
) -> None:
    for _ in range(8):
        await typist.type(block, "x", pause=900)
    assert await typist.history(block) == ["xxxx", ""]


async def test_undo_of_typing_takes_back_no_more_than_thirty_characters(
    typist: Typist, block: str
) -> None:
    for _ in range(70):
        await typist.type(block, "x", pause=10)
    assert list(map(len, await typist.history(block))) == [60, 30, 0]


async def test_undo_of_typing_stops_at_a_newline(typist: Typist, block: str) -> None:
    for letter in "ab\ncd":
        await typist.type(block, letter)
    assert await typist.history(block) == ["ab\n", ""]


async def test_undo_of_typing_stops_where_the_cursor_was_moved(typist: Typist, block: str) -> None:
    for letter, at in (("a", 0), ("b", 1), ("c", 0), ("d", 1)):
        await typist.type(block, letter, at)
    assert await typist.history(block) == ["ab", ""]


async def test_undo_of_typing_stops_where_deleting_began(typist: Typist, block: str) -> None:
    for letter in "abc":
        await typist.type(block, letter)
    for at in (2, 1):
        await typist.splice(block, at, 1)
    await typist.type(block, "x")
    assert await typist.history(block) == ["a", "abc", ""]


async def test_undo_of_pastes_cuts_and_kills_takes_back_one_each(
    typist: Typist, block: str
) -> None:
    await typist.type(block, "a")
    await typist.type(block, "pasted text")
    await typist.type(block, "b")
    await typist.splice(block, 4, 4)
    await typist.splice(block, 4, 4)
    history = await typist.history(block)
    assert history == ["apastextb", "apasted textb", "apasted text", "a", ""]


async def test_undo_of_an_update_of_several_blocks_changes_the_one_that_is_named(
    typist: Typist, context: Context, block: str, make: Make
) -> None:
    others = [await make("", status="done") for _ in range(2)]
    typist.document.apply_update(context.document.update_since())
    for one in (block, *others):
        typist.document.splice(one, 0, 0, "typed offline")
    await typist.send()
    assert await typist.undo(block_id=others[0]) == others[0]
    texts = [context.document.text(one) for one in (block, *others)]
    assert texts == ["typed offline", "", "typed offline"]
    await typist.kernel.call(typist.bo, "block.redo", {"block_id": others[0]})
    assert context.document.text(others[0]) == "typed offline"


async def test_undo_without_a_block_passes_over_the_callers_draft(
    kernel: Kernel, typist: Typist, context: Context, block: str
) -> None:
    await typist.type(block, "in a cell")
    fields = {"kind": "text", "role": "user", "status": "pending", "content": "a message"}
    made = await kernel.call(typist.bo, "block.create", fields)
    draft = made["block_id"]
    assert context.document.is_draft(draft)
    assert await typist.undo() == block
    error = await refused(kernel, typist.bo, "block.undo", {})
    assert error.code is ErrorCode.NOTHING_TO_UNDO
    assert await typist.undo(block_id=draft) == draft


async def test_undo_of_plain_appends_takes_back_one_call(
    kernel: Kernel, context: Context, bo: Actor, make: Make
) -> None:
    block = await make("")
    for text in ("one ", "two "):
        await kernel.call(bo, "block.append", {"block_id": block, "text": text})
    await kernel.call(bo, "block.undo", {"block_id": block})
    assert context.document.text(block) == "one "


@pytest.mark.parametrize(("model", "left"), [(False, "one two "), (True, "")])
async def test_undo_of_streams_takes_back_the_last_run(
    kernel: Kernel, context: Context, clock: ManualClock, make: Make, model: bool, left: str
) -> None:
    prompt = await make("?", status="done")
    kind = PrincipalKind.MODEL if model else PrincipalKind.HUMAN
    aria = kernel.open_session(await kernel.principal("aria", kind), "test")
    block = await make("", role="model", parent_id=prompt)
    for text, pause in (("one ", 1_000), ("two ", 3_000), ("three ", 1_000), ("four", 0)):
        await kernel.call(aria, "block.append", {"block_id": block, "text": text, "stream": True})
        context.appends.flush(block)
        clock.ms += pause
    await kernel.call(aria, "block.undo", {"block_id": block})
    assert context.document.text(block) == left
