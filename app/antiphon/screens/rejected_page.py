"""Page on text that the kernel refused: the reason, where it is kept, and the text."""

from __future__ import annotations

from antiphon.locations import under_home
from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import sanitize_for_display
from antiphon.screens.text_modal import CLOSING, wrapped
from antiphon.time_format import format_absolute
from antiphon.widgets.status import StatusSpan
from antiphon_kernel.client.rejected_edits import Rejection

LONGEST = 100_000
"""Characters of an account that are shown; the file has all of it."""


def rejected_summary(refused: Rejection) -> str:
    """One sentence: how much was refused."""
    return "One edit was refused" if refused.edits == 1 else f"{refused.edits} edits were refused"


def rejected_location(refused: Rejection) -> str:
    """One sentence: how much was refused, and how to see it."""
    return f"{rejected_summary(refused)}: Ctrl+P, Show what was refused, says why and where."


def rejected_rows(refused: Rejection, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
    """The lines of the page."""
    rows = [
        [
            StatusSpan(rejected_summary(refused), theme.heading_2),
            StatusSpan("   " + CLOSING, theme.dim),
        ],
        [],
    ]
    for name, words, style in (
        ("why", format_absolute(refused.reason), theme.status_failed),
        ("kept in", str(under_home(refused.file)), theme.text),
    ):
        for at, line in enumerate(wrapped(sanitize_for_display(words), max(16, width - 10))):
            rows.append(
                [StatusSpan((name if not at else "").ljust(10), theme.dim), StatusSpan(line, style)]
            )
    rows.append([])
    try:
        account = refused.file.read_text("utf-8")[:LONGEST]
    except (OSError, UnicodeError) as error:
        rows.append([StatusSpan(f"It cannot be read: {error}", theme.status_failed)])
        return rows
    # The account begins with a title and the reason, which stand above already.
    for line in account.split("\n")[2:]:
        shown = sanitize_for_display(line)
        for part in verbatim(shown, width) if line.startswith(" ") else wrapped(shown, width):
            rows.append([StatusSpan(part, theme.text)])
    return rows


def verbatim(line: str, width: int) -> list[str]:
    """A line of quoted text, cut at the width, with all its blanks."""
    return [line[at : at + width] for at in range(0, len(line), max(1, width))]
