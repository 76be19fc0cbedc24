"""Appends at the end of a text, behind everything that has been removed there."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from antiphon_kernel.contexts import Context, apply_update
from antiphon_kernel.contexts.history import history_cache
from antiphon_kernel.document.block_text import RUN_BYTES
from antiphon_kernel.document.document import Document
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Make, OpenKernel
from tests.kernel.tools.files import REPORT

LARGE_CLIENT_ID = 1 << 32
"""Behind the kernel's, so that what is written at the same place stands behind what it wrote."""


@dataclass
class Streamed:
    """One text that amy appends to while bo deletes."""

    kernel: Kernel
    amy: Actor
    bo: Actor
    block: str
    section: str | None = None

    async def _call(self, actor: Actor, tool: str, **params: object) -> None:
        await self.kernel.call(actor, tool, {"block_id": self.block, **params})

    async def append(self, text: str, *, stream: bool = False) -> None:
        await self._call(self.amy, "block.append", text=text, section=self.section, stream=stream)

    async def delete(self, offset: int, count: int) -> None:
        params = {"offset": offset, "delete_count": count, "section": self.section}
        await self._call(self.bo, "block.splice", **params)

    async def undo(self) -> None:
        await self._call(self.bo, "block.undo")

    async def context(self) -> Context:
        return await self.kernel.context()

    async def editor(self) -> Document:
        replica = Document(LARGE_CLIENT_ID)
        replica.apply_update((await self.context()).document.update_since())
        return replica

    async def type(self, editor: Document, offset: int, deleted: int, text: str) -> None:
        before = editor.state_vector()
        editor.splice(self.block, offset, deleted, text, self.section)
        update = editor.update_since(before)
        await apply_update(await self.context(), self.bo, update, "client")

    async def begin(self) -> Document:
        """Text that bo typed offline stands between two appends, outside of the first's run."""
        editor = await self.editor()
        await self.append("one ")
        await self.type(editor, 0, 0, "typed ")
        await self.append("two ")
        assert await self.text() == "one typed two "
        editor.apply_update((await self.context()).document.update_since())
        return editor

    async def text(self) -> str:
        return (await self.context()).document.text(self.block, self.section)


@pytest.fixture
async def streamed(kernel: Kernel, amy: Actor, bo: Actor, make: Make) -> Streamed:
    return Streamed(kernel, amy, bo, await make())


@pytest.mark.parametrize("section", [None, "notes"])
async def test_append_stands_behind_what_was_removed_after_another_run(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make, section: str | None
) -> None:
    schema = {"schema": REPORT, "content": None} if section is not None else {}
    streamed = Streamed(kernel, amy, bo, await make(**schema), section)
    await streamed.begin()
    await streamed.delete(4, len("typed two "))
    await streamed.append("three")
    assert await streamed.text() == "one three"
    await streamed.undo()
    assert await streamed.text() == "one typed two three"


async def test_append_stands_behind_a_removed_run_of_a_long_text(streamed: Streamed) -> None:
    long = "a" * RUN_BYTES
    await streamed.append(long)
    await streamed.append("two ")
    await streamed.delete(RUN_BYTES - 1, 5)
    await streamed.append("three")
    await streamed.undo()
    assert await streamed.text() == long + "two three"


async def test_append_after_a_restart_stands_behind_what_was_removed_before(
    streamed: Streamed, open_kernel: OpenKernel
) -> None:
    await streamed.begin()
    await streamed.delete(4, len("typed two "))
    await streamed.kernel.close()
    streamed.kernel = await open_kernel()
    streamed.amy = streamed.kernel.open_session(streamed.kernel.owner, "test")
    streamed.bo = streamed.kernel.open_session(await streamed.kernel.principal("bo"), "test")
    await streamed.append("three")
    await streamed.undo()
    assert await streamed.text() == "one typed two three"


async def test_buffered_append_flushed_after_deletion_stands_before_it(streamed: Streamed) -> None:
    editor = await streamed.begin()
    await streamed.append("three ", stream=True)
    await streamed.type(editor, 4, len("typed two "), "")
    (await streamed.context()).appends.flush(streamed.block)
    await streamed.append("four")
    assert await streamed.text() == "one three four"
    await streamed.undo()
    assert await streamed.text() == "one typed two three four"


async def test_streams_into_more_blocks_than_histories_are_kept_stand_behind_what_was_removed(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_cache, "_KEPT", 4)
    streams = [Streamed(kernel, amy, bo, await make()) for _ in range(8)]
    for one in streams:
        await one.begin()
        await one.delete(4, len("typed two "))
    await asyncio.gather(*(one.append("three", stream=True) for one in streams))
    await kernel.open_contexts.flush()
    for one in streams:
        await one.undo()
        assert await one.text() == "one typed two three"


async def test_append_goes_on_in_the_run_before_if_nothing_was_removed(streamed: Streamed) -> None:
    for _ in range(100):
        await streamed.append("x" * 10)
    document = (await streamed.context()).document
    assert len(document.update_since()) < 2_000
