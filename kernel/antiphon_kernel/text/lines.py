r"""Lines of a text.

A line ends at ``\n`` only; every other character, ``\r`` and U+2028 included, belongs to the text
of its line. The empty text has no lines. Numbers are 0-based and ends are exclusive, everywhere.
"""

from __future__ import annotations

from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.quoting import quote


def split_lines(text: str) -> list[str]:
    r"""The lines of `text`, each without its ``\n``."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def line_count(text: str) -> int:
    """Count the lines of `text` without building them."""
    unfinished = bool(text) and not text.endswith("\n")
    return text.count("\n") + unfinished


def line_start(text: str, line: int) -> int:
    """Offset of the first code point of `line`; the number of lines itself gives the end.

    Raises:
        AntiphonError: line_out_of_range.
    """
    if line < 0:
        raise out_of_range(line, line_count(text))
    offset = 0
    for _ in range(line):
        newline = text.find("\n", offset)
        if newline < 0:
            if line == line_count(text):
                return len(text)
            raise out_of_range(line, line_count(text))
        offset = newline + 1
    return offset


def lines_between(text: str, start: int, end: int) -> str:
    """The exact text of the lines `start` to `end` (exclusive), newlines included.

    Raises:
        AntiphonError: line_out_of_range if the range reaches past the last line; invalid_params
            if it is turned round.
    """
    if start > end:
        raise invalid_params(
            f"A range of lines ends before it starts: {start} to {end}; give the start first.",
            start_line=start,
            end_line=end,
        )
    return text[line_start(text, start) : line_start(text, end)]


def number_lines(text: str, first: int = 0) -> str:
    """`text` with "number, tab" before each line; `first` is the number of its first line."""
    numbered = "\n".join(f"{first + n}\t{line}" for n, line in enumerate(split_lines(text)))
    return numbered + "\n" if text.endswith("\n") else numbered


def out_of_range(line: int, count: int, **details: int) -> AntiphonError:
    """The error for a line number that the text does not have."""
    return AntiphonError(
        ErrorCode.LINE_OUT_OF_RANGE,
        f"Line {quote(line)} is out of range: the text has {count} lines, so 0 to {count} is"
        " allowed; read the block again.",
        line=line,
        line_count=count,
        **details,
    )
