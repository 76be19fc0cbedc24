"""Text and files drawn line by line: as they are, as a terminal shows them, or as code.

Code stands on its own background and is cut at the width, not at words. Pygments is imported when
there is code to colour.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from rich.style import Style

from antiphon.render.cell_theme import CellTheme, CodeTheme
from antiphon.render.display import SourceLines
from antiphon.render.lines import (
    NEWLINE,
    SEGMENT,
    LineChunk,
    RenderedCell,
    RenderedLine,
    Renderer,
    SegmentStart,
    end_of_long_line,
)
from antiphon.render.terminal_output import (
    PLAIN,
    TAB,
    SgrState,
    SgrStyles,
    TerminalDecoder,
    states_after,
)
from antiphon.render.wrap import Canvas, WrapPiece, compose, expand_tabs, wrap

if TYPE_CHECKING:
    from pygments.lexer import Lexer  # type: ignore[import-untyped]


_RETURN: Final = re.compile(r"[\r\n]")


class PlainLook(NamedTuple):
    """How text is drawn that is shown as it is."""

    width: int
    style: Style
    lead: WrapPiece | None = None
    """Stands before the first row, and as many spaces before the others."""
    styles: SgrStyles | None = None
    """Those of output, which is read as a terminal does; None for other text."""

    @property
    def indent(self) -> WrapPiece | None:
        return self.lead and WrapPiece(" " * len(self.lead.text), self.style)


class PlainStream:
    """Draws a text again and again as it changes; finished lines are drawn once."""

    def __init__(self, look: PlainLook, state: SgrState = PLAIN) -> None:
        """`state` is the one that the text begins in."""
        self._width = look.width - (0 if look.lead is None else len(look.lead.text))
        self._style = look.style
        self._lead, self._indent = ([one] if one else [] for one in (look.lead, look.indent))
        self._decoder = None if look.styles is None else TerminalDecoder(look.styles)
        self._state = state
        self._text = ""
        self._sections: list[LineChunk] = []
        """Of the finished lines."""
        self._end, self._end_state = 0, state
        """Offset behind them in the text, and the state there."""

    def update(self, text: str) -> RenderedCell:
        r"""The picture of `text`, of which a final ``\n`` makes no line."""
        if not text.startswith(self._text):
            self._sections, self._end, self._end_state = [], 0, self._state
        self._text = text
        source = SourceLines(text[self._end :], self._end)
        unfinished = len(source) - 1
        if unfinished:
            section, self._end_state = self._section(text, source, 0, unfinished)
            self._sections.append(section)
            self._end = source.starts[unfinished]
        live: list[LineChunk] = []
        if source.lines[unfinished] or not self._sections:
            live = [self._section(text, source, unfinished, unfinished + 1)[0]]
        return RenderedCell([*self._sections, *live])

    def _section(
        self, text: str, source: SourceLines, first: int, end: int
    ) -> tuple[LineChunk, SgrState]:
        """Draw some lines; return also the state at their end."""
        base = source.starts[first]
        state = self._end_state
        lines: list[RenderedLine] = []
        before = self._indent if self._sections else self._lead
        for number in range(first, end):
            shown, start = source.lines[number], source.starts[number]
            if self._decoder is None:
                pieces = expand_tabs(shown, self._style, start - base, TAB)
            else:
                raw = text[start : start + len(shown)]
                pieces, state = self._decoder.pieces(raw, shown, start - base, state)
            for row in wrap(pieces, self._width):
                lines.append(compose([*before, *row]))
                before = self._indent
        return LineChunk(base, lines), state


class PlainCutter:
    """Cuts text behind a line, and a line that is too long anywhere."""

    def __init__(
        self, look: PlainLook, *, draw: Renderer | None = None, size: int = SEGMENT
    ) -> None:
        """`draw` draws segments in another way; `size`: code points from which a segment ends."""
        self.text_width = look.width
        self._look = look
        self._draw = draw
        self._size = size

    def next_start(self, text: str, start: SegmentStart) -> SegmentStart | None:
        offset = text.find("\n", start.offset + self._size) + 1
        breaks = NEWLINE if self._look.styles is None else _RETURN
        long = end_of_long_line(text, start.offset, offset or len(text), breaks)
        offset = long or offset
        if not offset or text[offset:] in ("", "\r"):
            return None
        state = start.state if isinstance(start.state, SgrState) else PLAIN
        if self._look.styles is not None:
            state = states_after(text, state, start.offset, offset)
        return SegmentStart(offset, min(offset + SEGMENT, len(text)) if long else offset, state)

    def renderer(self, start: SegmentStart) -> Renderer:
        look = self._look
        look = look._replace(lead=look.indent) if start.offset else look
        state = start.state if isinstance(start.state, SgrState) else PLAIN
        return self._draw or PlainStream(look, state).update


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


def language_of(path: str, language: str | None) -> str:
    """Return the language of a file: what its name suggests, else what it says."""
    return (path and language_of_path(path)) or language or ""


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
        lines = [[]]
        for text, role in roles:
            style: Style = getattr(theme, role)
            first, *others = text.split("\n")
            if first:
                lines[-1].append((first, style))
            lines += [[(part, style)] if part else [] for part in others]
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return lines


MARGIN: Final = " "
"""Stands before and behind every row of code."""
CODE_TAB: Final = 4


@functools.lru_cache(maxsize=256)
def on_ground(style: Style) -> Style:
    """Return a style on the ground of what it stands in."""
    return style.without_color + Style(color=style.color)


def code_pieces(
    parts: Sequence[tuple[str, Style]], offset: int, plain: Style, lead: int = 0
) -> list[WrapPiece]:
    """Return one line of code in pieces, one that marks its place if it is empty.

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
    return pieces or [WrapPiece("", plain, offset)]


def code_rows(
    parts: Sequence[tuple[str, Style]], offset: int, width: int, theme: CodeTheme, lead: int = 0
) -> Iterator[list[WrapPiece]]:
    """The rows of one line of code between margins; see `code_pieces`."""
    pieces = code_pieces(parts, offset, theme.plain, lead)
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
