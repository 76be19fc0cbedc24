"""A page of text over the document, to be read and closed again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip

from antiphon.render.cell_theme import CellTheme
from antiphon.widgets.status import StatusSpan, fit

CLOSING = "Esc closes this page."

Rows = Callable[[int, CellTheme], Sequence[Sequence[StatusSpan]]]
"""The lines of a page at a width."""


class TextPage(ScrollView, can_focus=True):
    """The rows, scrolled with the usual keys."""

    DEFAULT_CSS = """
    TextPage { width: 1fr; height: 1fr; overflow: hidden scroll; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", show=False),
        Binding("k", "scroll_up", show=False),
        Binding("g", "scroll_home", show=False),
        Binding("G", "scroll_end", show=False),
        Binding("space", "page_down", show=False),
    ]

    def __init__(self, theme: CellTheme, rows: Rows) -> None:
        super().__init__()
        self._theme = theme
        self._rows_at = rows
        self._rows: Sequence[Sequence[StatusSpan]] = ()

    def on_resize(self) -> None:
        self._rows = self._rows_at(self.size.width - 2, self._theme)
        self.virtual_size = Size(self.size.width, len(self._rows))

    def render_line(self, y: int) -> Strip:
        width, page = self.size.width, self._theme.background
        row = y + round(self.scroll_y)
        if row >= len(self._rows):
            return Strip([Segment(" " * width, page)])
        return fit(self._rows[row], (), width, page)


class TextModal(ModalScreen[None]):
    """Over the document; any of its own keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,q,question_mark", "dismiss", show=False),
    ]

    def __init__(self, theme: CellTheme, rows: Rows) -> None:
        super().__init__()
        self._page = TextPage(theme, rows)

    def compose(self) -> list[TextPage]:
        return [self._page]


def wrapped(text: str, width: int) -> list[str]:
    """Lines of whole words."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".lstrip()
    return lines
