"""What the person wrote and the kernel refused: why, where it is kept, and its words."""

from __future__ import annotations

from antiphon.locations import under_home
from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import displayable
from antiphon.screens.text_modal import CLOSING, wrapped
from antiphon.time_format import in_local_words
from antiphon.widgets.status.line import Piece
from antiphon_kernel.client.rejected_edits import Refusal

LONGEST = 100_000
"""Characters of an account that are shown; the file has all of it."""


def refused_words(refused: Refusal) -> str:
    """One sentence: how much was refused."""
    return "One edit was refused" if refused.edits == 1 else f"{refused.edits} edits were refused"


def where_refused(refused: Refusal) -> str:
    """One sentence: how much was refused, and how to see it."""
    return f"{refused_words(refused)}: Ctrl+P, Show what was refused, says why and where."


def refused_rows(refused: Refusal, width: int, theme: CellTheme) -> list[list[Piece]]:
    """The lines of the page."""
    rows = [
        [Piece(refused_words(refused), theme.heading_2), Piece("   " + CLOSING, theme.dim)],
        [],
    ]
    for name, words, style in (
        ("why", in_local_words(refused.reason), theme.status_failed),
        ("kept in", str(under_home(refused.file)), theme.text),
    ):
        for at, line in enumerate(wrapped(displayable(words), max(16, width - 10))):
            rows.append([Piece((name if not at else "").ljust(10), theme.dim), Piece(line, style)])
    rows.append([])
    try:
        account = refused.file.read_text("utf-8")[:LONGEST]
    except (OSError, UnicodeError) as error:
        rows.append([Piece(f"It cannot be read: {error}", theme.status_failed)])
        return rows
    # The account begins with a title and the reason, which stand above already.
    for line in account.split("\n")[2:]:
        shown = displayable(line)
        for part in as_it_is(shown, width) if line.startswith(" ") else wrapped(shown, width):
            rows.append([Piece(part, theme.text)])
    return rows


def as_it_is(line: str, width: int) -> list[str]:
    """A line of quoted text, cut at the width, with all its blanks."""
    return [line[at : at + width] for at in range(0, len(line), max(1, width))]
