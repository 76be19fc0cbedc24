"""Extent of one undo: typing, calls and streams, each in one block."""

from __future__ import annotations

import random
from typing import Any

import pytest

from antiphon_kernel.contexts import Broadcast, Context, apply_update
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.history.undo_units import UndoDirection
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.text.splice_diff import apply_script
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


TYPED: dict[str, tuple[list[tuple[int | None, int, str, int]], list[str]]] = {
    "pause": (
        [(None, 0, "he", 100), (None, 0, "llo", 900), (None, 0, " w", 1_000), (None, 0, "or", 200)],
        ["hello", ""],
    ),
    "three seconds": ([(None, 0, "x", 900)] * 8, ["xxxx", ""]),
    "thirty characters": ([(None, 0, "x", 10)] * 70, ["x" * 60, "x" * 30, ""]),
    "newline": ([(None, 0, letter, 100) for letter in "ab\ncd"], ["ab\n", ""]),
    "moved cursor": (
        [(0, 0, "a", 100), (1, 0, "b", 100), (0, 0, "c", 100), (1, 0, "d", 100)],
        ["ab", ""],
    ),
    "deleting": (
        [
            *((None, 0, letter, 100) for letter in "abc"),
            *((2, 1, "", 100), (1, 1, "", 100), (None, 0, "x", 100)),
        ],
        ["a", "abc", ""],
    ),
    "pastes, cuts and kills": (
        [(None, 0, "a", 100), (None, 0, "pasted text", 100), (None, 0, "b", 100)]
        + [(4, 4, "", 100)] * 2,
        ["apastextb", "apasted textb", "apasted text", "a", ""],
    ),
}
"""Ends of units of typing: splices as place (None: the end), characters that go, text and the
milliseconds before; and the text after each undo."""


@pytest.mark.parametrize("case", TYPED)
async def test_undo_of_typing_takes_back_one_run(typist: Typist, block: str, case: str) -> None:
    splices, expected = TYPED[case]
    for at, deleted, text, pause in splices:
        offset = typist.document.length(block) if at is None else at
        await typist.splice(block, offset, deleted, text, pause=pause)
    assert await typist.history(block) == expected


async def test_undo_without_a_block_passes_over_the_callers_draft(
    kernel: Kernel, typist: Typist, context: Context, block: str
) -> None:
    await typist.splice(block, 0, 0, "in a cell")
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


async def test_script_since_a_version_has_nothing_of_what_came_back(
    kernel: Kernel, typist: Typist, context: Context, block: str
) -> None:
    rng = random.Random(3)
    texts = {context.blocks.version(block): ""}
    before_last: int | None = None
    """Version before the last edit, if that is what is undone next."""
    for number in range(40):
        text, at_version = typist.document.text(block), context.blocks.version(block)
        turn = rng.choice(["write", "write", "write", "undo", "undo", "redo", "restore"])
        if turn == "write":
            at = rng.randint(0, len(text))
            gone = min(rng.choice([0, 0, 3, 9]), len(text) - at)
            await typist.splice(block, at, gone, f"<{number}é😀>", pause=9000)
        elif turn == "restore":
            params = {"block_id": block, "version": rng.choice([*texts])}
            await kernel.call(typist.bo, "block.restore", params)
        elif context.undo.rows(typist.bo.principal.id, UndoDirection(turn), block):
            await kernel.call(typist.bo, f"block.{turn}", {"block_id": block})
        texts[context.blocks.version(block)] = now = typist.document.text(block)
        history = await context.history(block)
        for version in rng.sample([*texts], min(5, len(texts))):
            before, script = history.edits_since(None, version)
            assert (before, apply_script(before, script)) == (texts[version], now)
        if turn == "undo" and before_last is not None:
            assert history.edits_since(None, before_last) == (now, [])
        before_last = at_version if turn == "write" else None
