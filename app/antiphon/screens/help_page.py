"""All keys, by where they work."""

from __future__ import annotations

from antiphon.keymap import help_sections
from antiphon.render.cell_theme import CellTheme
from antiphon.screens.text_modal import CLOSING, wrapped
from antiphon.widgets.status import StatusSpan

KEY_COLUMNS = 22

IN_PALETTE = "in the palette"
"""In the place of the keys of what has none."""


def help_rows(width: int, theme: CellTheme) -> list[list[StatusSpan]]:
    """The lines of the help page."""
    rows: list[list[StatusSpan]] = [
        [StatusSpan("Keys", theme.heading_2), StatusSpan("   " + CLOSING, theme.dim)],
        [],
    ]
    for title, actions in help_sections():
        rows.append([StatusSpan(title, theme.heading_3)])
        for action in actions:
            keys = (action.shown_keys() or IN_PALETTE).ljust(KEY_COLUMNS)
            first, *rest = wrapped(action.help, max(16, width - KEY_COLUMNS - 4))
            rows.append([StatusSpan("  " + keys, theme.focus), StatusSpan(first, theme.text)])
            rows += [[StatusSpan(" " * (KEY_COLUMNS + 2) + line, theme.text)] for line in rest]
        rows.append([])
    return rows
