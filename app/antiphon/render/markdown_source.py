"""Markdown as it is written: its headings, and its lines with every character in its place."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from rich.style import Style

from antiphon.render.cell_theme import CellTheme
from antiphon.render.code_source import coloured, part_spans
from antiphon.render.display import displayable_in_a_row
from antiphon.render.lines import StyleSpan
from antiphon.render.markdown_blocks import AT, FENCE_LINE, TARGET, Fence, fence_behind
from antiphon.render.text_lines import on_ground

_MARK: Final = re.compile(
    r"^ {0,3}(?:(?P<level>#{1,6})(?:[ \t]+(?P<title>[^\n]*))?"
    r"|(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*))$",
    re.MULTILINE,
)
_CLOSING: Final = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_FORMATTING: Final = re.compile(
    r"(?P<mark>\*{1,3}|~~|\b_{1,3}|`{1,2})(?P<inside>(?=\S).+?(?<=\S))(?P=mark)"
    r"|\[(?P<link>[^\]\n]*)\]\([^)\n]*\)"
)
_BEFORE: Final = re.compile(r"^(?:#{1,6}|>|[-*+])[ \t]+")
_NESTED: Final = 3
"""Marks within marks that are taken away."""

_LONGEST_TITLE: Final = 200
_LONGEST_LINE: Final = 400


class Heading(NamedTuple):
    """A heading that is written with `#`."""

    offset: int
    """Of its line in the text."""
    level: int
    title: str
    """Without the marks of Markdown."""


def headings(text: str) -> list[Heading]:
    """Return the headings of a text, outside of its fences."""
    found: list[Heading] = []
    fence: Fence | None = None
    for mark in _MARK.finditer(text):
        if mark["fence"]:
            fence = fence_behind(mark["fence"], mark["info"], fence)
        elif fence is None and mark["title"]:
            title = without_marks(_CLOSING.sub("", mark["title"][:_LONGEST_TITLE]))
            if title:
                found.append(Heading(mark.start(), len(mark["level"]), title))
    return found


def without_marks(text: str) -> str:
    """Return a line of Markdown without the marks at its start and around its words."""
    text = _BEFORE.sub("", text.strip())
    for _ in range(_NESTED):
        text = _FORMATTING.sub(lambda found: found["inside"] or found["link"] or "", text)
    return text.strip()


def first_line(text: str) -> str:
    """Return the first line of a Markdown text, as a row can show it."""
    return displayable_in_a_row(without_marks(text.strip().partition("\n")[0][:_LONGEST_LINE]))


_LONGEST: Final = 2_000
"""Code points of a line beyond which nothing inside it is styled."""

_REMEMBERED: Final = 512
"""Lines whose styles are kept."""

_PREFIX: Final = re.compile(r"(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t]|$)))*[ \t]*")
_BULLET: Final = re.compile(r"[-*+](?=[ \t]|$)")
_HEADING: Final = re.compile(r"(#{1,6})(?:[ \t]+|$)")
_MARKS_ONLY: Final = re.compile(
    r"[ \t]*(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,}|=+[ \t]*)"
)
_SET: Final = {
    "em_open": "emphasis",
    "strong_open": "strong",
    "s_open": "strike",
    "link_open": "link",
}


class _FencedLines(NamedTuple):
    """A fence from its first line to its last, which may be the last of the text."""

    first: int
    last: int
    language: str


class MarkdownSource:
    """Styles of the lines of a text that is edited; an edit costs what it touches."""

    def __init__(self, lines: Sequence[str]) -> None:
        """`lines` may change; `replaced` has to be told of that."""
        self._lines = lines
        self._marked = [at for at, line in enumerate(lines) if _may_be_fence(line)]
        """Lines that may open or close a fence."""
        self._fences: list[_FencedLines] | None = None

    def replaced(self, first: int, old_last: int, new_last: int) -> None:
        """Follow an edit of the lines `first` to `old_last`, which are up to `new_last` now."""
        low, high = bisect_left(self._marked, first), bisect_right(self._marked, old_last)
        came = [at for at in range(first, new_last + 1) if _may_be_fence(self._lines[at])]
        grown = new_last - old_last
        if low == high and not came and not grown:
            return
        behind = self._marked[high:]
        self._marked[low:] = [*came, *((at + grown for at in behind) if grown else behind)]
        self._fences = None

    def spans(self, line: int, theme: CellTheme) -> tuple[StyleSpan, ...]:
        """The styled parts of a line, in order and apart."""
        text = self._lines[line]
        fence = self._fence_at(line)
        if fence is not None and (
            line == fence.first or (line == fence.last and FENCE_LINE.fullmatch(text))
        ):
            return (StyleSpan(0, len(text), theme.dim),)
        return _line_spans(text, None if fence is None else fence.language, theme)

    def without_marks(self, line: int) -> str:
        """Return a line as it reads: without fences, and the marks of what is no code."""
        from antiphon.render.markdown_tokens import parse_inline

        text, fence = self._lines[line], self._fence_at(line)
        if fence is None:
            if _MARKS_ONLY.fullmatch(text):
                return ""
            prefix = _PREFIX.match(text)
            start = prefix.end() if prefix else 0
            lead = _BULLET.sub("•", text[:start])
            if heading := _HEADING.match(text, start):
                start = heading.end()
            return lead + "".join(token.content for token in parse_inline(text[start:]))
        return "" if FENCE_LINE.fullmatch(text) and line in (fence.first, fence.last) else text

    def _fence_at(self, line: int) -> _FencedLines | None:
        if self._fences is None:
            self._fences = []
            first = 0
            fence: Fence | None = None
            for at in self._marked:
                if found := FENCE_LINE.fullmatch(self._lines[at]):
                    before, fence = fence, fence_behind(found[1], found[2], fence)
                    if before is None:
                        first = at
                    elif fence is None:
                        self._fences.append(_FencedLines(first, at, before.language))
            if fence is not None:
                self._fences.append(_FencedLines(first, len(self._lines), fence.language))
        at = bisect_right(self._fences, line, key=lambda fence: fence.first) - 1
        if at < 0 or self._fences[at].last < line:
            return None
        return self._fences[at]


def _may_be_fence(line: str) -> bool:
    return "```" in line or "~~~" in line


@lru_cache(_REMEMBERED)
def _line_spans(line: str, language: str | None, theme: CellTheme) -> tuple[StyleSpan, ...]:
    """Return the styled parts of a line of text, or of code in a language."""
    if language is not None:
        return part_spans(coloured([line], language, theme)[0])
    if _MARKS_ONLY.fullmatch(line):
        return (StyleSpan(0, len(line), theme.dim),)
    prefix = _PREFIX.match(line)
    start = prefix.end() if prefix else 0
    style = theme.dim if ">" in line[:start] else theme.text
    if heading := _HEADING.match(line, start):
        styles = (theme.heading_1, theme.heading_2, theme.heading_3)
        style = styles[min(len(heading[1]), 3) - 1]
        start = heading.end()
    if len(line) > _LONGEST:
        return (StyleSpan(0, start, theme.dim),)
    styles_of = [theme.dim] * start + _inline_styles(line[start:], style, theme)
    return tuple(_joined(styles_of))


def _inline_styles(text: str, style: Style, theme: CellTheme) -> list[Style]:
    """The style of each code point of inline Markdown: what is not text is a mark."""
    from antiphon.render.markdown_tokens import parse_inline

    styles = [theme.dim] * len(text)
    stack = [style]
    for token in parse_inline(text):
        at = token.meta.get(AT, 0)
        if token.nesting > 0:
            name = _SET.get(token.type)
            stack.append(stack[-1] + getattr(theme, name) if name else stack[-1])
        elif token.nesting < 0 and len(stack) > 1:
            stack.pop()
        elif token.type == "code_inline":
            length = len(text) - at
            end = text.find(token.markup, at + len(token.markup))
            length = end - at if end > 0 else length
            code = stack[-1] + on_ground(theme.inline_code)
            _fill(styles, at + len(token.markup), at + length, code)
        elif token.type == "text_special":
            _fill(styles, at, at + len(token.markup), stack[-1])
        elif token.type == "image":
            _fill(styles, at + 2, at + 2 + len(token.content), theme.link)
        elif token.content:
            _fill(styles, at, at + len(token.content), stack[-1])
        if TARGET in token.meta:
            start, end = token.meta[TARGET]
            _fill(styles, start, end, theme.dim)
    return styles


def _fill(styles: list[Style], start: int, end: int, style: Style) -> None:
    end = min(end, len(styles))
    if start < end:
        styles[start:end] = [style] * (end - start)


def _joined(styles: Sequence[Style]) -> Iterator[StyleSpan]:
    start = 0
    for at in range(1, len(styles) + 1):
        if at == len(styles) or styles[at] != styles[start]:
            yield StyleSpan(start, at, styles[start])
            start = at
