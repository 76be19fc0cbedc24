"""Text that the last frame shows: which place is on which line, and the other way round."""

from __future__ import annotations

from antiphon.render.lines import RenderedCell
from antiphon.widgets.block_list.anchor import LineRef
from antiphon.widgets.block_list.cell_presenter import CellPresenter
from antiphon.widgets.block_list.viewport import Viewport
from antiphon_kernel.types.presence import TextPlace


class ShownText:
    """Places of texts and lines of cells, also of the cell that is being edited."""

    def __init__(self, looks: CellPresenter, viewport: Viewport) -> None:
        self._looks = looks
        self._viewport = viewport

    def rendering(self, block: str) -> RenderedCell:
        """Return the picture of a cell as it is now. Raises KeyError."""
        return self._looks.pictures.rendering(block)

    def line_of(self, block: str, offset: int) -> LineRef:
        """Return the line of a cell that shows a place of its text."""
        pictures = self._looks.pictures
        return LineRef(block, pictures.line_at(block, offset, self._viewport.margin))

    def is_shown(self, block: str, offset: int) -> bool:
        """Return whether the last frame shows a place of a cell's text."""
        if not self._viewport.seen_rows(block):
            return False
        if (editor := self._looks.editor_over(block)) is not None:
            line = editor.row_of(offset)
        else:
            line = self.rendering(block).place_of(offset)[0]
        return self._viewport.row_of(block, line) is not None

    def first_place(self) -> TextPlace | None:
        """Return the first text below the running head; None while the tail is followed."""
        if self._viewport.following:
            return None
        for place in self._viewport.places[self._viewport.head_rows :]:
            if place is not None and place.line >= 0 and (text := self.text_of(place)) is not None:
                return text
        return None

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
