"""The last step before text is put on the screen: nothing in it drives the terminal.

Names, labels and messages come from kernels and files that may be hostile. Textual puts every row
of every widget through the app's line filters, so that no widget can leave this out.
"""

from __future__ import annotations

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter
from textual.strip import Strip

from antiphon.render.display import displayable_in_a_row


class NeutralText(LineFilter):
    """Replaces each dangerous code point by a visible one; the row keeps its width."""

    def __init__(self, before: tuple[LineFilter, ...] = ()) -> None:
        """`before`: filters to apply first; a row for each filter would cost much more."""
        super().__init__()
        self.before = before

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        for one in self.before:
            segments = one.apply(segments, background)
        # As a whole: what is harmless behind a letter may stand at the beginning of a segment.
        text = "".join([segment.text for segment in segments])
        if text.isascii() and text.isprintable():
            return segments
        neutral = displayable_in_a_row(text)
        if neutral == text:
            return segments
        cut, start = list[Segment](), 0
        for segment in segments:
            end = start + len(segment.text)
            cut.append(Segment(neutral[start:end], segment.style))
            start = end
        # What was invisible has a width now.
        return list(Strip(cut).adjust_cell_length(Segment.get_line_length(segments)))
