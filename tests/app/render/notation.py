"""Markdown-ish texts for property tests, and rendered lines as text that can be read in a test.

Text in the theme's plain style stands for itself; other text stands in braces behind its marks:
`b` bold, `i` italic, `u` underlined, `s` struck, then a letter for a colour that is not the
foreground's, then `+` for a background.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st
from rich.style import Style
from textual.theme import Theme

from antiphon.render.cell_renderer import CellRenderer
from antiphon.render.cell_theme import CellTheme
from antiphon.render.lines import RenderedCell
from antiphon.render.view import CellView
from antiphon.themes import read_theme
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.records import BlockHeader

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
    return "\n".join(_line(cell.line(number).strip) for number in range(cell.line_count))


def plain(cell: RenderedCell) -> list[str]:
    return [line.text.rstrip() for line in cell.lines]


def picture(cell: RenderedCell, text: str) -> tuple[object, ...]:
    """All that can be seen of a cell, and where its text is."""
    return list(cell.lines), [cell.place_of(offset) for offset in range(len(text) + 1)]


def _line(segments: Iterable[tuple[str, Style | None, object]]) -> str:
    parts = []
    for text, style, _ in segments:
        shown = marks(style) if style else ""
        parts.append(f"{{{shown}:{text}}}" if shown else text)
    return "".join(parts)


def view(kind: BlockKind | str, text: str, **fields: Any) -> CellView:
    """A block as it is to be shown: a model's that is done, unless the fields say otherwise."""
    told = {"kind": kind, "role": "model", "status": "done"} | fields
    header = {name: told.pop(name) for name in BlockHeader._fields if name in told}
    shared = header.keys() & {"collapsed", "stopped_by", "source_context"}
    own = {name: header[name] for name in shared}
    whole = BlockHeader(**{"id": "b", "order": "a", "created": "", "author": "m", **header})
    return CellView(whole, text, **told, **own)


def render_cell(view: CellView, width: int, theme: CellTheme) -> RenderedCell:
    return CellRenderer(width, theme).update(view)


_STARTS = [
    "", "", "", "- ", "* ", "+ ", "1. ", "2) ", "10. ", "> ", "> - ", "- - ", "  - ", "   ",
    "    ", "\t", " \t", "# ", "### ", "#", "-", "1", "1.", "=", "---", "--", "***", "- ---",
]  # fmt: skip
_BODIES = [
    "", "", "word", "two words", "*em*", "**strong", "`code`", "``", "a|b", "|a|b|", "-|-",
    "|:-|-:|", "[l](u)", "[l](<u v> 't')", "![i](u)", "\\*", "&amp;", "&#27;", "~~s~~", "~~~",
    "~~~x", "```", "````", "```py", "```a`b", "x = 1 # c", "---", "===", "\u5b57\u5b57\u5b57",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467", "e\u0301", "\u200d", "\x1b[31m", "\u202e",
    "<http://a.b>", "https://a.b/x,", "mailto:a@b", "<b>", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "[r]: /url", "[r]", "line  ",
    "line\\", "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", "\x00", "\r", "\u2028",
]  # fmt: skip
_ENDS = [
    "\n", "\n", "\n", "\n\n", "\r\n", "\n \n", "", " ", "\n\n\n",
]  # fmt: skip

_fragments = st.one_of(st.sampled_from(_STARTS), st.sampled_from(_BODIES), st.sampled_from(_ENDS))
_lines = st.builds(
    lambda start, body, end: start + body + end,
    st.sampled_from(_STARTS),
    st.sampled_from(_BODIES),
    st.sampled_from(_ENDS),
)

markdown_texts = st.lists(st.one_of(_lines, _lines, _fragments), max_size=14).map("".join)
"""Texts in which each line may change what the lines around it mean."""

snippets = st.one_of(_fragments, _lines, st.text(max_size=6))
"""Text that somebody types or pastes in one go."""
