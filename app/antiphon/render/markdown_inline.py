"""Inline Markdown: the text of a paragraph, a heading or a table cell as styled pieces.

The constants are the contract with the parser, which is imported only when there is Markdown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from rich.style import Style

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import sanitize_for_display
from antiphon.render.links import bare_addresses, link_style
from antiphon.render.wrap import WrapPiece

if TYPE_CHECKING:
    from markdown_it.token import Token


AT: Final = "at"
"""Key in an inline token's `meta`: where in the inline content its source starts."""

TARGET: Final = "target"
"""Key in the `meta` of an image and of a link's closing token: start and end of the address in the
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
        closing = _closing_tokens(tokens)
        for token in tokens:
            row, at = rows[-1], token.meta.get(AT, 0) + shift
            if token.nesting > 0:
                styles.append(styles[-1] + self._styles.get(token.type, Style.null()))
                if token.type == "link_open":
                    link = token
                    styles[-1] += self._link(link, closing.get(id(link)), shift)
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
                row.extend(self._image(token, at, styles[-1], shift))
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
        for bare in self._bare[bisect_right(self._bare, at, key=lambda bare: bare.end) :]:
            if bare.start >= end:
                break
            start, stop = max(bare.start, at), min(bare.end, end)
            yield from self._source.pieces(done, text[done - at : start - at], style)
            shown = text[start - at : stop - at]
            linked = style + self._theme.link + bare.style
            yield from self._source.pieces(start, shown, linked)
            done = stop
        yield from self._source.pieces(done, text[done - at :], style)

    def _link(self, opening: Token, closing: Token | None, shift: int) -> Style:
        """Return the style that leads where the link says, as the text shows it."""
        if opening.markup == "autolink":
            address = str(opening.attrs.get("href", ""))
        elif closing is not None and TARGET in closing.meta:
            start, end = (place + shift for place in closing.meta[TARGET])
            address = self._source.content[start:end]
        else:
            address = ""
        return link_style(address) or Style.null()

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

    def _image(self, token: Token, at: int, style: Style, shift: int) -> Iterator[WrapPiece]:
        yield WrapPiece("▣ ", self._theme.marker)
        for row in self.rows(token.children or [], style + self._theme.link, at + len("![")):
            yield from row
        yield from self._address(token, style, shift)

    def _address(
        self, token: Token, style: Style, shift: int, label: str = ""
    ) -> Iterator[WrapPiece]:
        """The address behind a label that does not say it already."""
        if TARGET not in token.meta:
            return
        start, end = (place + shift for place in token.meta[TARGET])
        address = self._source.content[start:end]
        if not address or address == label:
            return
        dim = style + self._theme.link_target
        linked = dim + (link_style(address) or Style.null())
        yield WrapPiece(" (", dim)
        yield from self._source.pieces(start, address.translate(_NOT_IN_A_LINE), linked)
        yield WrapPiece(")", dim)


def _closing_tokens(tokens: Sequence[Token]) -> dict[int, Token]:
    """Return the end of each link, by the identity of the token that opens it."""
    found: dict[int, Token] = {}
    end: Token | None = None
    for token in reversed(tokens):
        if token.type == "link_close":
            end = token
        elif token.type == "link_open" and end is not None:
            found[id(token)] = end
    return found
