"""The block's text as it may be put on a terminal, code point by code point."""

from __future__ import annotations

import re

from antiphon_kernel.text.sanitize import PICTURES, sanitize

_LINE_CONTROLS = str.maketrans({"\n": "\u240a", "\t": "\u2409"})
_STRAY_JOINER = re.compile(f"(?<![{PICTURES}\ufe0f])\u200d|\u200d(?![{PICTURES}])")


def sanitize_for_display(text: str) -> str:
    """`text` of the same length, without anything that drives or confuses a terminal.

    Besides neutralising, a joiner that does not join two pictures becomes a non-joiner: widths
    are counted as if it always joined.
    """
    text = sanitize(text)
    if not text.isascii() and "\u200d" in text:
        text = _STRAY_JOINER.sub("\u200c", text)
    return text


def displayable_in_a_row(text: str) -> str:
    """The same for a name, which has one row whatever is in it."""
    text = sanitize_for_display(text)
    return text if text.isprintable() else text.translate(_LINE_CONTROLS)


class SourceLines:
    r"""The lines of a displayable text, without line ends, and where they are in the text.

    A line ends at ``\n``; a ``\r`` right before it, or at the end of the text, is part of the line
    end and not shown.
    """

    __slots__ = ("lines", "starts")

    def __init__(self, text: str, offset: int = 0) -> None:
        """`offset` is where `text` starts in the block's text."""
        self.lines: list[str] = []
        self.starts: list[int] = []
        at = offset
        for line in text.split("\n"):
            self.starts.append(at)
            at += len(line) + 1
            self.lines.append(sanitize_for_display(line.removesuffix("\r")))

    def __len__(self) -> int:
        return len(self.lines)
