r"""Lines of output as a terminal shows them: coloured, and written over by ``\r`` and backspace.

Of all sequences only those that set styles and those that clear a part of the line have an effect;
every other one is shown as the visible characters that stand for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from rich.style import Style

from antiphon.render.sgr import SGR, SgrState, SgrStyles, after_sgr
from antiphon.render.wrap import (
    DECORATION,
    WrapPiece,
    expand_tabs,
    graphemes,
    is_one_cell_each,
)

TAB: Final = 8
"""Columns from one tab stop to the next in plain text, as terminals have it."""

_STYLE_ONLY: Final = re.compile(SGR)
_TOKEN: Final = re.compile(SGR + r"|\x1b\[([0-2]?)K|\r|\x08")


class _Column(NamedTuple):
    """A picture in the line; a wide one is followed by None for its other column."""

    text: str
    style: Style
    offset: int = DECORATION
    length: int = 0


class TerminalLine:
    """A line that is written from left to right and over itself."""

    def __init__(self, styles: SgrStyles, state: SgrState) -> None:
        self._styles = styles
        self.state = state
        self._column = 0
        self._cells: list[_Column | None] = []

    def copy(self) -> TerminalLine:
        other = TerminalLine(self._styles, self.state)
        other._column = self._column
        other._cells = self._cells.copy()
        return other

    def write(self, raw: str, shown: str, offset: int) -> None:
        """Carry on with a part of the line; `shown` is `raw` with what is harmful replaced."""
        at = 0
        for found in _TOKEN.finditer(raw):
            self._print(shown[at : found.start()], offset + at)
            at = found.end()
            if found[1] is not None:
                self.state = after_sgr(self.state, found[1])
            elif found[2] is not None:
                self._erase(found[2])
            elif found[0] == "\r":
                self._column = 0
            else:
                self._column = max(0, self._column - 1)
        self._print(shown[at:], offset + at)

    def pieces(self) -> list[WrapPiece]:
        pieces: list[WrapPiece] = []
        for cell in self._cells:
            if cell is None:
                continue
            text, style, offset, length = cell
            last = pieces[-1] if pieces else None
            is_simple = length == len(text)
            if (
                last is not None
                and last.style == style
                and (
                    (offset == DECORATION and last.offset == DECORATION)
                    or (
                        is_simple
                        and last.length == len(last.text)
                        and last.offset + last.length == offset
                        and last.offset != DECORATION
                    )
                )
            ):
                pieces[-1] = WrapPiece(last.text + text, style, last.offset, last.length + length)
            else:
                pieces.append(WrapPiece(text, style, offset, length))
        return pieces

    def _print(self, text: str, offset: int) -> None:
        if not text:
            return
        style = self._styles.style(self.state)
        cells: list[_Column | None] = []
        for part in expand_tabs(text, style, offset, TAB, self._column):
            if part.length != len(part.text) or not is_one_cell_each(part.text):
                cells += _wide_cells(part)
            else:
                cells += [
                    _Column(one, style, at, 1) for at, one in enumerate(part.text, part.offset)
                ]
        start, end = self._column, self._column + len(cells)
        self._break_wide(start)
        self._break_wide(end)
        if start > len(self._cells):
            self._cells += [_Column(" ", self._styles.style(self.state))] * (
                start - len(self._cells)
            )
        self._cells[start:end] = cells
        self._column = end

    def _erase(self, how: str) -> None:
        if how == "2":
            self._cells.clear()
        elif how == "1":
            blank = _Column(" ", self._styles.style(self.state))
            count = min(self._column + 1, len(self._cells))
            self._break_wide(count)
            self._cells[:count] = [blank] * count
        else:
            self._break_wide(self._column)
            del self._cells[self._column :]

    def _break_wide(self, column: int) -> None:
        """Put blanks for a wide picture that goes across this edge."""
        if 0 < column < len(self._cells) and self._cells[column] is None:
            first = column - 1
            while first > 0 and self._cells[first] is None:
                first -= 1
            end = column
            while end < len(self._cells) and self._cells[end] is None:
                end += 1
            whole = self._cells[first]
            assert whole is not None
            self._cells[first:end] = [_Column(" ", whole.style)] * (end - first)


def _wide_cells(piece: WrapPiece) -> Iterator[_Column | None]:
    """The cells of a tab, or of text with pictures of several columns or code points."""
    text, style, offset, length = piece
    if length != len(text):
        yield _Column(text, style, offset, length)
        yield from [None] * (len(text) - 1)
        return
    for start, end, width in graphemes(text):
        if not width and start == end:
            continue
        yield _Column(text[start:end], style, offset + start, end - start)
        yield from [None] * (width - 1)


_CLEARS: Final = re.compile(r"\x1b\[[0-2]?K")


def _is_written_over(raw: str) -> bool:
    """The line has to be written step by step: it goes back or clears something."""
    return "\r" in raw or "\x08" in raw or ("\x1b[" in raw and _CLEARS.search(raw) is not None)


class TerminalDecoder:
    """Reads lines of output, one after the other, the last one again as it grows."""

    def __init__(self, styles: SgrStyles) -> None:
        self._styles = styles
        self._open: tuple[str, int, SgrState, TerminalLine] | None = None
        """The text that was written, the line's place and state at its start, and the line."""

    def pieces(
        self, raw: str, shown: str, offset: int, state: SgrState
    ) -> tuple[list[WrapPiece], SgrState]:
        """Return a line as it is shown, and the state at its end.

        `shown` is the line with everything harmful replaced; `state` is that at its start.
        """
        if "\x1b" not in raw and not _is_written_over(raw):
            return expand_tabs(shown, self._styles.style(state), offset, TAB), state
        if _is_written_over(raw):
            pieces, after = self._written_over(raw, shown, offset, state)
        else:
            pieces, after = coloured_pieces(raw, shown, offset, self._styles, state)
        if not pieces or pieces[0].offset != offset:
            pieces.insert(0, WrapPiece("", self._styles.style(state), offset, 0))
        return pieces, after

    def _written_over(
        self, raw: str, shown: str, offset: int, state: SgrState
    ) -> tuple[list[WrapPiece], SgrState]:
        """Write the line; what stands before its last return is not written again as it grows."""
        line, done = TerminalLine(self._styles, state), 0
        if self._open is not None and self._open[1:3] == (offset, state):
            written = self._open[0]
            if raw.startswith(written):
                line, done = self._open[3], len(written)
        final = raw.rfind("\r") + 1
        if final > done:
            line.write(raw[done:final], shown[done:final], offset + done)
            done = final
        self._open = raw[:done], offset, state, line
        line = line.copy()
        line.write(raw[done:], shown[done:], offset + done)
        return line.pieces(), line.state


def coloured_pieces(
    raw: str, shown: str, offset: int, styles: SgrStyles, state: SgrState
) -> tuple[list[WrapPiece], SgrState]:
    """A line that is only coloured, and the state at its end."""
    pieces: list[WrapPiece] = []
    at = column = 0
    for found in _STYLE_ONLY.finditer(raw):
        part = expand_tabs(shown[at : found.start()], styles.style(state), offset + at, TAB, column)
        if at < found.start():
            pieces += part
            column += sum(len(piece.text) for piece in part)
        state = after_sgr(state, found[1])
        at = found.end()
    if at < len(shown) or not pieces:
        pieces += expand_tabs(shown[at:], styles.style(state), offset + at, TAB, column)
    return pieces, state
