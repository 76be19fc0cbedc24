"""Keys and what they do, in as many rows as they take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from textual.geometry import Size
from textual.reactive import reactive
from textual.strip import Strip

from antiphon.render.cell_theme import CellTheme
from antiphon.widgets.status.line import StatusSpan, fit
from antiphon.widgets.themed import ThemedWidget

Keys = Sequence[tuple[str, str]]
"""Keys as they are shown, each with what it does."""

_GAP: Final = "  "
_MARGINS: Final = 2


def key_rows(
    keys: Keys, width: int, theme: CellTheme, lead: Sequence[StatusSpan] = ()
) -> list[list[StatusSpan]]:
    """Return rows with the keys behind `lead`; a key and its words stand in one row."""
    rows = [list(lead)]
    for key, words in keys:
        taken = sum(cell_len(one.text) for one in rows[-1])
        if taken and taken + cell_len(f"{_GAP}{key} {words}") > width:
            rows.append([])
        if rows[-1]:
            rows[-1].append(StatusSpan(_GAP, theme.dim))
        rows[-1] += [StatusSpan(key, theme.focus), StatusSpan(f" {words}", theme.dim)]
    return rows


class KeyLines(ThemedWidget):
    """The keys of a page, at its end."""

    DEFAULT_CSS = """
    KeyLines { height: auto; width: 1fr; dock: bottom; }
    """

    keys: reactive[Keys] = reactive((), layout=True)

    def __init__(self, keys: Keys = ()) -> None:
        super().__init__()
        self.set_reactive(KeyLines.keys, keys)

    def rows(self, width: int) -> list[list[StatusSpan]]:
        return key_rows(self.keys, width, self.cell_theme)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.rows(width - _MARGINS))

    def render_line(self, y: int) -> Strip:
        width, page = self.size.width, self.cell_theme.background
        rows = self.rows(width - _MARGINS)
        return fit(rows[y], (), width, page) if y < len(rows) else Strip.blank(width, page)
