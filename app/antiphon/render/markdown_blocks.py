"""Markdown tokens drawn as lines: paragraphs, lists, quotes, code, tables, and what is in them.

The constants are the contract with the parser, which is imported only when there is Markdown.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.cells import cell_len
from rich.style import Style

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import SourceLines, sanitize_for_display
from antiphon.render.lines import RenderedLine, overlapping
from antiphon.render.links import bare_addresses, link_style
from antiphon.render.text_lines import CODE_TAB, code_rows, highlighted_lines
from antiphon.render.wrap import Canvas, WrapPiece, expand_tabs, wrap

if TYPE_CHECKING:
    from markdown_it.token import Token


AT: Final = "at"
"""Key in an inline token's `meta`: where in the inline content its source starts."""

TARGET: Final = "target"
"""Key in the `meta` of an image and of both tokens of a link: start and end of the address in the
inline content; not there if there is no address."""

DEEPEST: Final = 60
"""Levels of nesting; what is nested deeper is not parsed."""


_NOT_IN_A_LINE = str.maketrans({"\n": "␊", "\t": " "})


class InlineSource:
    """The content of an inline token and where its parts stand in the block's text."""

    __slots__ = ("_offsets", "_starts", "content")

    def __init__(self, content: str, parts: Sequence[tuple[int, int]]) -> None:
        """`parts`: where each line (or other unbroken part) starts, in content and in text."""
        self.content = content
        self._starts = [start for start, _ in parts]
        self._offsets = [offset for _, offset in parts]

    def offset(self, at: int) -> int:
        """Offset in the block's text of a position in the content."""
        part = max(0, bisect_right(self._starts, at) - 1)
        return self._offsets[part] + at - self._starts[part]

    def pieces(self, at: int, text: str, style: Style) -> Iterator[WrapPiece]:
        """`text`, which stands at `at` in the content; a tab is shown as one space."""
        text = text.replace("\t", " ")
        end = at + len(text)
        low = at
        for start in self._starts[bisect_right(self._starts, at) :]:
            if start >= end:
                break
            yield WrapPiece.shown(text[low - at : start - at], style, self.offset(low))
            low = start
        if low < end:
            yield WrapPiece.shown(text[low - at :], style, self.offset(low))


class InlineRenderer:
    """Draws inline tokens: the rows that hard line breaks make, each to be wrapped by itself."""

    def __init__(self, source: InlineSource, theme: CellTheme, *, newlines: bool = False) -> None:
        """With `newlines`, every newline in the text is a line break, as its writer sees it."""
        self._source = source
        self._theme = theme
        self._newlines = newlines
        self._bare = bare_addresses(source.content)
        self._styles = {
            "em_open": theme.emphasis,
            "strong_open": theme.strong,
            "s_open": theme.strike,
            "link_open": theme.link,
        }

    def rows(self, tokens: Sequence[Token], style: Style, shift: int = 0) -> list[list[WrapPiece]]:
        """`shift` is where the tokens' own content starts in the whole content."""
        rows: list[list[WrapPiece]] = [[]]
        styles = [style]
        link: Token | None = None
        for token in tokens:
            row, at = rows[-1], token.meta.get(AT, 0) + shift
            if token.nesting > 0:
                styles.append(styles[-1] + self._styles.get(token.type, Style.null()))
                if token.type == "link_open":
                    link = token
                    styles[-1] += self._link(link, shift)
            elif token.nesting < 0:
                if len(styles) > 1:
                    styles.pop()
                if token.type == "link_close" and link is not None:
                    label = self._source.content[link.meta[AT] + shift : at]
                    row.extend(self._address(token, styles[-1], shift, label))
                    link = None
            elif token.type == "hardbreak" or (token.type == "softbreak" and self._newlines):
                row.append(WrapPiece("", styles[-1], self._newline(at), 1))
                rows.append([])
            elif token.type == "softbreak":
                row.append(WrapPiece(" ", styles[-1], self._newline(at), 1))
            elif token.type == "code_inline":
                row.extend(self._code(token, at, styles[-1]))
            elif token.type == "text_special":
                row.extend(self._special(token, at, styles[-1]))
            elif token.type == "image":
                row.append(WrapPiece("▣ ", self._theme.dim))
                linked = styles[-1] + self._theme.link
                for line in self.rows(token.children or [], linked, at + len("![")):
                    row.extend(line)
                row.extend(self._address(token, styles[-1], shift))
            elif link is not None and link.markup == "autolink":
                end = self._source.content.index(">", at)
                text = self._source.content[at + 1 : end]
                row.extend(self._source.pieces(at + 1, text, styles[-1]))
            elif token.content and (link is not None or not self._bare):
                row.extend(self._source.pieces(at, token.content, styles[-1]))
            elif token.content:
                row.extend(self._text(token.content, at, styles[-1]))
        return rows

    def _text(self, text: str, at: int, style: Style) -> Iterator[WrapPiece]:
        """Yield text in which addresses that stand there as they are become links."""
        end, done = at + len(text), at
        for bare in overlapping(self._bare, at, end):
            start, stop = max(bare.start, at), min(bare.end, end)
            yield from self._source.pieces(done, text[done - at : start - at], style)
            shown = text[start - at : stop - at]
            linked = style + self._theme.link + bare.style
            yield from self._source.pieces(start, shown, linked)
            done = stop
        yield from self._source.pieces(done, text[done - at :], style)

    def _link(self, opening: Token, shift: int) -> Style:
        """Return the style that leads where the link says, as the text shows it."""
        if opening.markup == "autolink":
            address = str(opening.attrs.get("href", ""))
        else:
            address = self._target(opening, shift)[1]
        return link_style(address) or Style.null()

    def _target(self, token: Token, shift: int) -> tuple[int, str]:
        """Return where the address of a link or an image starts, and the address."""
        start, end = (place + shift for place in token.meta.get(TARGET, (0, 0)))
        return start, self._source.content[start:end]

    def _newline(self, at: int) -> int:
        r"""Offset of the ``\n`` at or after `at`: it ends right before the next line's prefix."""
        newline = self._source.content.find("\n", at)
        return self._source.offset(max(newline, at))

    def _code(self, token: Token, at: int, style: Style) -> Iterator[WrapPiece]:
        start = at + len(token.markup)
        raw = self._source.content[start : start + len(token.content)].replace("\n", " ")
        if raw != token.content:
            start += 1
        return self._source.pieces(start, token.content, style + self._theme.inline_code)

    def _special(self, token: Token, at: int, style: Style) -> Iterator[WrapPiece]:
        if len(token.content) == len(token.markup):
            return self._source.pieces(at, token.content, style)
        if token.info == "escape":
            return self._source.pieces(at + 1, token.content, style)
        text = sanitize_for_display(token.content).translate(_NOT_IN_A_LINE)
        return iter([WrapPiece(text, style, self._source.offset(at), len(token.markup))])

    def _address(
        self, token: Token, style: Style, shift: int, label: str = ""
    ) -> Iterator[WrapPiece]:
        """The address behind a label that does not say it already."""
        start, address = self._target(token, shift)
        if not address or address == label:
            return
        dim = style + self._theme.dim
        linked = dim + (link_style(address) or Style.null())
        yield WrapPiece(" (", dim)
        yield from self._source.pieces(start, address.translate(_NOT_IN_A_LINE), linked)
        yield WrapPiece(")", dim)


_SEPARATOR: Final = " │ "
_NARROWEST: Final = 3


def _locate(content: str, line: str, start: int) -> tuple[list[tuple[int, int]], int]:
    r"""Parts of a cell's content in its source line, and where the next cell starts.

    A pipe in the content is written ``\|``, which makes a new part.
    """
    place = line.find(content, start) if content else -1
    if "|" in content:
        pattern = re.escape(content).replace(r"\|", r"\\?\|")
        found = re.compile(pattern).search(line, start)
        place = found.start() if found else -1
    if place < 0:
        return [(0, min(start, len(line)))], start
    parts = [(0, place)]
    for at, character in enumerate(content):
        if line[place] != character:
            place += 1
            parts.append((at, place))
        place += 1
    pipe = line.find("|", place)
    return parts, pipe + 1 if pipe >= 0 else len(line)


def _width_of(cell: Sequence[WrapPiece]) -> int:
    return sum(cell_len(piece.text) for piece in cell)


def _fit(widths: list[int], room: int) -> list[int]:
    """Narrow the widest columns until the table fits; columns that cannot show are left out."""
    widths = [max(width, 1) for width in widths]
    while len(widths) > 1 and len(widths) * (_NARROWEST + len(_SEPARATOR)) > room + len(_SEPARATOR):
        widths.pop()
    space = room - len(_SEPARATOR) * (len(widths) - 1)
    while sum(widths) > space and max(widths) > 1:
        widest = max(widths)
        others = [width for width in widths if width < widest]
        count = len(widths) - len(others)
        surplus = sum(widths) - space
        step = max(1, min(surplus // count, widest - max(others, default=1)))
        for index, width in enumerate(widths):
            if width == widest and surplus > 0:
                widths[index] -= step
                surplus -= step
    return widths


_BULLETS: Final = "•◦▪"

_BOXES: Final = {"[ ] ": "☐", "[x] ": "☑", "[X] ": "☑"}
"""How the box of a task is drawn that an item of a list begins with."""


@dataclass(frozen=True, slots=True)
class MarkdownUnit:
    """A piece of a document that is drawn by itself: a top-level block or top-level list item."""

    tokens: Sequence[Token]
    line: int
    """First source line."""
    end: int
    """Behind the last source line, which may be blank in a list."""
    ordinal: int | None = None
    """Number of an ordered list's item."""
    follows_item: bool = False
    """The unit before it is an item of the same list."""

    @property
    def kind(self) -> str:
        return self.tokens[0].type


def units_of(tokens: Sequence[Token], next_ordinal: int | None) -> list[MarkdownUnit]:
    """The document in units; an ordered list at its start goes on with `next_ordinal`."""
    units: list[MarkdownUnit] = []
    for number, block in enumerate(_blocks_of(tokens)):
        if block[0].type in ("bullet_list_open", "ordered_list_open"):
            items = _items_of(block, None if number else next_ordinal)
            units += [_unit(item, ordinal, at > 0) for at, (item, ordinal) in enumerate(items)]
        else:
            units.append(_unit(block))
    return units


def _unit(
    tokens: Sequence[Token], ordinal: int | None = None, follows_item: bool = False
) -> MarkdownUnit:
    first, behind = tokens[0].map or (0, 0)
    return MarkdownUnit(tokens, first, behind, ordinal, follows_item)


def _blocks_of(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yield the tokens of each of neighbouring blocks or items."""
    start = depth = 0
    for index, token in enumerate(tokens):
        depth += token.nesting
        if depth == 0 or index == len(tokens) - 1:
            yield tokens[start : index + 1]
            start = index + 1


def _items_of(
    tokens: Sequence[Token], ordinal: int | None = None
) -> Iterator[tuple[Sequence[Token], int | None]]:
    """Yield the items of a list, each with its number if it is ordered; `ordinal` is the first."""
    opening = tokens[0]
    if opening.type != "ordered_list_open":
        ordinal = None
    elif ordinal is None:
        ordinal = int(opening.attrGet("start") or 0) if opening.attrs else 1
    for item in _blocks_of(tokens[1:-1]):
        yield item, ordinal
        ordinal = None if ordinal is None else ordinal + 1


FENCE_LINE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
"""A line that may open or close a fence: its marks, and what stands behind them."""


class Fence(NamedTuple):
    """An open fence."""

    markup: str
    language: str
    start: int = -1
    """Offset of its first line in the text that is drawn, if that is at the margin there."""


def fence_behind(marks: str, info: str, fence: Fence | None) -> Fence | None:
    """Return the fence that is open behind a line that may open one or close `fence`."""
    if fence is None:
        is_opened = marks[0] == "~" or "`" not in info
        return Fence(marks, fence_language(info)) if is_opened else None
    is_closed = marks.startswith(fence.markup) and not info.strip(" \t\r")
    return None if is_closed else fence


def is_closed_fence(fence: Token, source: SourceLines) -> bool:
    first, end = fence.map or (0, 0)
    content = fence.content
    if end - first < 2 or content.count("\n") != end - first - 2:
        return False
    if content and not content.endswith("\n"):
        return False
    return source.lines[end - 1].rstrip(" \t").endswith(fence.markup)


def fence_language(info: str) -> str:
    words = info.split()
    return words[0].strip("{}.").lower() if words else ""


def draw_unit(
    unit: MarkdownUnit,
    source: SourceLines,
    width: int,
    theme: CellTheme,
    *,
    wide: int | None = None,
    newlines: bool = False,
) -> list[RenderedLine]:
    """The unit's lines; their runs count from the start of its first source line.

    Code and tables are up to `wide` columns wide, all else up to `width`.
    """
    canvas = Canvas(width, wide)
    drawing = _Drawing(canvas, source, source.starts[unit.line], theme, newlines)
    if any(token.level >= DEEPEST - 1 for token in unit.tokens):
        drawing.as_written(unit.line, unit.end)
    elif unit.kind == "list_item_open":
        drawing.item(unit.tokens, unit.ordinal, 0)
    else:
        drawing.blocks(unit.tokens, theme.text, 0)
    return drawing.canvas.lines


@dataclass(eq=False)
class _Drawing:
    """One unit on its canvas."""

    canvas: Canvas
    _source: SourceLines
    _base: int
    _theme: CellTheme
    _newlines: bool
    _taken: dict[int, int] = field(default_factory=dict)
    """Columns of source lines that the markers drawn so far reach up to."""
    _begins_item: bool = False
    """The next text begins an item."""

    def blocks(self, tokens: Sequence[Token], style: Style, depth: int) -> None:
        """Neighbouring blocks, with a blank row where the source has one."""
        for number, block in enumerate(_blocks_of(tokens)):
            if number and self._blank_before(self._first_line(block)):
                self.canvas.row([])
            self._block(block, style, depth)

    def as_written(self, first: int, end: int) -> None:
        """Source lines as they are: what is nested too deep to be parsed."""
        for line in range(first, min(end, len(self._source))):
            text = self._source.lines[line]
            pieces = expand_tabs(text, self._theme.text, self._offset(line, 0), CODE_TAB)
            self.canvas.text(pieces or [self._start_of(line)])

    def item(self, tokens: Sequence[Token], ordinal: int | None, depth: int) -> None:
        opening = tokens[0]
        line = self._first_line(tokens)
        written = opening.info + opening.markup
        shown = _BULLETS[depth % len(_BULLETS)] if ordinal is None else f"{ordinal}{opening.markup}"
        marker = self._marker(line, written, shown)
        width = len(shown) + 1
        space = WrapPiece(" ", self._theme.dim)
        rest = [WrapPiece(" " * width, self._theme.dim)]
        self._begins_item = True
        with self.canvas.behind([*marker, space], rest, width):
            self.blocks(tokens[1:-1], self._theme.text, depth + 1)

    def _block(self, tokens: Sequence[Token], style: Style, depth: int) -> None:
        opening = tokens[0]
        match opening.type:
            case "paragraph_open":
                self._inline(tokens[1], style)
            case "heading_open":
                level = int(opening.tag[1])
                styles = (self._theme.heading_1, self._theme.heading_2, self._theme.heading_3)
                self._inline(tokens[1], styles[min(level, 3) - 1], "#" * level)
            case "bullet_list_open" | "ordered_list_open":
                for number, (item, ordinal) in enumerate(_items_of(tokens)):
                    if number and self._blank_before(self._first_line(item)):
                        self.canvas.row([])
                    self.item(item, ordinal, depth)
            case "blockquote_open":
                marker = self._marker(self._first_line(tokens), ">", "▎")
                rest = [WrapPiece("▎ ", self._theme.dim)]
                with self.canvas.behind([*marker, WrapPiece(" ", self._theme.dim)], rest, 2):
                    self.blocks(tokens[1:-1], self._theme.dim, depth)
            case "fence" | "code_block":
                self._code(opening)
            case "table_open":
                self._table(tokens, style)
            case "hr":
                line = self._first_line(tokens)
                taken = self._taken.get(line, 0)
                length = len(self._source.lines[line]) - taken
                rule, offset = "─" * self.canvas.room, self._offset(line, taken)
                self.canvas.row([WrapPiece(rule, self._theme.dim, offset, length)])
            case _:
                self.as_written(*(opening.map or (0, 0)))

    def _table(self, tokens: Sequence[Token], style: Style) -> None:
        source, theme = self._source, self._theme
        rows: list[list[list[WrapPiece]]] = []
        aligns: list[str] = []
        column = 0
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
                column = 0
            elif token.type == "th_open":
                aligns.append(str(token.attrGet("style") or "").removeprefix("text-align:"))
            elif token.type == "inline":
                line = (token.map or (0, 0))[0]
                parts, column = _locate(token.content, source.lines[line], column)
                start = self._offset(line, 0)
                inline = InlineSource(token.content, [(at, start + place) for at, place in parts])
                head = theme.strong if len(rows) == 1 else Style.null()
                pieces = InlineRenderer(inline, theme).rows(token.children or [], style + head)
                rows[-1].append([piece for row in pieces for piece in row])
        needed = [max(map(_width_of, column)) for column in zip(*rows, strict=False)]
        widths = _fit(needed, self.canvas.wide_room)
        for number, row in enumerate(rows):
            self._table_row(row, widths, aligns, style)
            if number == 0:
                rule = "─┼─".join("─" * width for width in widths)
                self.canvas.row([WrapPiece(rule, theme.dim)])

    def _table_row(
        self,
        cells: Sequence[Sequence[WrapPiece]],
        widths: Sequence[int],
        aligns: Sequence[str],
        style: Style,
    ) -> None:
        """Draw as many lines as the longest cell of a row needs."""
        wrapped = [wrap(cell, width) for cell, width in zip(cells, widths, strict=False)]
        for parts in zip_longest(*wrapped, fillvalue=()):
            line: list[WrapPiece] = []
            for number, (part, width, align) in enumerate(zip(parts, widths, aligns, strict=False)):
                if number:
                    line.append(WrapPiece(_SEPARATOR, self._theme.dim))
                missing = width - _width_of(part)
                left = missing if align == "right" else missing // 2 if align == "center" else 0
                line.append(WrapPiece(" " * left, style))
                line.extend(part)
                line.append(WrapPiece(" " * (missing - left), style))
            self.canvas.row(line)

    def _inline(self, token: Token, style: Style, hidden: str = "") -> None:
        """Wrapped text; `hidden` is what stands before it on its first line, not shown."""
        first = (token.map or (0, 0))[0]
        lines = token.content.split("\n")
        parts: list[tuple[int, int]] = []
        at = 0
        for number, line in enumerate(lines, first):
            lead = len(line) - len(line.lstrip(" \t"))
            column = self._column_of(line.strip(" \t"), number, hidden if number == first else "")
            parts.append((at + lead, self._offset(number, column)))
            at += len(line) + 1
        source = InlineSource(token.content, parts)
        start = [self._start_of(first)]
        inline = InlineRenderer(source, self._theme, newlines=self._newlines)
        for row in inline.rows(token.children or [], style):
            is_plain = self._begins_item and row and row[0].length == len(row[0].text)
            if is_plain and (box := _BOXES.get(row[0].text[:4])):
                mark = row[0]._replace(text=box, style=self._theme.dim, length=3)
                rest = row[0]._replace(text=row[0].text[3:], offset=row[0].offset + 3)
                row = [mark, rest._replace(length=row[0].length - 3), *row[1:]]
            self._begins_item = False
            self.canvas.text([*start, *row])
            start = []

    def _code(self, token: Token) -> None:
        theme = self._theme.code
        first, end = token.map or (0, 0)
        start = [self._start_of(first)]
        language, is_fence = fence_language(token.info), token.type == "fence"
        if is_fence and not is_closed_fence(token, self._source):
            # Each line is coloured by itself, so that it never changes again.
            written = token.content.removesuffix("\n").split("\n")
            lines = [highlighted_lines(line, language, theme)[0] for line in written]
        else:
            lines = highlighted_lines(token.content, language, theme)
        first += is_fence
        for number, parts in enumerate(lines, first):
            lead, offset = self._code_origin(number, "".join(text for text, _ in parts), end)
            for row in code_rows(parts, offset, self.canvas.wide_room, theme, lead):
                self.canvas.row([*start, *row], fill=theme.plain)
                start = []

    def _marker(self, line: int, written: str, shown: str) -> list[WrapPiece]:
        """A bullet, number or bar that stands for the one in the source."""
        style = self._theme.dim
        start = self._start_of(line)
        column = self._source.lines[line].find(written, self._taken.get(line, 0))
        if column < 0:
            return [start, WrapPiece(shown, style)]
        self._taken[line] = column + len(written)
        return [start, WrapPiece(shown, style, self._offset(line, column), len(written))]

    def _start_of(self, line: int) -> WrapPiece:
        """Marks the place of what is hidden from here to the first code point shown."""
        return WrapPiece("", self._theme.text, self._offset(line, self._taken.get(line, 0)), 0)

    def _column_of(self, text: str, line: int, hidden: str) -> int:
        """Column of `text`, the trimmed rest of a source line but for closing marks."""
        written = self._source.lines[line]
        if hidden:
            start = written.find(hidden, self._taken.get(line, 0)) + len(hidden)
            return max(written.find(text, start), 0) if text else len(written)
        trimmed = written.rstrip(" \t")
        return len(trimmed) - len(text) if trimmed.endswith(text) else self._taken.get(line, 0)

    def _code_origin(self, line: int, text: str, end: int) -> tuple[int, int]:
        """How many leading spaces of `text` a tab stands for, and where the rest is written."""
        if line >= min(end, len(self._source)):
            last = len(self._source) - 1
            line = min(max(end - 1, 0), last)
            return 0, self._offset(line, len(self._source.lines[line]))
        written = self._source.lines[line]
        lead = 0 if written.endswith(text) else len(text) - len(text.lstrip(" "))
        column = max(len(written) - len(text) + lead, 0)
        return lead, self._offset(line, column)

    def _blank_before(self, line: int) -> bool:
        return line > 0 and not self._source.lines[line - 1].strip(" \t>")

    def _first_line(self, tokens: Sequence[Token]) -> int:
        return (tokens[0].map or (0, 0))[0]

    def _offset(self, line: int, column: int) -> int:
        return self._source.starts[line] + column - self._base
