r"""Line edits: from a batch of operations to the smallest splices that carry it out.

All line numbers of a batch refer to the text before the batch. Everything is checked before
anything is planned, so a batch that fails changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from antiphon_kernel.text.lines import out_of_range, split_lines
from antiphon_kernel.text.splice_diff import Replacement, as_splices
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.records import TextSplice


@dataclass(frozen=True, slots=True)
class LineEdit:
    """Put whole lines in the place of a range; an empty range makes it an insert above its line."""

    start_line: int
    end_line: int
    content: str | None = None
    """None takes the lines away, of which there must be some."""
    expected_text: str | None = None
    """If given, the edit fails unless the range holds these lines, joined or ended by newlines."""


def plan_edit(text: str, operations: Sequence[LineEdit]) -> list[TextSplice]:
    """The splices that carry out `operations`: sorted, disjoint, without common ends.

    Each offset counts in the text as the earlier splices of the list have left it.

    Raises:
        AntiphonError: line_out_of_range, invalid_params, content_mismatch or
            overlapping_operations; `operation` in its details is the index of the culprit.
    """
    lines = split_lines(text)
    for index, one in enumerate(operations):
        _check(lines, one, index)
    order = sorted(enumerate(operations), key=lambda one: (one[1].start_line, one[1].end_line))
    # Two ranges that share a line, or an insert strictly inside a range, are an error.
    for (index, one), (other, later) in pairwise(order):
        if later.start_line < one.end_line:
            first, second = sorted((index, other))
            raise AntiphonError(
                ErrorCode.OVERLAPPING_OPERATIONS,
                f"The operations {first} and {second} of one edit touch the same lines: join"
                " them into one, or send them one after the other.",
                operation=second,
                other=first,
                start_line=later.start_line,
                end_line=later.end_line,
            )
    changes = [one for _, one in order if one.start_line < one.end_line or one.content]
    return as_splices(text, _pieces(text, lines, changes))


def _check(lines: list[str], operation: LineEdit, index: int) -> None:
    """Check that the text allows an operation."""
    start, end, expected = operation.start_line, operation.end_line, operation.expected_text
    for line in (start, end):
        if not 0 <= line <= len(lines):
            raise out_of_range(line, len(lines), operation=index, start_line=start, end_line=end)
    if start > end or (start == end and operation.content is None):
        raise invalid_params(
            f"Operation {index} names the lines {start} to {end}, which is no range:"
            " end_line is exclusive and must be greater than start_line.",
            operation=index,
            start_line=start,
            end_line=end,
            line_count=len(lines),
        )
    actual = "\n".join(lines[start:end])
    if expected is not None and expected != actual and split_lines(expected) != lines[start:end]:
        raise AntiphonError(
            ErrorCode.CONTENT_MISMATCH,
            f"Operation {index} expected other text in the lines {start} to {end} than is there:"
            " read the block again and edit what it says now.",
            operation=index,
            start_line=start,
            end_line=end,
            expected=expected,
            actual=actual,
            line_count=len(lines),
        )


def _pieces(text: str, lines: list[str], changes: Sequence[LineEdit]) -> list[Replacement]:
    """The changes in code points, with every line taken as ended by a newline."""
    pieces: list[Replacement] = []
    line = offset = 0
    for change in changes:
        offset += _length(lines, line, change.start_line)
        start, offset = offset, offset + _length(lines, change.start_line, change.end_line)
        new = "".join(f"{one}\n" for one in split_lines(change.content or ""))
        pieces.append(Replacement(start, offset, new))
        line = change.end_line
    if pieces and line == len(lines):
        adds_newline = not text and (changes[-1].content or "").endswith("\n")
        _finish(text, pieces, adds_newline=adds_newline)
    return pieces


def _finish(text: str, pieces: Sequence[Replacement], *, adds_newline: bool) -> None:
    """Decide whether a text whose end changes has a newline there: as it had, if it had lines."""
    at = len(pieces) - 1
    while at and pieces[at - 1].end == pieces[at].start:
        at -= 1
    changing = pieces[at:]
    if changing[0].start > len(text):
        changing[0].text = "\n" + changing[0].text
    for piece in changing:
        piece.start, piece.end = min(piece.start, len(text)), min(piece.end, len(text))
    begin = changing[0].start
    ending = text[max(begin - 2, 0) : begin] + "".join(piece.text for piece in changing)
    # A last line that is empty is one only by its newline.
    is_empty = ending in ("", "\n") or ending.endswith("\n\n")
    if text.endswith("\n") or is_empty or adds_newline:
        return
    shortened = next((piece for piece in reversed(changing) if piece.text), None)
    if shortened is not None:
        shortened.text = shortened.text[:-1]
    else:
        changing[0].start -= 1


def _length(lines: list[str], start: int, end: int) -> int:
    return sum(map(len, lines[start:end])) + end - start
