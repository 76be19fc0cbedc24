"""Mapping of the lines of cells to the rows of the screen, and what has come out of view.

Heights are exact where the view is and guessed elsewhere; moving by rows is exact, because it
measures the cells that it passes. Nothing here draws.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, NamedTuple

from antiphon.widgets.block_list.cell_model import CellChange
from antiphon.widgets.block_list.height_index import HeightIndex
from antiphon_kernel.document.changes import TextChange
from antiphon_kernel.text.transform import shift_through

HEADER_LINE = -1
"""The line of a cell right above its first one: its author's name, or a blank."""

TOP_LINE = -2
"""No line of a cell is above this one, which is a blank above the author's name."""


class LineRef(NamedTuple):
    """A line of a cell."""

    block: str
    line: int


@dataclass(frozen=True, slots=True)
class Anchor:
    """This line of this cell is drawn on this row of the view, whatever changes around it.

    `offset` is a code point that the line shows, if it shows text: it finds the line again when the
    cell itself has changed. The row may be outside the view.
    """

    block: str
    line: int
    row: int
    offset: int | None = None

    def carried(self, texts: Iterable[TextChange]) -> Anchor:
        """Return the anchor with its text, after changes that may concern it."""
        offset = self.offset
        for text in texts:
            if offset is not None and text.block == self.block:
                offset = shift_through(offset, text.splices, stick="left")
        return self if offset == self.offset else replace(self, offset=offset)


_HEAD_FROM: Final = 3
"""Rows of a view that has room for a running head."""


class Measured(NamedTuple):
    """Rows of a cell: above its first line (0 to 2), and of its lines. A hidden cell has none."""

    head: int
    body: int

    @property
    def rows(self) -> int:
        return self.head + self.body


def first_seen(places: Iterable[LineRef | None]) -> tuple[int, LineRef] | None:
    """Return the first row with a line, and that line."""
    return next(((row, place) for row, place in enumerate(places) if place is not None), None)


@dataclass(eq=False)
class Viewport:
    """The view as a window of rows over cells of known and guessed heights."""

    _heights: HeightIndex
    _measure: Callable[[str], Measured]
    """Tells the height of a cell, of which a part may be guessed."""
    _settle: Callable[[str, int, int], int] = lambda block, line, rows: line
    """Makes the height exact for so many lines around a line of a cell, and tells its number then.
    """
    height: int = 0
    """Rows on screen."""
    following: bool = True
    """The last line stays on the last row."""
    anchor: Anchor | None = None
    """The line that stays where it is while not following."""
    places: list[LineRef | None] = field(default_factory=list)
    """The content of each row of the screen since `layout`."""

    # Laying out

    def layout(self) -> None:
        """Find what is on each row now: no row is blank that text from outside could fill."""
        self.places = self._from_tail() if self.following else self._filled(self._from_anchor())
        if self.following or self.anchor is None:
            self._take_first_as_anchor()

    def measured(self, block: str) -> Measured:
        """The exact height of a cell."""
        measured = self._measure(block)
        self._heights.set(block, measured.rows)
        return measured

    @property
    def margin(self) -> int:
        """Lines around a place that are exact, so that the view can be laid out anywhere near."""
        return 2 * self.height

    @property
    def head_rows(self) -> int:
        """Rows that a running head may cover: none of a view that shows only a line or two."""
        return int(self.height >= _HEAD_FROM)

    def _settled_end(self, block: str) -> int:
        """The line below the last one of a cell, of which the end is exact."""
        body = self.measured(block).body
        if body <= 0:
            return body
        self._settle(block, body - 1, self.margin)
        return self.measured(block).body

    def _from_tail(self) -> list[LineRef | None]:
        last = self._heights.last()
        places: list[LineRef | None] = []
        if last is not None:
            places += islice(self._up(last, self._settled_end(last)), self.height)
            places.reverse()
        return places + [None] * (self.height - len(places))

    def _from_anchor(self) -> list[LineRef | None]:
        anchor = self._shown_anchor()
        if anchor is None:
            return [None] * self.height
        places: list[LineRef | None] = [None] * self.height
        above, below = range(anchor.row - 1, -1, -1), range(anchor.row, self.height)
        for row, place in zip(above, self._up(anchor.block, anchor.line), strict=False):
            if row < self.height:
                places[row] = place
        for row, place in zip(below, self._down(anchor.block, anchor.line), strict=False):
            if row >= 0:
                places[row] = place
        return places

    def _filled(self, places: list[LineRef | None]) -> list[LineRef | None]:
        """Pull text up over blank first rows, and down over blank last ones."""
        first = first_seen(places)
        if first is not None and first[0]:
            places = list(islice(self._down(*first[1]), self.height))
            places += [None] * (self.height - len(places))
        return self._from_tail() if places and places[-1] is None else places

    def _shown_anchor(self) -> Anchor | None:
        """The anchor on a line that exists; another cell's if its own is hidden or gone."""
        anchor = self.anchor
        if anchor is None or anchor.block not in self._heights:
            first = self._heights.first()
            anchor = None if first is None else Anchor(first, TOP_LINE, 0)
        while anchor is not None:
            measured = self.measured(anchor.block)
            if measured.rows:
                line = max(-measured.head, min(anchor.line, measured.body - 1))
                if measured.body > 0:
                    line = self._settle(anchor.block, line, self.margin)
                if line != anchor.line:
                    anchor = replace(anchor, line=line)
                self.anchor = anchor
                return anchor
            below = self._heights.beside(anchor.block, 1)
            if below is None:
                break
            anchor = Anchor(below, TOP_LINE, anchor.row)
        block, row = self._heights.last(), anchor.row if anchor is not None else 0
        while block is not None:
            measured = self.measured(block)
            if measured.rows:
                return Anchor(block, measured.body - 1, row)
            block = self._heights.beside(block, -1)
        return None

    def _up(self, block: str, line: int) -> Iterator[LineRef]:
        """The places above a line of a cell, from there upwards."""
        above: str | None = block
        while above is not None:
            measured = self.measured(above)
            for number in range(line - 1, -measured.head - 1, -1):
                yield LineRef(above, number)
            above = self._heights.beside(above, -1)
            line = self._settled_end(above) if above is not None else 0

    def _down(self, block: str, line: int) -> Iterator[LineRef]:
        """The places from a line of a cell on, downwards."""
        below: str | None = block
        while below is not None:
            measured = self.measured(below)
            for number in range(max(line, -measured.head), measured.body):
                yield LineRef(below, number)
            below = self._heights.beside(below, 1)
            line = TOP_LINE
            if below is not None and self.measured(below).body > 0:
                self._settle(below, 0, self.margin)

    def _take_first_as_anchor(self) -> None:
        if (first := first_seen(self.places)) is not None:
            row, place = first
            self.anchor = Anchor(*place, row)

    # What is seen

    @property
    def first_row(self) -> int:
        """Rows above the view, partly guessed; negative if the view begins above the first cell."""
        if (first := first_seen(self.places)) is None:
            return 0
        row, (block, line) = first
        return self._heights.prefix(block) + line + self.measured(block).head - row

    @property
    def last_seen(self) -> LineRef | None:
        """Return the last line on the screen."""
        return next(filter(None, reversed(self.places)), None)

    @property
    def is_at_tail(self) -> bool:
        """The last line of the last cell is seen, or there is none."""
        last = self.last_seen
        return last is None or next(islice(self._down(*last), 1, None), None) is None

    def row_of(self, block: str, line: int) -> int | None:
        """The screen row of a line, if it is seen."""
        try:
            return self.places.index(LineRef(block, line))
        except ValueError:
            return None

    def seen_rows(self, block: str) -> range:
        """The screen rows of a cell; empty if it is not seen."""
        rows = [row for row, place in enumerate(self.places) if place and place.block == block]
        return range(rows[0], rows[-1] + 1) if rows else range(0)

    # Moving

    def anchor_on(self, block: str, line: int, row: int, offset: int | None = None) -> None:
        """Keep a line on a row of the screen, from now on."""
        self.following = False
        self.anchor = Anchor(block, line, row, offset)

    def scroll(self, rows: int) -> None:
        """Move down by so many rows (up if negative), not past the ends."""
        first = first_seen(self.places)
        if first is None or not rows:
            return
        row, place = first
        self.following = False
        settled = self._settle(place.block, place.line, abs(rows) + self.margin)
        place = place._replace(line=settled)
        if rows < 0:
            wanted = row - rows
            available = len(list(islice(self._up(*place), wanted)))
            self.anchor = Anchor(place.block, place.line, max(row, available))
            self.layout()
            self._take_first_as_anchor()
            return
        self.anchor = Anchor(place.block, place.line, row - rows)
        self._layout_or_follow()
        if not self.following:
            self._take_first_as_anchor()

    def jump(self, row: int) -> None:
        """Show a row of the document, guessed heights included, at the top."""
        found = self._heights.find(max(row, 0))
        if found is None:
            return
        block, inside = found
        head = self.measured(block).head
        self.anchor_on(block, inside - head, 0)
        self._layout_or_follow()

    def _layout_or_follow(self) -> None:
        self.layout()
        if self.places[-1] is None or self.is_at_tail:
            self.scroll_end()

    def scroll_end(self) -> None:
        self.following = True
        self.layout()

    def scroll_home(self) -> None:
        first = self._heights.first()
        if first is not None:
            self.anchor_on(first, -self.measured(first).head, 0)
            self.layout()

    def reveal(self, block: str, first: int, last: int) -> None:
        """Move as little as needed to see the lines `first` to `last` of a cell, or the first."""
        head = self.head_rows if first > -self.measured(block).head else 0
        row = self.row_of(block, first)
        if row is not None and row >= head and self.row_of(block, last) is not None:
            return
        size = last - first + 1
        top = first_seen(self.places)
        is_above = top is not None and (
            (self._heights.index(block), first)
            < (self._heights.index(top[1].block), top[1].line + head)
        )
        if is_above or size >= self.height - head:
            self.anchor_on(block, first, head)
        else:
            self.anchor_on(block, last, self.height - 1)
        self.layout()
        self.follow_if_same()

    def follow_if_same(self) -> None:
        """Follow the tail from now on, if that changes nothing on the screen."""
        if not self.following and self.is_at_tail and self._from_tail() == self.places:
            self.following = True


class Unread:
    """Start of new text below the view, and the cells that changed unseen."""

    def __init__(self, heights: HeightIndex, viewport: Viewport) -> None:
        self._heights = heights
        self._viewport = viewport
        self._seen: LineRef | None = None
        """The first line below all that has been seen; None while the tail is followed."""
        self.start: LineRef | None = None
        """The line that new text starts at, while there is any."""
        self.blocks: dict[str, None] = {}
        """Cells that changed and were not seen since."""

    def mark(
        self, change: CellChange, shown: Container[str], is_hidden: Callable[[str], bool]
    ) -> None:
        """Note cells that changed out of sight; what a context is opened with is not new."""
        is_opening = len(change.added) == len(self._heights)
        for block in change.changed:
            if block in shown or block not in self._heights:
                continue
            if is_hidden(block):
                self._heights.set(block, 0)
            elif (change.texts or change.added) and not is_opening:
                self.blocks[block] = None

    def grown_by_person(self, block: str, rows: int) -> None:
        """Count rows that the person's own edit has added to a cell as seen."""
        if self._seen is not None and self._seen.block == block:
            self._seen = self._seen._replace(line=self._seen.line + rows)

    def update(self) -> int:
        """Take notice of what the view shows; returns how many new lines are below it."""
        viewport = self._viewport
        for block in {place.block for place in viewport.places if place is not None}:
            self.blocks.pop(block, None)
        last = viewport.last_seen
        if viewport.following or viewport.is_at_tail or last is None:
            self._seen = self.start = None
            return 0
        if self._seen is None or self._seen.block not in self._heights:
            end = self._heights.last()
            assert end is not None
            self._seen = LineRef(end, self._heights[end])
        new = self._heights.total - self._row(self._seen)
        self.start = self._seen if new > 0 else None
        passed = LineRef(last.block, last.line + 1)
        if self._row(passed) > self._row(self._seen):
            self._seen = passed
        return max(0, self._heights.total - max(self._row(self._seen), self._row(passed)))

    def _row(self, place: LineRef) -> int:
        return self._heights.prefix(place.block) + min(
            max(place.line, 0), self._heights[place.block]
        )
