"""The screen rows of one cell: gutter, text, and what is marked in it."""

from __future__ import annotations

from typing import NamedTuple

from rich.style import Style
from textual.strip import Strip

from antiphon.blocklist.anchor import HEAD
from antiphon.blocklist.gutter import GutterLook, Gutters
from antiphon.editor.marks import Mark, RemoteCursor, Tag, styled, tagged
from antiphon.render.lines import RenderedCell


class Tint(NamedTuple):
    """Text from `start` to `end` (exclusive, code points) that belongs to an author."""

    start: int
    end: int
    colour: int


class CellLook(NamedTuple):
    """Everything that the rows of a cell depend on; equal looks have equal rows."""

    picture: RenderedCell | None
    """None while the cell is being edited: the editor lies over it."""
    author: GutterLook
    gutters: Gutters
    unread_line: int | None
    cursors: tuple[RemoteCursor, ...]
    tints: tuple[Tint, ...]
    matches: tuple[tuple[int, int], ...]
    current_match: tuple[int, int] | None


class CellRows:
    """Rows of a cell with one look, made when asked for."""

    def __init__(self, look: CellLook, before: CellRows | None = None) -> None:
        """`before` lends the rows that did not change."""
        self.look = look
        self._rows: dict[int, tuple[Strip | None, Strip]] = {}
        self._marks: dict[int, list[Mark]] = {}
        self._tags: dict[int, list[Tag]] = {}
        self._lay_marks()
        self._lender = before if before is not None and self._may_borrow(before.look) else None
        if before is not None:
            before.stop_borrowing()

    def strip(self, line: int) -> Strip:
        """The row of a line; `HEAD` for the one above the first."""
        picture = self.look.picture
        content = None if picture is None or line == HEAD else picture.strip(line)
        known = self._rows.get(line)
        if known is None and self._lender is not None and self._is_plain(line):
            known = self._lender.plain_row(line)
        if known is None or known[0] is not content:
            known = (content, self._draw(line, content))
        self._rows[line] = known
        return known[1]

    def plain_row(self, line: int) -> tuple[Strip | None, Strip] | None:
        """The text of a line and its row, if it was drawn and nothing is marked in it."""
        return self._rows.get(line) if self._is_plain(line) else None

    def stop_borrowing(self) -> None:
        """From now on draw what is missing: the rows of older looks can go."""
        self._lender = None

    def _may_borrow(self, other: CellLook) -> bool:
        mine = self.look
        return (
            mine.author == other.author
            and mine.gutters is other.gutters
            and mine.unread_line == other.unread_line
        )

    def _is_plain(self, line: int) -> bool:
        return line not in self._marks and line not in self._tags

    def _draw(self, line: int, content: Strip | None) -> Strip:
        look = self.look
        columns, theme = look.gutters.columns, look.gutters.theme
        if line == HEAD:
            strip = look.gutters.head(look.author)
        else:
            strip = look.gutters.beside(
                look.author, is_first=line == 0, is_unread=line == look.unread_line
            )
            if content is not None:
                content = styled(content, self._marks.get(line, ()))
                room = columns.width - strip.cell_length
                content = tagged(content, self._tags.get(line, ()), room)
                strip = Strip.join([strip, content])
        return strip.adjust_cell_length(columns.width).apply_style(theme.background)

    def _lay_marks(self) -> None:
        look = self.look
        if look.picture is None:
            return
        theme = look.gutters.theme
        for start, end, colour in look.tints:
            self._mark(start, end, theme.blame[colour % len(theme.blame)])
        for start, end in look.matches:
            self._mark(start, end, theme.match)
        if look.current_match is not None:
            self._mark(*look.current_match, theme.current_match)
        for cursor in look.cursors:
            self._lay_cursor(look.picture, cursor)

    def _mark(self, start: int, end: int, style: Style) -> None:
        picture = self.look.picture
        assert picture is not None
        for span in picture.spans_of(start, end):
            self._marks.setdefault(span.line, []).append(Mark(span.start, span.end, style))

    def _lay_cursor(self, picture: RenderedCell, cursor: RemoteCursor) -> None:
        theme = self.look.gutters.theme
        slot = cursor.colour % len(theme.cursors)
        if cursor.anchor is not None:
            low, high = sorted((cursor.anchor, cursor.offset))
            self._mark(low, high, theme.selections[slot])
        line, column = picture.place_of(cursor.offset)
        tag = Tag(column, cursor.username, theme.cursors[slot], theme.authors[slot])
        self._tags.setdefault(line, []).append(tag)
