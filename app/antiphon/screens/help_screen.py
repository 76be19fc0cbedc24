"""All keys, by where they work."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip

from antiphon.bindings import help_sections
from antiphon.render.cell_theme import CellTheme
from antiphon.status.line import Piece, fit

KEY_COLUMNS = 22

_CLOSING = "Esc closes this page."


def help_rows(width: int, theme: CellTheme) -> list[list[Piece]]:
    """The lines of the help page."""
    rows: list[list[Piece]] = [
        [Piece("Keys", theme.heading_2), Piece("   " + _CLOSING, theme.dim)],
        [],
    ]
    for title, actions in help_sections():
        rows.append([Piece(title, theme.heading_3)])
        for action in actions:
            keys = action.shown_keys().ljust(KEY_COLUMNS)
            first, *rest = _wrapped(action.help, max(16, width - KEY_COLUMNS - 4))
            rows.append([Piece("  " + keys, theme.focus), Piece(first, theme.text)])
            rows += [[Piece(" " * (KEY_COLUMNS + 2) + line, theme.text)] for line in rest]
        rows.append([])
    return rows


def _wrapped(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".lstrip()
    return lines


class HelpPage(ScrollView, can_focus=True):
    """The rows, scrolled with the usual keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", show=False),
        Binding("k", "scroll_up", show=False),
        Binding("g", "scroll_home", show=False),
        Binding("G", "scroll_end", show=False),
        Binding("space", "page_down", show=False),
    ]

    def __init__(self, theme: CellTheme) -> None:
        super().__init__()
        self._theme = theme
        self._rows: list[list[Piece]] = []

    def on_resize(self) -> None:
        self._rows = help_rows(self.size.width - 2, self._theme)
        self.virtual_size = Size(self.size.width, len(self._rows))

    def render_line(self, y: int) -> Strip:
        width, page = self.size.width, self._theme.background
        row = y + round(self.scroll_y)
        if row >= len(self._rows):
            return Strip([Segment(" " * width, page)])
        return fit(self._rows[row], (), width, page)


class HelpScreen(ModalScreen[None]):
    """Over the document; any of its own keys closes it."""

    DEFAULT_CSS = """
    HelpPage { width: 1fr; height: 1fr; overflow: hidden scroll; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,q,question_mark", "dismiss", show=False),
    ]

    def __init__(self, theme: CellTheme) -> None:
        super().__init__()
        self._page = HelpPage(theme)

    def compose(self) -> list[HelpPage]:
        return [self._page]
