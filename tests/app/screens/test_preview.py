"""A long context is on the screen before its document is here, and stays where it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from antiphon.actions import Mode
from antiphon.render.cell_renderer import CellRenderer
from antiphon.session import LONG_CONTEXT, read_preview
from antiphon.widgets.block_list import PreviewView
from antiphon.widgets.block_list.document_view import NOT_YET
from antiphon_kernel.client.replica import Replica
from antiphon_kernel.document import document as documents
from antiphon_kernel.document.header import read_header
from antiphon_kernel.types.records import BlockHeader
from tests.app.opened import Opened, World, opened
from tests.bench.filled import Filled
from tests.kernel.growth.work import counted_calls
from tests.waiting import until

COUNT = LONG_CONTEXT + 100

LAST = "the end of all"


@pytest.fixture
async def blocks(here: World) -> list[str]:
    """The blocks of a long context, each of some lines."""
    filled = Filled(here.kernel, await here.context())
    made = await filled.add_blocks(COUNT - 21, "some words\n\nof the beginning")
    for number in range(20):
        made += await filled.add_blocks(1, f"some words\n\nof number {number}")
    made += await filled.add_blocks(1, LAST)
    return made


class Held:
    """Keeps the replica from connecting until it is released."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.released = asyncio.Event()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    hold, run = Held(), Replica.run

    async def run_later(replica: Replica) -> None:
        hold.reached.set()
        await hold.released.wait()
        await run(replica)

    monkeypatch.setattr(Replica, "run", run_later)
    return hold


@pytest.fixture
async def waiting(here: World, blocks: list[str], held: Held) -> AsyncIterator[Opened]:
    """The app with a preview of the context, while the replica is kept from connecting."""
    assert blocks
    async with opened(here, live=False) as there:
        await there.sees(LAST)
        yield there
        held.released.set()
        await there.live()


@pytest.fixture
def headers_read(waiting: Opened, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The blocks whose headers are read into memory from now on, by anybody."""
    assert waiting.app.is_running
    found: list[str] = []

    def read(block: str, stored: Mapping[str, Any]) -> BlockHeader:
        found.append(block)
        return read_header(block, stored)

    monkeypatch.setattr(documents, "read_header", read)
    return found


def preview_of(there: Opened) -> PreviewView | None:
    found = there.screen.query(PreviewView)
    return found.first() if found else None


def page(there: Opened) -> list[str]:
    """The rows of the document on the screen, without the scroll bar."""
    return [line[:78].rstrip() for line in there.lines[1:18]]


async def swapped(there: Opened, held: Held) -> None:
    """Let the replica connect, and wait until its document is what is shown."""
    held.released.set()
    await there.live()
    await until(lambda: preview_of(there) is None, "the preview has gone")
    await there.pilot.pause()


async def test_long_context_is_shown_before_its_document_is_here_with_keys_that_are_typed(
    waiting: Opened, held: Held, here: World
) -> None:
    assert not len(waiting.screen.source.document)
    assert waiting.shows("catching up")
    preview = preview_of(waiting)
    assert preview is not None
    preview.edit(preview.cells.source.ids()[-1])
    await until(lambda: waiting.screen.frame.notice.hint == NOT_YET, "a hint")
    await waiting.type("first")
    assert waiting.message == "first"
    before = page(waiting)
    await swapped(waiting, held)
    assert page(waiting) == before
    assert len(waiting.screen.source.document) >= COUNT
    await waiting.edit()
    await waiting.type("now ")
    await waiting.sees(f"now {LAST}")
    assert waiting.screen.mode is Mode.EDIT
    await waiting.press("escape", "i")
    await waiting.type(" then")
    assert waiting.message == "first then"
    await waiting.press("enter")
    await until(lambda: waiting.message == "", "it is sent")
    document = (await here.context()).document
    await until(lambda: document.text(document.block_ids()[-1]) == "first then", "it is stored")


async def test_scrolled_preview_goes_on_at_the_same_place_and_the_rest_is_not_read(
    waiting: Opened, held: Held, headers_read: list[str]
) -> None:
    last = page(waiting)
    await waiting.press("pageup", "pageup")
    await until(lambda: page(waiting) != last, "scrolled")
    before = page(waiting)
    with counted_calls(CellRenderer.update) as drawn:
        await swapped(waiting, held)
        assert page(waiting) == before
        source = waiting.screen.source
        await until(lambda: not source.preload(), "nothing is left to be looked for")
    assert drawn() < 100
    assert 0 < len(headers_read) < 100
    await waiting.press("ctrl+end")
    await until(lambda: page(waiting) == last, "at the end again")


async def test_preview_is_of_the_place_where_the_context_was_left(
    here: World, blocks: list[str], held: Held
) -> None:
    held.released.set()
    async with opened(here) as there:
        there.screen.cells.focus_cell(blocks[250])
        await there.pilot.pause()
        there.screen.cells.scroll_rows(-3)
        await there.pilot.pause()
        before = page(there)
        await there.press("ctrl+q")
    held.released.clear()
    async with opened(here, live=False) as there:
        await until(lambda: page(there) == before, lambda: "\n".join([*before, "", *page(there)]))
        assert not len(there.screen.source.document)
        await swapped(there, held)
        assert page(there) == before
        assert there.screen.cells.focused_cell == blocks[250]


async def test_preview_goes_when_the_kernel_refuses_the_app(
    here: World, blocks: list[str], held: Held
) -> None:
    assert blocks
    async with opened(here, as_name="vic", live=False) as there:
        await there.sees(LAST)
        await here.call("kernel.kick", principal="vic")
        held.released.set()
        await until(lambda: preview_of(there) is None, "the preview has gone")
        assert there.app.session.status.is_rejected
        assert not there.shows(LAST)


async def test_short_context_has_no_preview(here: World, held: Held) -> None:
    await here.cell("some text")
    async with opened(here, live=False) as there:
        await held.reached.wait()
        assert there.app.session.preview is None
        assert preview_of(there) is None
        held.released.set()
        await there.live()


CALLER = {"principal": "0" * 32}


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"count": "many", "blocks": [1]},
        {"count": 10**6, "context_id": "c", "blocks": [1], "members": []},
        {"count": 10**6, "context_id": "c", "blocks": [{"block_id": "x"}], "members": []},
        {"count": 10**6, "context_id": "c", "blocks": [{}], "members": [{"colour": "red"}]},
        {"count": 10**6, "context_id": "c", "blocks": {"a": 1}, "members": None},
    ],
)
def test_page_that_cannot_be_read_is_an_error(answer: dict[str, Any]) -> None:
    with pytest.raises((AttributeError, LookupError, TypeError, ValueError)):
        read_preview(answer, CALLER)
