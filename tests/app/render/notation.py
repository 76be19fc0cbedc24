"""Rendered lines as text that can be read in a test.

Text in the theme's plain style stands for itself; other text stands in braces behind its marks:
`b` bold, `i` italic, `u` underlined, `s` struck, then a letter for a colour that is not the
foreground's, then `+` for a background.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from rich.style import Style
from textual.theme import Theme

from antiphon.render.cell_renderer import CellRenderer
from antiphon.render.cell_theme import CellTheme
from antiphon.render.lines import RenderedCell
from antiphon.render.view import CellView
from antiphon.themes import read_theme

_REPOSITORY: Final = Path(__file__).parents[3]


def bundled_theme(name: str) -> Theme:
    """A theme that comes with the program."""
    theme = read_theme(_REPOSITORY / "themes" / f"{name}.toml")
    assert isinstance(theme, Theme), theme
    return theme


THEME: Final = CellTheme.from_theme(bundled_theme("antiphon-dark"))

_LETTERS: Final = {
    THEME.dim.color: "d",
    THEME.heading_1.color: "h",
    THEME.link.color: "l",
    THEME.inline_code.color: "c",
    THEME.error.color: "e",
    THEME.tool_prompt.color: "a",
    THEME.code.keyword.color: "k",
    THEME.code.string.color: "g",
    THEME.code.name.color: "n",
}


def marks(style: Style) -> str:
    """The marks of a style; empty for plain text."""
    attributes = (("b", style.bold), ("i", style.italic), ("u", style.underline))
    letters = [letter for letter, is_set in attributes if is_set]
    if style.strike:
        letters.append("s")
    letters.append(_LETTERS.get(style.color, ""))
    return "".join(letters) + ("+" if style.bgcolor else "")


def written(cell: RenderedCell) -> str:
    """All lines in the notation; spaces at line ends on a background are kept."""
    return "\n".join(_line(cell.strip(number)) for number in range(cell.line_count))


def plain(cell: RenderedCell) -> list[str]:
    return [line.text.rstrip() for line in cell.lines]


def _line(segments: Iterable[tuple[str, Style | None, object]]) -> str:
    parts = []
    for text, style, _ in segments:
        shown = marks(style) if style else ""
        parts.append(f"{{{shown}:{text}}}" if shown else text)
    return "".join(parts)


def render_cell(view: CellView, width: int, theme: CellTheme) -> RenderedCell:
    return CellRenderer(width, theme).update(view)
