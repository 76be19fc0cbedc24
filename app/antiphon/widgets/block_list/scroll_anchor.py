"""Places of texts on the lines of cells, and what stays still while they change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from antiphon.render.lines import RenderedCell
from antiphon.widgets.block_list.cell_model import CellModel
from antiphon.widgets.block_list.cell_presenter import CellPresenter
from antiphon.widgets.block_list.viewport import Anchor, LineRef, Viewport
from antiphon.widgets.editor import CellEditor
from antiphon_kernel.document.changes import TextChange
from antiphon_kernel.types.presence import TextPlace


@dataclass(eq=False)
class ShownText:
    """Places of texts and lines of cells, also of the cell that is being edited."""

    _looks: CellPresenter
    _viewport: Viewport

    def rendering(self, block: str) -> RenderedCell:
        """Return the picture of a cell as it is now. Raises KeyError."""
        return self._looks.pictures.rendering(block)

    def line_of(self, block: str, offset: int) -> int:
        """Return the line of a cell that shows a place of its text."""
        if (editor := self._looks.editor_over(block)) is not None:
            return editor.row_of(offset)
        return self._looks.pictures.line_at(block, offset, self._viewport.margin)

    def is_shown(self, block: str, offset: int) -> bool:
        """Return whether the last frame shows a place of a cell's text."""
        if not self._viewport.seen_rows(block):
            return False
        return self._viewport.row_of(block, self.line_of(block, offset)) is not None

    def first_place(self) -> TextPlace | None:
        """Return the first text below the running head; None while the tail is followed."""
        if self._viewport.following:
            return None
        below = self._viewport.places[self._viewport.head_rows :]
        lines = (self.text_of(place) for place in below if place is not None and place.line >= 0)
        return next(filter(None, lines), None)

    def text_of(self, line: LineRef) -> TextPlace | None:
        """Return the text that a line of a cell shows, if it shows any."""
        if (editor := self._looks.editor_over(line.block)) is not None:
            start = editor.offset_at_row(line.line)
            return TextPlace(line.block, start, start)
        picture = self.rendering(line.block)
        if not 0 <= line.line < picture.line_count:
            return None
        runs = [run for run in picture.line(line.line).runs if run.width]
        if not runs:
            return None
        ends = [run.offset + run.length for run in runs]
        return TextPlace(line.block, min(run.offset for run in runs), max(ends))

    def lines(self, block: str) -> list[LineRef]:
        """Return the lines of a cell that the last frame shows."""
        places = [self._viewport.places[row] for row in self._viewport.seen_rows(block)]
        return [place for place in places if place is not None and place.line >= 0]


HELD_ROW: Final = 3
"""The row of the view that a held place stays in."""


@dataclass(eq=False)
class ScrollAnchor:
    """Chooses the anchor after each frame, and finds its line again before the next."""

    _source: CellModel
    _looks: CellPresenter
    _viewport: Viewport
    _shown: ShownText
    _is_on_cursor: bool = False
    _held: Anchor | None = None
    """A place that the view does not follow the tail away from."""

    def follow_texts(self, changes: Sequence[TextChange]) -> None:
        """Carry the anchor along with text that changed in its cell."""
        if self._viewport.anchor is not None:
            self._viewport.anchor = self._viewport.anchor.carried(changes)
        self._held = self._held and self._held.carried(changes)

    def hold(self, block: str, offset: int) -> None:
        """Leave the tail rather than lose sight of a place, until `release`."""
        self._held = Anchor(block, 0, HELD_ROW, offset)

    def release(self) -> None:
        self._held = None

    def keep_held(self) -> None:
        """Lay out a view that shows the held place, if following the tail would not."""
        held, viewport = self._held, self._viewport
        if held is None or held.offset is None or not viewport.following:
            return
        if held.block not in self._source.document or self._source.is_hidden(held.block):
            return
        line = self._looks.pictures.line_at(held.block, held.offset, viewport.margin)
        row, wanted = viewport.row_of(held.block, line), min(held.row, viewport.height - 1)
        if row is None or row < wanted:
            self._held = None
            viewport.anchor_on(held.block, line, wanted, held.offset)
            viewport.layout()

    def resolve(self) -> None:
        """The anchor's line is where its text is now."""
        anchor = self._viewport.anchor
        if anchor is None or anchor.offset is None:
            return
        if anchor.block not in self._source.document or self._source.is_hidden(anchor.block):
            return
        line = self._shown.line_of(anchor.block, anchor.offset)
        self._viewport.anchor = replace(anchor, line=line)

    def choose(self, focused: str | None) -> None:
        """Hold on to the edited line, else to the focused cell, else to the first row with text.

        `focused` is the cell that the person is at, if the list has their attention.
        """
        if self._viewport.following:
            self._is_on_cursor = False
            return
        editor = self._looks.editor
        row = None if editor is None else self._viewport.row_of(editor.block, editor.cursor_row)
        self._is_on_cursor = row is not None
        rows = range(0) if row is None else range(row, row + 1)
        if row is None and focused is not None:
            rows = self._viewport.seen_rows(focused)
        is_chosen, is_first = bool(rows), True
        for row in rows or range(len(self._viewport.places)):
            if (place := self._viewport.places[row]) is None:
                continue
            # The first row that stays found if the lines of its cell change.
            offset = self._offset_of(place)
            stays = offset is not None or (is_chosen and place.line < 0)
            if is_first or stays:
                self._viewport.anchor_on(*place, row, offset)
            if stays:
                return
            is_first = False

    def pin(self, block: str, offset: int, row: int) -> None:
        """Keep a place of a text on a row of the screen."""
        self._viewport.anchor_on(block, self._shown.line_of(block, offset), row, offset)
        self._is_on_cursor = self._looks.editor_over(block) is not None

    def editor_changed(self, editor: CellEditor, *, by_person: bool) -> None:
        """Keep the line of the editor's cursor on its row, or let it go along with the cursor."""
        anchor = self._viewport.anchor
        row, offset = editor.cursor_row, editor.cursor_offset
        if anchor is None or not self._is_on_cursor:
            if by_person:
                self._viewport.layout()
                self._viewport.reveal(editor.block, row, row)
                self._viewport.following = False
                self.choose(None)
            return
        kept = anchor.row + (row - anchor.line if by_person else 0)
        kept = max(0, min(kept, self._viewport.height - 1))
        self._viewport.anchor_on(editor.block, row, kept, offset)

    def _offset_of(self, place: LineRef) -> int | None:
        """A code point that the line shows; None for one that shows no text."""
        block, line = place
        if line < 0:
            return None
        if (editor := self._looks.editor_over(block)) is not None:
            if line >= editor.row_count:
                return None
            return editor.cursor_offset if self._is_on_cursor else editor.offset_at_row(line)
        picture = self._looks.pictures.rendering(block)
        offset = picture.offset_at(line, 0)
        if offset is None or picture.place_of(offset)[0] != line:
            return None
        return offset
