"""The rows that are on the screen now, and which of them a new frame changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rich.segment import Segment
from rich.style import Style
from textual.selection import Selection
from textual.strip import Strip

from antiphon.widgets.block_list.cell_painter import CellPainter
from antiphon.widgets.block_list.cell_presenter import CellPresenter
from antiphon.widgets.block_list.viewport import HEADER_LINE, LineRef
from antiphon.widgets.editor import CursorLabel, flagged


class FrameBuffer:
    """Draws the rows of a frame, taking over those of the last one that look the same."""

    def __init__(self) -> None:
        self._cells: dict[str, CellPainter] = {}
        self._strips: list[Strip] = []
        self._head: tuple[tuple[object, ...], Strip] | None = None
        """The running head that was drawn last, and what it depends on."""
        self.has_head = False
        """Whether the first row is a running head."""

    def is_shown(self, block: str) -> bool:
        return block in self._cells

    def shown(self) -> Collection[str]:
        return self._cells.keys()

    def strip(self, y: int) -> Strip | None:
        return self._strips[y] if 0 <= y < len(self._strips) else None

    def compose_frame(
        self, places: Sequence[LineRef | None], looks: CellPresenter, head_rows: int
    ) -> list[range]:
        """Draw what is at these places; return the runs of rows that look different now."""
        cells: dict[str, CellPainter] = {}
        strips: list[Strip] = []
        blank = Strip.blank(looks.gutters.columns.width, looks.theme.background)
        for place in places:
            if place is None:
                strips.append(blank)
                continue
            cell = cells.get(place.block)
            if cell is None:
                cell = cells[place.block] = self._rows_of(place.block, looks)
            strips.append(cell.strip(place.line))
        top, below = (places[0], places[1]) if head_rows else (None, None)
        # It covers a row, which must not be all that is seen of its cell.
        self.has_head = (
            top is not None
            and below is not None
            and below.block == top.block
            and looks.is_head_away(top)
        )
        if top is not None and self.has_head:
            strips[0] = self._running_head(top.block, looks)
        self._add_flags(strips, places, cells, looks)
        changed = _changed(strips, self._strips)
        self._cells, self._strips = cells, strips
        return changed

    def _running_head(self, block: str, looks: CellPresenter) -> Strip:
        key = looks.running_head_key(block)
        if self._head is None or self._head[0] != key:
            self._head = key, looks.running_head(block)
        return self._head[1]

    def _add_flags(
        self,
        strips: list[Strip],
        places: Sequence[LineRef | None],
        cells: Mapping[str, CellPainter],
        looks: CellPresenter,
    ) -> None:
        """Write the names that have no room in their row over the one above, or the one below."""
        editor = looks.editor
        edited = editor.block if editor is not None else None
        rows: dict[int, tuple[CursorLabel, ...]] = {}
        is_editor_above = False
        for y, place in enumerate(places):
            is_editor = place is not None and place.block == edited and place.line >= 0
            if is_editor and editor is not None:
                flags = () if is_editor_above else editor.flags_above
            else:
                flags = cells[place.block].flags(place.line) if place is not None else ()
            if flags:
                target = y - 1 if y and not is_editor_above else y + 1
                rows[target] = (*rows.get(target, ()), *flags)
            is_editor_above = is_editor
        columns = looks.columns
        for y, flags in rows.items():
            if y < len(strips):
                place = places[y]
                names_author = place is not None and (
                    place.line == HEADER_LINE or (y == 0 and self.has_head)
                )
                strips[y] = flagged(
                    strips[y], flags, columns.width, left=columns.gutter, keep_text=names_author
                )

    def _rows_of(self, block: str, looks: CellPresenter) -> CellPainter:
        look = looks.style_for(block)
        before = self._cells.get(block)
        if before is not None and before.look == look:
            return before
        return CellPainter(look, before)

    def selected_text(self, selection: Selection, gutter: int) -> str:
        """Return the text of the selected rows, without their gutters."""
        rows = []
        for y, strip in enumerate(self._strips):
            span = selection.get_span(y)
            if span is not None:
                start, end = _within(span, strip)
                rows.append(strip.crop(max(start, gutter), max(end, gutter)).text.rstrip())
        return "\n".join(rows)


def with_selection(strip: Strip, span: tuple[int, int], gutter: int, style: Style) -> Strip:
    """The row with columns `span` (end -1: to the last) as selected, without its gutter."""
    start, end = (max(one, gutter) for one in _within(span, strip))
    selected = Strip(Segment.apply_style(strip.crop(start, end), post_style=style))
    return Strip.join([strip.crop(0, start), selected, strip.crop(end)])


def _within(span: tuple[int, int], strip: Strip) -> tuple[int, int]:
    start, end = span
    return start, strip.cell_length if end == -1 else end


def _changed(rows: Sequence[Strip], before: Sequence[Strip]) -> list[range]:
    """Runs of rows that are other strips than before."""
    changed: list[range] = []
    for y, strip in enumerate(rows):
        if y < len(before) and (before[y] is strip or before[y] == strip):
            continue
        if changed and changed[-1].stop == y:
            changed[-1] = range(changed[-1].start, y + 1)
        else:
            changed.append(range(y, y + 1))
    return changed
