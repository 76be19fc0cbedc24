"""Text that has just been written by others, and for how long that is seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from antiphon.render.cell_theme import INK_STEPS
from antiphon.widgets.editor import InkRange
from antiphon_kernel.document.changes import TextChange
from antiphon_kernel.text.transform import shift_offset
from antiphon_kernel.types.clock import Clock
from antiphon_kernel.types.enums import BlockKind, Status
from antiphon_kernel.types.records import BlockHeader, TextSplice

INK_SECONDS: Final = 2.0
"""How long new text is drawn differently."""

STEP_SECONDS: Final = INK_SECONDS / INK_STEPS

_TOGETHER: Final = 0.25
"""Text that came within so many seconds fades together."""

SOONEST: Final = 0.01
"""A timer of Textual divides by its time, and never calls if it is late when it begins."""

_MOST: Final = 64
"""Ranges that one block has at most; the oldest go first."""


_WRITTEN: Final = frozenset({BlockKind.TEXT, BlockKind.THINKING, BlockKind.FILE})
"""Kinds of blocks that people and models write, as opposed to what commands print."""

_BULK_TEXT: Final = 4000
"""So many characters at once were not written a moment ago, but brought from elsewhere."""

_FLASH_SECONDS: Final = 3.0
"""How long it may take from an undo to its change."""

_FLASH_AROUND: Final = 8
"""Characters on both sides of removed text that are shown as changed."""


class _Written(NamedTuple):
    start: int
    end: int
    colour: int | None
    at: float


class Ink:
    """Ranges of new text by block, carried along with what is written around them."""

    def __init__(self, clock: Clock) -> None:
        self.is_shown = True
        """New text of others is told apart for a moment."""
        self._clock = clock
        self._blocks: dict[str, list[_Written]] = {}
        self._flashing: dict[str, float] = {}
        """Blocks whose next change is shown whoever made it, and until when it may come."""

    def of(self, block: str) -> tuple[InkRange, ...]:
        """Return the new text of a block as it is now, in order and apart."""
        written = self._blocks.get(block)
        if not written or not self.is_shown:
            return ()
        now = self._clock.monotonic()
        aged = ((one, int((now - one.at) / STEP_SECONDS)) for one in written)
        return tuple(
            InkRange(one.start, one.end, one.colour, step) for one, step in aged if step < INK_STEPS
        )

    def flash(self, block: str) -> None:
        """Show what the next change of a block changes, though a person here has asked for it."""
        self._flashing[block] = self._clock.monotonic() + _FLASH_SECONDS

    def follow(
        self,
        change: TextChange,
        header: BlockHeader | None,
        length: int | None,
        colour_at: Callable[[str, int], int | None],
        text_of: Callable[[str], str],
    ) -> None:
        """Carry new text along; mark what has come now, if somebody has just written it.

        Args:
            header: of the block; None if nothing of the change is marked.
            length: of its text before the change, in code points, where that is known.
            colour_at: who seems to have written at a place of a block.
        """
        block = change.block
        is_new = header is not None and header.kind in _WRITTEN
        is_running = header is not None and header.status == Status.RUNNING
        is_flash = is_new and self._flashing.get(block, 0.0) >= self._clock.monotonic()
        for splice in change.splices:
            start, end = splice.offset, splice.offset + len(splice.inserted)
            colour = colour_at(block, start)
            self.carry(block, (splice,))
            is_append = is_running and start == length and not splice.deleted
            if length is not None:
                length += end - start - splice.deleted
            if not is_new or end - start > _BULK_TEXT:
                continue
            if is_flash and not is_append:
                self._flashing.pop(block, None)
                colour = None
                if not splice.inserted:
                    start, end = _around(text_of(block), start)
            self.add(block, start, end, colour)

    def carry(self, block: str, splices: Sequence[TextSplice]) -> None:
        written = self._blocks.get(block)
        for splice in splices if written else ():
            written = [part for one in written or () for part in _carried(one, splice)]
        if written:
            self._blocks[block] = written
        else:
            self._blocks.pop(block, None)

    def add(self, block: str, start: int, end: int, colour: int | None) -> None:
        """Mark text that is there already as new."""
        if start >= end:
            return
        at = self._clock.monotonic() // _TOGETHER * _TOGETHER
        written = self._blocks.setdefault(block, [])
        if written and written[-1] == (written[-1].start, start, colour, at):
            written[-1] = written[-1]._replace(end=end)
            return
        rest = [part for one in written for part in _without(one, start, end)]
        self._blocks[block] = sorted([*rest, _Written(start, end, colour, at)])[-_MOST:]

    @property
    def next_fade(self) -> float | None:
        """Seconds until something looks older; None if nothing does."""
        now = self._clock.monotonic()
        ages = [now - one.at for written in self._blocks.values() for one in written]
        next_step = min((STEP_SECONDS - age % STEP_SECONDS for age in ages), default=None)
        return None if next_step is None else max(SOONEST, next_step)

    def fade(self) -> set[str]:
        """Let go of what is not new any more; returns the blocks that look different."""
        touched = set(self._blocks)
        oldest = self._clock.monotonic() - INK_SECONDS
        for block, written in tuple(self._blocks.items()):
            kept = [one for one in written if one.at > oldest]
            if kept:
                self._blocks[block] = kept
            else:
                del self._blocks[block]
        return touched


def _around(text: str, offset: int) -> tuple[int, int]:
    """Return the ends of the text beside a place, within its line."""
    low = max(text.rfind("\n", 0, offset) + 1, offset - _FLASH_AROUND)
    end = text.find("\n", offset)
    return low, min(len(text) if end < 0 else end, offset + _FLASH_AROUND)


def _carried(one: _Written, splice: TextSplice) -> Iterator[_Written]:
    """Yield what a splice leaves of new text: what it inserts is no part of it."""
    end = splice.offset + splice.deleted
    if one.start < splice.offset:
        yield one._replace(end=min(one.end, splice.offset))
    if one.end > end:
        start = shift_offset(max(one.start, end), splice, stick="right")
        yield one._replace(start=start, end=start + one.end - max(one.start, end))


def _without(one: _Written, start: int, end: int) -> Iterator[_Written]:
    if one.start < min(one.end, start):
        yield one._replace(end=min(one.end, start))
    if max(one.start, end) < one.end:
        yield one._replace(start=max(one.start, end))
