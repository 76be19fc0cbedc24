"""Code, coloured by pygments, on its own background, cut at the width, not at words; files as code.

Pygments is imported when there is code to colour.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal

from rich.style import Style

from antiphon.render.cell_theme import CellTheme, CodeTheme
from antiphon.render.display import SourceLines
from antiphon.render.lines import RenderedCell
from antiphon.render.plain import PlainCutter
from antiphon.render.segments import Renderer, SegmentStart
from antiphon.render.wrap import Canvas, WrapPiece, expand_tabs, wrap

if TYPE_CHECKING:
    from pygments.lexer import Lexer  # type: ignore[import-untyped]


CodeRole = Literal["plain", "keyword", "name", "string", "number", "comment", "removed"]

LONGEST_COLOURED: Final = 60_000
"""Code points of one piece of code beyond which it is not coloured: it would take too long."""


@functools.lru_cache(maxsize=32)
def _lexer(language: str) -> Lexer | None:
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
    from pygments.util import ClassNotFound  # type: ignore[import-untyped]

    try:
        return get_lexer_by_name(language)
    except ClassNotFound:
        return None


@functools.lru_cache(maxsize=32)
def language_of_path(path: str) -> str:
    """The language a file's name suggests; empty if none."""
    from pygments.lexers import find_lexer_class_for_filename

    found = find_lexer_class_for_filename(path)
    return found.aliases[0] if found and found.aliases else ""


@functools.cache
def _role(token_type: object) -> CodeRole:
    from pygments.token import Token  # type: ignore[import-untyped]

    roles: list[tuple[object, CodeRole]] = [
        (Token.Comment, "comment"),
        (Token.Keyword.Constant, "number"),
        (Token.Keyword, "keyword"),
        (Token.Operator.Word, "keyword"),
        (Token.Literal.String, "string"),
        (Token.Literal.Number, "number"),
        (Token.Name.Function, "name"),
        (Token.Name.Class, "name"),
        (Token.Name.Decorator, "name"),
        (Token.Name.Tag, "keyword"),
        (Token.Name.Attribute, "name"),
        (Token.Generic.Heading, "keyword"),
        (Token.Generic.Subheading, "keyword"),
        (Token.Generic.Inserted, "string"),
        (Token.Generic.Deleted, "removed"),
        (Token.Generic.Prompt, "comment"),
        (Token.Generic.Output, "comment"),
    ]
    for kind, role in roles:
        if token_type in kind:  # type: ignore[operator]
            return role
    return "plain"


@functools.lru_cache(maxsize=128)
def code_roles(code: str, language: str) -> tuple[tuple[str, CodeRole], ...] | None:
    """The code in parts by role, which joined are the code; None if it stays plain."""
    if not language or not code or len(code) > LONGEST_COLOURED:
        return None
    lexer = _lexer(language)
    if lexer is None:
        return None
    parts: list[tuple[str, CodeRole]] = []
    for _, token_type, value in lexer.get_tokens_unprocessed(code):
        role = _role(token_type)
        if parts and parts[-1][1] == role:
            parts[-1] = (parts[-1][0] + value, role)
        elif value:
            parts.append((value, role))
    if "".join(value for value, _ in parts) != code:
        return None
    return tuple(parts)


def highlighted_lines(code: str, language: str, theme: CodeTheme) -> list[list[tuple[str, Style]]]:
    r"""Each line of the code as styled parts; a final ``\n`` makes no line."""
    roles = code_roles(code, language)
    if roles is None:
        lines = [[(line, theme.plain)] if line else [] for line in code.split("\n")]
    else:
        lines = list(_by_line(roles, theme))
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return lines


def _by_line(
    roles: tuple[tuple[str, CodeRole], ...], theme: CodeTheme
) -> Iterator[list[tuple[str, Style]]]:
    line: list[tuple[str, Style]] = []
    for text, role in roles:
        style: Style = getattr(theme, role)
        first, *others = text.split("\n")
        if first:
            line.append((first, style))
        for part in others:
            yield line
            line = [(part, style)] if part else []
    yield line


MARGIN: Final = " "
"""Stands before and behind every row of code."""
CODE_TAB: Final = 4


def code_rows(
    parts: Sequence[tuple[str, Style]], offset: int, width: int, theme: CodeTheme, lead: int = 0
) -> Iterator[list[WrapPiece]]:
    """The rows of one line of code.

    `offset` is where the line starts in the block's text; its first `lead` code points are not
    from the text (a tab of which a part is indentation of what the code stands in).
    """
    pieces: list[WrapPiece] = []
    column = at = 0
    for text, style in parts:
        if at < lead:
            spaces = text[: lead - at]
            pieces.append(WrapPiece(spaces, style))
            text = text[lead - at :]
            at = column = len(spaces) + at
        for piece in expand_tabs(text, style, offset + at - lead, CODE_TAB, column):
            pieces.append(piece)
            column += len(piece.text)
        at += len(text)
    if not pieces:
        pieces = [WrapPiece("", theme.plain, offset)]
    margin = WrapPiece(MARGIN, theme.plain)
    inner = width - 2 * len(MARGIN)
    for row in wrap(pieces, inner, words=False):
        yield [margin, *row]


def file_cell(text: str, language: str, width: int, theme: CellTheme) -> RenderedCell:
    """The whole text, coloured as `language`."""
    source = SourceLines(text)
    canvas = Canvas(width)
    lines = highlighted_lines("\n".join(source.lines), language, theme.code)
    for parts, start in zip(lines, source.starts, strict=False):
        for row in code_rows(parts, start, width, theme.code):
            canvas.row(row, fill=theme.code.plain)
    return RenderedCell.of_lines(canvas.lines)


class CodeCutter(PlainCutter):
    """Cuts a file that is too long to be coloured behind a line."""

    def __init__(self, width: int, theme: CellTheme) -> None:
        super().__init__(width, theme.text)
        self._theme = theme

    def renderer(self, start: SegmentStart) -> Renderer:
        return lambda text: file_cell(text, "", self.text_width, self._theme)
