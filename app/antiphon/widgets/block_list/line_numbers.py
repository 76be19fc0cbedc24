"""Numbers of the lines of a file beside the rows that show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from antiphon.render.lines import RenderedCell
from antiphon.widgets.block_list.gutter import LineMark, RowNumber
from antiphon.widgets.editor import CellEditor

LEAST_DIGITS: Final = 3
"""Digits for which there is always room."""


class LineIndex:
    """Numbers of lines by their offsets, counted from the place that was asked for last."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.count = text.count("\n") + 1
        self._offset = self._number = 0

    def number(self, offset: int) -> int:
        """Return the line, from 0, that a code point is in."""
        if offset >= self._offset:
            self._number += self.text.count("\n", self._offset, offset)
        else:
            self._number -= self.text.count("\n", offset, self._offset)
        self._offset = offset
        return self._number

    def line_at(self, offset: int) -> int | None:
        """Return the line that begins at a code point; None if none does."""
        is_start = not offset or self.text[offset - 1 : offset] == "\n"
        return self.number(offset) if is_start else None


class FileGutter(NamedTuple):
    """Everything that the numbers beside a file depend on."""

    lines: LineIndex | None
    """Of the text that is shown; None while it is edited."""
    marks: Mapping[int, LineMark]
    editor: CellEditor | None
    current: int | None
    """The line of the person's cursor."""

    def beside(self, picture: RenderedCell | None, row: int) -> RowNumber:
        """Return the number beside a row; rows on which a line goes on have none."""
        line = None
        if self.editor is not None:
            shown = self.editor.row_cache
            number, section = (shown.sections[row - shown.top : row - shown.top + 1] or [(0, 1)])[0]
            line = None if section else number
        elif self.lines is not None and picture is not None:
            runs = picture.line(row).runs
            line = self.lines.line_at(runs[0].offset) if runs else None
        if line is None:
            return RowNumber("", None, False)
        return RowNumber(str(line + 1), self.marks.get(line), line == self.current)
