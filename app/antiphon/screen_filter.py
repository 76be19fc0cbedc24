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

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        neutral = [_neutral(segment) for segment in segments]
        if all(one is other for one, other in zip(neutral, segments, strict=True)):
            return segments
        # What was invisible has a width now.
        return list(Strip(neutral).adjust_cell_length(Segment.get_line_length(segments)))


def _neutral(segment: Segment) -> Segment:
    text, style, control = segment
    if control or (text.isascii() and text.isprintable()):
        return segment
    neutral = displayable_in_a_row(text)
    return segment if neutral == text else Segment(neutral, style)
