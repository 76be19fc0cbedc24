"""The plain way to show a conversation: a Textual list with a Markdown widget for each block.

What the app's list costs is held against it, in the same process: processor time until nothing is
left to do.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Markdown, TextArea

from tests.app.widgets.block_list.sample import ANSWER, Sample, SampleApp
from tests.bench.figures import Figure, figure
from tests.waiting import screen_updated

PLAIN: Final = "a plain Textual list"
SIZES: Final = (100, 1_000)
TOKEN: Final = "word "
SCROLLED: Final = 3
"""Rows that one turn of the wheel scrolls."""

PLAIN_FRAMES: Final = 5
"""Of the plain list, in which a word at the end takes a second."""

LONG: Final = "A *paragraph* of some words, with `code`, to be read and edited.\n\n" * 16_000


class PlainList(App[None]):
    """A scrolling column of Markdown."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__()
        self.animation_level = "none"
        self._texts = texts
        self._column = VerticalScroll()

    def compose(self) -> ComposeResult:
        with self._column:
            for text in self._texts:
                yield Markdown(text)

    def on_mount(self) -> None:
        self._column.anchor()

    async def scroll(self, rows: int) -> None:
        self._column.scroll_relative(y=rows, animate=False)

    async def append(self, text: str) -> None:
        await self.query(Markdown).last().append(text)

    async def edit(self, text: str) -> None:
        """Put an editor with a text in the place of the last block."""
        last = self.query(Markdown).last()
        editor = TextArea(text)
        await self._column.mount(editor, after=last)
        await last.remove()
        editor.focus()


class OwnList(SampleApp):
    """The list of the app."""

    def __init__(self, texts: Sequence[str]) -> None:
        sample = Sample()
        for text in texts:
            self._last = sample.add(text)
        super().__init__(sample)

    async def scroll(self, rows: int) -> None:
        self.cells.scroll_rows(rows)

    async def append(self, text: str) -> None:
        self.sample.peer.append(self._last, text)
        self.cells.draw()

    async def edit(self, text: str) -> None:
        """Open the editor on the last block, which has this text."""
        self.area.edit(self._last, 0)


async def cost(action: Callable[[], Awaitable[object]]) -> float:
    """Return the milliseconds of processor time of an action and of all that follows from it."""
    began = time.process_time()
    await action()
    await screen_updated()
    return (time.process_time() - began) * 1000


async def list_costs(
    make: type[PlainList] | type[OwnList], blocks: int, frames: int, size: tuple[int, int]
) -> dict[str, list[float]]:
    """Return the costs of opening a list, of scrolling in it, and of text that comes to its end."""
    app = make([ANSWER.format(number) for number in range(blocks)])
    gc.collect()
    opening = app.run_test(size=size)
    costs = {"open": [await cost(opening.__aenter__)]}
    try:
        costs["scroll"] = [await cost(lambda: app.scroll(-SCROLLED)) for _ in range(frames)]
        costs["append"] = [await cost(lambda: app.append(TOKEN)) for _ in range(frames)]
    finally:
        await opening.__aexit__(None, None, None)
    return costs


async def edit_costs(
    make: type[PlainList] | type[OwnList], texts: Sequence[str], runs: int, size: tuple[int, int]
) -> list[float]:
    """Return the costs of beginning to edit a long text, each in a new app."""
    costs = []
    for _ in range(runs):
        app = make(texts)
        async with app.run_test(size=size):
            await screen_updated()
            costs.append(await cost(lambda: app.edit(LONG)))  # noqa: B023
    return costs


NAMES: Final = {
    "open": "open {blocks:,} blocks",
    "scroll": f"scroll by {SCROLLED} rows in {{blocks:,}} blocks",
    "append": "a word at the end of {blocks:,} blocks",
}


def measure_plain_list(cols: int, rows: int, frames: int, runs: int) -> Iterator[Figure]:
    """Yield what the app's list costs beside a plain one."""
    size = (cols, rows)
    for blocks in SIZES:
        own = asyncio.run(list_costs(OwnList, blocks, frames, size))
        plain = asyncio.run(list_costs(PlainList, blocks, PLAIN_FRAMES, size))
        for what, name in NAMES.items():
            yield figure(
                f"{name.format(blocks=blocks)}, processor time",
                "ms",
                own[what],
                baseline=plain[what],
                against=PLAIN,
            )
    # A Markdown widget would take most of a minute for this text: only the plain editor has it.
    own_edit = asyncio.run(edit_costs(OwnList, [LONG], runs, size))
    plain_edit = asyncio.run(edit_costs(PlainList, [""], runs, size))
    yield figure(
        "enter EDIT in a cell of 1 MB, processor time",
        "ms",
        own_edit,
        baseline=plain_edit,
        against="a Textual text area",
    )
