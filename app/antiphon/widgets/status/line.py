"""Rows that are drawn again only when they change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.reactive import reactive
from textual.strip import Strip

from antiphon.render.display import sanitize_for_display
from antiphon.render.wrap import line_ranges
from antiphon.time_format import format_absolute
from antiphon.widgets.themed import ThemedWidget


class StatusSpan(NamedTuple):
    """Some text in one style."""

    text: str
    style: Style


def cut_to(text: str, width: int) -> str:
    """`text` in at most `width` columns, `…` where something is missing."""
    if cell_len(text) <= width:
        return text
    if width <= 0:
        return ""
    return set_cell_size(text, width - 1).rstrip() + "…"


def end_of(text: str, width: int) -> str:
    """The end of `text` in at most `width` columns, `…` where something is missing before it."""
    if cell_len(text) <= width:
        return text
    kept = text[-width:]
    while kept and cell_len(kept) >= width:
        kept = kept[1:]
    return "…" + kept


def wrap_words(text: str, width: int) -> list[str]:
    """Break a sentence between words, and words that are longer than a row anywhere."""
    text = " ".join(text.split())
    return [text[start:end] for start, end in line_ranges(text, width)] if text else []


def in_one_line(text: str) -> str:
    """Return a sentence as a row can show it, with the times in it as they are here."""
    return sanitize_for_display(format_absolute(" ".join(text.split())))


def fit(
    left: Sequence[StatusSpan],
    right: Sequence[StatusSpan],
    width: int,
    base: Style,
    *,
    margin: int = 1,
) -> Strip:
    """`left` and, at the other end, `right` in exactly `width` columns; `left` is cut first.

    `margin` columns at the left, and one at the right, stay blank.
    """
    right_width = sum(cell_len(piece.text) for piece in right)
    room = width - margin - 1 - right_width - (2 if right else 0)
    segments = [Segment(" " * margin, base)]
    used = 0
    for piece in left:
        text = cut_to(piece.text, room - used)
        if text:
            segments.append(Segment(text, base + piece.style))
            used += cell_len(text)
        if text != piece.text:
            break
    gap = width - margin - 1 - right_width - used
    segments.append(Segment(" " * max(0, gap), base))
    segments.extend(Segment(piece.text, base + piece.style) for piece in right)
    segments.append(Segment(" ", base))
    return Strip(segments).adjust_cell_length(width, base)


class StatusLine(ThemedWidget):
    """One row; a subclass makes its pieces.

    It is drawn by hand: a `Static` takes more than three times as long for the same row, and cannot
    cut the left end while it keeps the right one whole.
    """

    ALLOW_SELECT = False
    DEFAULT_CLASSES = "-textual-system"  # as of scrollbars: a click keeps what is selected
    DEFAULT_CSS = """
    StatusLine { height: 1; width: 1fr; }
    """

    margin: reactive[int] = reactive(1)
    """Blank columns at the left."""

    _shown: object = None

    def update_spans(self, content: object) -> None:
        """Redraw if `content`, whatever the pieces are made from, has changed."""
        if content != self._shown:
            self._shown = content
            self.refresh()

    def pieces(self, width: int) -> tuple[Sequence[StatusSpan], Sequence[StatusSpan]]:
        """Return the spans at the left and at the right."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        page = self.cell_theme.background
        if y:
            return Strip.blank(width, page)
        left, right = self.pieces(width)
        return fit(left, right, width, page, margin=self.margin)


Row = tuple[Sequence[StatusSpan], Sequence[StatusSpan]]
"""The left and the right side of a row."""


class StatusRows(ThemedWidget):
    """Rows of which only those that say something else are redrawn."""

    blank_columns: ClassVar[int] = 0
    """At the right, besides the one that each row ends with."""

    _rows: Sequence[Row] = ()

    def _new_rows(self) -> Sequence[Row]:
        """Return the rows as they are to be shown now."""
        raise NotImplementedError

    def _layout_rows(self) -> None:
        before, self._rows = self._rows, self._new_rows()
        count = max(len(before), len(self._rows))
        changed = [y for y in range(count) if before[y : y + 1] != self._rows[y : y + 1]]
        if changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def on_resize(self) -> None:
        self._layout_rows()

    def theme_changed(self) -> None:
        self._layout_rows()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width, page = self.size.width, self.cell_theme.background
        left, right = self._rows[y] if y < len(self._rows) else ((), ())
        return fit(left, right, width - self.blank_columns, page).adjust_cell_length(width, page)


Keys = Sequence[tuple[str, str]]
"""Keys as they are shown, each with what it does."""
