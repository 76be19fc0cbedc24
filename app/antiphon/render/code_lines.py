"""Code on its own background, cut at the width, not at words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.style import Style

from antiphon.render.cell_theme import CodeTheme
from antiphon.render.wrap import WrapPiece, expand_tabs, wrap

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
