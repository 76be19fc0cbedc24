"""Cost of a key, a token and a frame, whatever there is beside them, and of one long cell.

A long cell costs what is seen of it: counted in lines that are drawn.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot

from antiphon.render.cell_renderer import CellRenderer
from antiphon.render.wrap import compose
from antiphon.widgets.block_list import BlockList
from antiphon.widgets.editor import labelled
from antiphon_kernel.types.enums import BlockKind, Status
from tests.app.widgets.block_list.sample import Sample, SampleApp, on_screen
from tests.kernel.growth.work import counted_calls

FEW, MANY = 34, 340
"""Turns of three blocks: about 100 and 1,000 blocks."""
ROUNDS = 4


async def costs(turns: int) -> tuple[dict[str, int], dict[str, int]]:
    """Functions called for the cheapest of many frames of each kind, and cells drawn for them."""
    sample = Sample()
    sample.add_turns(turns)
    called: dict[str, int] = {}
    drawn: dict[str, int] = {}
    async with on_screen(sample, size=(100, 30)) as (app, pilot):
        cells = app.cells
        while app.source.preload(1000):
            pass

        def measure(name: str, act: Callable[[int], object]) -> None:
            counts = []
            for number in range(ROUNDS):
                with counted_calls() as count:
                    act(number)
                    cells.draw()
                counts.append(count())
            called[name] = min(counts)
            with counted_calls(CellRenderer.update) as count:
                act(ROUNDS)
                cells.draw()
            drawn[name] = count()

        measure("scroll up", lambda _: cells.scroll_rows(-3))
        measure("scroll down", lambda _: cells.scroll_rows(3))
        block = sample.add("", status=Status.RUNNING)
        cells.to_tail()
        measure("stream", lambda number: sample.peer.append(block, f"token {number} "))
        first = sample.here.block_ids()[0]
        measure("off screen", lambda number: sample.peer.splice(first, 0, 0, f"edit {number} "))
        app.area.edit(sample.here.block_ids()[-2], 3)
        await pilot.pause()
        editor = app.area.editor
        assert editor is not None
        measure("key", lambda _: editor.insert("x", maintain_selection_offset=False))
    return called, drawn


@pytest.mark.usefixtures("own_home")
async def test_frames_cost_the_same_at_a_hundred_and_at_a_thousand_blocks() -> None:
    few, few_drawn = await costs(FEW)
    many, many_drawn = await costs(MANY)
    assert few_drawn == many_drawn
    grown = {name: many[name] / few[name] for name in few}
    assert max(grown.values()) < 1.5, grown


async def test_token_in_a_paragraph_draws_the_row_that_it_is_in() -> None:
    sample = Sample()
    block = sample.add("", status=Status.RUNNING)
    async with on_screen(sample, size=(100, 30)) as (app, _):
        sample.peer.append(block, "words of a paragraph " * 40)
        app.cells.draw()
        with counted_calls(labelled) as drawn:
            sample.peer.append(block, "on")
            app.cells.draw()
    assert drawn() == 1


LONG = {
    "prose": (BlockKind.TEXT, "A *paragraph* of words to read.\n\n" * 2_000),
    "file": (BlockKind.FILE, "".join(f"value_{n} = {n}\n" for n in range(7_000))),
    "output": (BlockKind.TOOL_RESULT, "".join(f"line {n} of it\n" for n in range(3_000))),
    "one line": (BlockKind.TEXT, "words and words " * 12_500),
}
MOST = 1_500
"""Lines that one act may draw: of the few parts of the text around the view."""


@asynccontextmanager
async def opened(name: str) -> AsyncIterator[tuple[SampleApp, Pilot[None], str]]:
    kind, text = LONG[name]
    sample = Sample()
    sample.add("before")
    block = sample.add(text, kind=kind)
    sample.add("after")
    async with on_screen(sample, size=(100, 30)) as (app, pilot):
        app.source.set_folded([block], False)
        app.cells.focus_cell(block)
        app.cells.draw()
        yield app, pilot, block


def shown(cells: BlockList) -> list[str]:
    return [cells.render_line(y).text.rstrip() for y in range(cells.size.height)]


@pytest.fixture
def lines_drawn() -> Iterator[Callable[[], int]]:
    with counted_calls(compose) as count:
        yield count


@pytest.mark.parametrize("name", LONG)
async def test_long_cell_draws_what_is_seen(name: str, lines_drawn: Callable[[], int]) -> None:
    async with opened(name) as (app, pilot, block):
        cells, source = app.cells, app.source
        length = len(source.text(block))
        drawn = [0]

        async def settle(what: str) -> None:
            cells.draw()
            await pilot.pause()
            drawn.append(lines_drawn())
            assert drawn[-1] - drawn[-2] <= MOST, what

        await settle("opening")
        assert drawn[-1] > 0
        cells.page(1)
        await settle("paging down")
        cells.toggle_fold(block)
        await settle("folding")
        cells.toggle_fold(block)
        await settle("opening again")
        cells.reveal(block, length // 2)
        await settle("going to a place")
        assert cells.shown.is_shown(block, length // 2)
        cells.page(-1)
        await settle("paging up")
        if name != "output":
            assert app.area.edit(block, length // 2)
            await settle("entering EDIT")
            assert app.area.editor is not None
            app.area.editor.insert("typed")
            await settle("typing")
            app.area.leave()
            await settle("leaving EDIT")
        app.theme = "textual-light"
        await settle("another theme")
        await pilot.resize_terminal(80, 30)
        await settle("another width")
        cells.to_tail()
        await settle("going to the end")
        assert any("after" in row for row in shown(cells))


@pytest.mark.parametrize("name", LONG)
async def test_scrolling_through_a_long_cell_shows_each_row_once(name: str) -> None:
    async with opened(name) as (app, _, block):
        cells = app.cells
        cells.reveal(block, len(app.source.text(block)) // 2)
        cells.draw()
        for direction in (1, -1):
            for _ in range(8):
                before = shown(cells)
                cells.scroll_rows(7 * direction)
                cells.draw()
                after = shown(cells)
                # The first row is a running head.
                if direction > 0:
                    assert after[1:-7] == before[8:]
                else:
                    assert after[8:] == before[1:-7]


async def test_view_in_a_long_cell_stays_while_others_write_above_it_in_the_cell() -> None:
    async with opened("prose") as (app, pilot, block):
        cells = app.cells
        offset = len(app.source.text(block)) // 2
        cells.reveal(block, offset)
        cells.draw()
        before = shown(cells)
        for number in range(20):
            app.sample.peer.splice(block, 100 * number, 0, f"New {number}.\n\n")
            cells.draw()
        await pilot.pause()
        assert [row[2:] for row in shown(cells)] == [row[2:] for row in before]
