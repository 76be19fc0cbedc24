"""Drawing in this process, without a kernel: frames, a cell's history, and a plain list.

The plain way to show a conversation is a Textual list with a Markdown widget for each block. What
the app's list costs is held against it: processor time until nothing is left to do.
"""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Markdown, TextArea

from antiphon.render.timeline import HistoryStep, Timeline, TimelineText
from antiphon.screens.history import HistoryModal, HistorySource
from antiphon.screens.live_writers import LiveWriters
from antiphon.widgets.status import HintBar, LiveStrip
from antiphon_kernel.types.clock import SystemClock
from antiphon_kernel.types.enums import PrincipalKind, Status
from antiphon_kernel.types.presence import PresenceState
from tests.app.widgets.block_list.sample import ANSWER, ARIA, Sample, SampleApp
from tests.bench.figures import Figure, figure
from tests.waiting import screen_updated

MODELS: Final = 4
TOKENS: Final = 3
"""Of each model between two frames: 90 a second at 30 frames."""

WORDS: Final = ("The ", "two ", "of ", "them ", "write ", "in ", "**turn**, ", "one ", "text.\n\n")
WARM_UP: Final = 60


async def refreshed(widget: Widget) -> None:
    """Wait until what is to be drawn now is on the terminal."""
    shown = asyncio.Event()
    widget.call_after_refresh(shown.set)
    await shown.wait()


class FramesApp(SampleApp):
    """A document with the strip of those who write out of sight."""

    def __init__(self, sample: Sample) -> None:
        super().__init__(sample)
        self.strip, self.notice = LiveStrip(), HintBar()
        self.live = LiveWriters(self.source, self.cells, self.strip, self.notice, SystemClock())

    def compose(self) -> ComposeResult:
        yield self.area
        yield self.strip

    def on_mount(self) -> None:
        self.live.start()


async def frame_times(frames: int, size: tuple[int, int], *, has_ink: bool) -> Sequence[float]:
    """Milliseconds of processor time for each frame, until it is on the terminal."""
    sample = Sample()
    sample.add_turns(30)
    blocks = [sample.add("", status=Status.RUNNING) for _ in range(MODELS)]
    app = FramesApp(sample)
    samples = []
    async with app.run_test(size=size) as pilot:
        app.source.ink.is_shown = has_ink
        gc.collect()
        for number in range(frames + WARM_UP):
            began = time.process_time()
            for model, block in enumerate(blocks):
                for token in range(TOKENS):
                    sample.peer.append(block, WORDS[(number + model + token) % len(WORDS)])
                who = (ARIA, f"aria{model}", PrincipalKind.MODEL, model, "s")
                end = sample.peer.length(block)
                app.present[model] = PresenceState(*who, block, end, None, "streaming")
            typed = time.process_time()
            app.source.presence_changed()
            app.cells.draw()
            await refreshed(app.screen)
            if number >= WARM_UP:
                samples.append((time.process_time() - typed) * 1000)
            # The rest of a 30th of a second.
            await asyncio.sleep(max(0.0, 1 / 30 - (time.process_time() - began)))
        await pilot.pause()
    return samples


def measure_frames(cols: int, rows: int, frames: int) -> Figure:
    """Return the time of frames with new text, map and strip, beside the same without new text."""
    size = (cols, rows)
    bare = asyncio.run(frame_times(frames, size, has_ink=False))
    mine = asyncio.run(frame_times(frames, size, has_ink=True))
    return figure(
        "frame while four models stream, with ink, map and strip",
        "ms",
        list(mine),
        baseline=list(bare),
        against="the same without ink",
        budget=25,
    )


HISTORY_SIZES: Final = (100, 10_000)
TYPED: Final = ("The ", "two ", "of ", "them ", "write ", "in ", "turn, ", "one ", "text.\n")


def cell(versions: int) -> tuple[Timeline, Sequence[HistoryStep]]:
    """Return a cell of so many words by two people, a version each, every tenth one cut again."""
    chance, texts = random.Random(0), list[TimelineText]()
    for version in range(1, versions + 1):
        who = chance.choice(("amy", "bo"))
        until = None if version % 10 else chance.randint(version + 1, versions + 2)
        texts.append(TimelineText(chance.choice(TYPED), who, version, until))
    chance.shuffle(texts)
    steps = [
        HistoryStep(at, "2026-01-01T00:00:00.000Z", who, who, "edit", {"block": at})
        for at, who in sorted((one.since, one.principal) for one in texts)
    ]
    return Timeline(tuple(texts), versions), steps


class LongHistory(HistorySource):
    """The history of one cell of so many words."""

    def __init__(self, versions: int) -> None:
        self.order = []
        self._line, self._changes = cell(versions)

    async def steps(self, block: str | None) -> Sequence[HistoryStep]:
        return self._changes

    async def timeline(self, block: str) -> Timeline:
        return self._line

    def author(self, principal: str) -> tuple[str, int]:
        return principal, len(principal)

    def title(self, block: str) -> tuple[str, int]:
        return "¶1", 0


async def step_times(versions: int, steps: int, size: tuple[int, int]) -> list[float]:
    """Milliseconds of processor time for each step, until it is on the terminal.

    As in the app, the garbage collector leaves alone what was there before.
    """
    gc.collect()
    gc.freeze()
    app, modal = App[None](), HistoryModal(LongHistory(versions), "block")
    async with app.run_test(size=size) as pilot:
        await app.push_screen(modal)
        await pilot.pause()
        samples = []
        for number in range(steps):
            began = time.process_time()
            modal.action_go(number * (versions - 1) // steps)
            await refreshed(modal)
            samples.append((time.process_time() - began) * 1000)
        return samples


def measure_history(cols: int, rows: int, steps: int) -> Iterator[Figure]:
    """Yield what a step through few and through many versions takes."""
    few, many = (asyncio.run(step_times(size, steps, (cols, rows))) for size in HISTORY_SIZES)
    yield figure(
        f"step through the history of a cell, {HISTORY_SIZES[1]:,} versions",
        "ms",
        many,
        baseline=few,
        against=f"{HISTORY_SIZES[0]} versions",
        budget=50,
    )


PLAIN: Final = "a plain Textual list"
LIST_SIZES: Final = (100, 1_000)
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
    for blocks in LIST_SIZES:
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
