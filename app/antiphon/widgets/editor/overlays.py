"""Cursors, selections and names of others, laid over lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from antiphon.render.cell_theme import CellTheme
from antiphon.render.lines import StyleSpan
from antiphon.render.wrap import graphemes, is_one_cell_each

END_CURSOR = "▌"
"""A cursor behind the last character of a line."""

_FLAG_GAP = 2
"""Blank columns between what a row says and a flag that has to stand behind it."""


@dataclass(frozen=True, slots=True)
class RemoteCursor:
    """Somebody else's cursor in a text; `anchor` is the other end of their selection."""

    client: int
    principal: str
    username: str
    colour: int
    offset: int
    anchor: int | None = None
    streaming: bool = False
    """The append point of a model or a program: it goes along with the text."""
    has_moved: bool = False
    """Its owner has just moved it: the name may cover the text of another row."""
    is_writing: bool = False


class InkRange(NamedTuple):
    """Text from `start` to `end` (exclusive, code points) that is `step` steps old."""

    start: int
    end: int
    colour: int | None
    """The colour slot of its author; None if it is not known, or if an undo changed it."""
    step: int


def ink_style(ink: InkRange, theme: CellTheme) -> Style:
    """Return the style of new text in a theme that has such styles."""
    steps = theme.ink_unknown if ink.colour is None else theme.ink[ink.colour % len(theme.ink)]
    return steps[min(ink.step, len(steps) - 1)]


class CursorLabel(NamedTuple):
    """A cursor at a column and the name of whose it is.

    `name_style` is the style of the name, `style` that of the cursor's own cell and of a flag.
    """

    column: int
    name: str
    style: Style
    name_style: Style
    may_be_flag: bool = False
    """The name may stand over the text of another row: its owner has just moved the cursor."""
    stays: bool = False
    """The name is shown as long as there is room for it behind the line."""

    @classmethod
    def of(cls, cursor: RemoteCursor, column: int, theme: CellTheme) -> CursorLabel:
        """Return the label of a cursor in the colours of its owner."""
        slot = cursor.colour % len(theme.cursors)
        styles = theme.cursors[slot], theme.authors[slot]
        return cls(column, cursor.username, *styles, cursor.has_moved, cursor.streaming)


class LabelledLine(NamedTuple):
    """A line with cursors on it and names behind its end."""

    strip: Strip
    flags: tuple[CursorLabel, ...]
    """Labels whose name has no room there and may stand over another row."""


def styled(strip: Strip, marks: Sequence[StyleSpan]) -> Strip:
    """The line with marks, by column, on top of its styles; columns outside are ignored.

    A character of two cells is marked whole. `Strip.crop` cuts characters that are joined from
    several in two, so this goes by graphemes.
    """
    for start, end, style in marks:
        segments: list[Segment] = []
        column = 0
        for text, own, _ in strip:
            if is_one_cell_each(text):
                low = min(max(start - column, 0), len(text))
                high = max(min(end - column, len(text)), low)
                column += len(text)
                if low == high:
                    segments.append(Segment(text, own))
                    continue
                shown = style if own is None else own + style
                parts = ((text[:low], own), (text[low:high], shown), (text[high:], own))
                segments += [Segment(part, look) for part, look in parts if part]
                continue
            for unit in graphemes(text):
                is_marked = column < end and column + unit.width > start
                shown = style if own is None else own + style
                segments.append(Segment(text[unit.start : unit.end], shown if is_marked else own))
                column += unit.width
        strip = Strip(segments, strip.cell_length).simplify()
    return strip


def labelled(
    strip: Strip, labels: Sequence[CursorLabel], width: int, *, taken: int = 0
) -> LabelledLine:
    """Draw cursors on a line, and behind its text the names that belong there and fit whole.

    A name belongs there if its cursor stands there, or if it stays. Any other one, and one without
    room, is a flag if it may be one, else it is left out.

    Args:
        taken: columns at the start that no name may stand in, blank or not.
    """
    end = max(cell_len(strip.text.rstrip()), taken)
    behind = [label for label in labels if label.column >= end]
    inside = [label for label in labels if label.column < end]
    strip = styled(strip, [StyleSpan(one.column, one.column + 1, one.style) for one in inside])
    flags = []
    for label in (*behind, *inside):
        start = end + 1
        is_behind = label in behind
        if is_behind:
            start = max(end, label.column)
            if start < width:
                strip = written_over(strip, start, END_CURSOR, label.name_style)
                start = end = start + 1
        has_place = label.stays or (is_behind and label.may_be_flag)
        if has_place and start + cell_len(label.name) <= width:
            strip = written_over(strip, start, label.name, label.name_style)
            end = start + cell_len(label.name)
        elif label.may_be_flag:
            flags.append(label)
    return LabelledLine(strip, tuple(flags))


def flagged(
    strip: Strip,
    flags: Sequence[CursorLabel],
    width: int,
    *,
    left: int = 0,
    keep_text: bool = False,
) -> Strip:
    """Write names over a row at the columns of their cursors, shifted where they do not fit.

    Their line begins at `left`; with `keep_text` they stand behind what the row says.
    """
    free = cell_len(strip.text.rstrip()) + _FLAG_GAP if keep_text else left
    for flag in sorted(flags, key=lambda one: one.column):
        start = max(min(left + flag.column, width - cell_len(flag.name)), free)
        room = width - start
        if room <= 0:
            break
        name = set_cell_size(flag.name, min(cell_len(flag.name), room))
        strip = written_over(strip, start, name, flag.style)
        free = start + cell_len(name)
    return strip


def written_over(strip: Strip, start: int, text: str, style: Style) -> Strip:
    """Write a text over the columns of a line from `start` on, on the ground that is there."""
    end = start + cell_len(text)
    strip = strip.extend_cell_length(end)
    before: list[Segment] = []
    behind: list[Segment] = []
    ground, column = None, 0
    for words, own, _ in strip:
        after = column + len(words)
        if (after <= start or column >= end) and is_one_cell_each(words):
            (before if after <= start else behind).append(Segment(words, own))
            column = after
            continue
        for unit in graphemes(words):
            stop = column + unit.width
            if stop <= start:
                before.append(Segment(words[unit.start : unit.end], own))
            elif column >= end:
                behind.append(Segment(words[unit.start : unit.end], own))
            else:
                ground = ground or own
                before.append(Segment(" " * max(0, start - column), own))
                behind.append(Segment(" " * max(0, stop - end), own))
            column = stop
    piece = Segment(text, style if ground is None else Style(bgcolor=ground.bgcolor) + style)
    pieces = [one for one in (*before, piece, *behind) if one.text]
    return Strip(pieces, strip.cell_length).simplify()
