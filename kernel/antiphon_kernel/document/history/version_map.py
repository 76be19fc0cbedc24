"""From a place in an earlier version of a text to the same place now.

A line of the earlier version is still there if all its characters are, side by side, from the
start of a line to the end of one; its newline may be another one. A line that was removed and typed
again is not the same line. A position is where the characters around it are.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, pairwise

from antiphon_kernel.document.history.block_history import BlockHistory
from antiphon_kernel.text.lines import line_count, out_of_range, split_lines


class StaleError(Exception):
    """Error for content of the earlier version that has changed.

    `start` and `end` are code points of the text now: what stands in its place, as far as that
    can be told.
    """

    def __init__(self, start: int, end: int) -> None:
        super().__init__(f"changed since: {start} to {end}")
        self.start = start
        self.end = end


class VersionMap:
    """One earlier version of a text beside the text as it is now."""

    def __init__(self, history: BlockHistory, section: str | None, version: int) -> None:
        self._parts = history.as_of(history.sequence(section), version)
        """The characters of the earlier version, as what they are now."""
        self._starts: list[int] = []
        length = 0
        for part in self._parts:
            self._starts.append(length)
            length += part.size
        self._offsets: dict[int, int] = {}
        offset = 0
        for segment in history.sequence(section) or ():
            self._offsets[id(segment)] = offset
            if segment.alive:
                offset += segment.size
        self.before = "".join(str(part.content) for part in self._parts)
        """The text of the earlier version."""
        self.now = history.text(section)
        """The text now."""
        lengths = (len(line) + 1 for line in split_lines(self.before))
        self._line_starts = list(accumulate(lengths, initial=0))[:-1]

    @property
    def line_count(self) -> int:
        """Lines of the earlier version."""
        return len(self._line_starts)

    def line(self, number: int) -> int:
        """Return the current number of the earlier line `number`, for an insertion above it.

        The number of lines stands for the end, then as now.

        Raises:
            StaleError: if the line is not there any more.
            AntiphonError: line_out_of_range.
        """
        if number == self.line_count:
            return line_count(self.now)
        return self.lines(number, number + 1)[0]

    def lines(self, start: int, end: int) -> tuple[int, int]:
        """Return the current range of the lines from `start` to `end` (exclusive).

        Raises:
            StaleError: if one of them has changed, or something stands between them.
            AntiphonError: line_out_of_range.
        """
        for number in (start, end):
            if not 0 <= number <= self.line_count:
                raise out_of_range(number, self.line_count)
        if start >= end:
            at = self.line(start)
            return at, at
        found = [self._line(number) for number in range(start, end)]
        if None not in found:
            spans = [span for span in found if span is not None]
            if all(one[1] + 1 == other[0] for one, other in pairwise(spans)):
                first = self.now.count("\n", 0, spans[0][0])
                return first, first + end - start
        # What stands between the nearest lines that survived on both sides.
        above = next((s for s in map(self._line, range(start - 1, -1, -1)) if s), None)
        below = next((s for s in map(self._line, range(end, self.line_count)) if s), None)
        begin = min(above[1] + 1, len(self.now)) if above else 0
        last = below[0] if below else len(self.now)
        raise StaleError(begin, max(begin, last))

    def _line(self, number: int) -> tuple[int, int] | None:
        """Start and end now of a line that has survived."""
        start = self._line_starts[number]
        end = self.before.find("\n", start)
        if end < 0:
            end = len(self.before)
        if start == end:
            newline = self._place(start, start + 1)
            if newline is None or not self._begins_line(newline[0]):
                return None
            return newline[0], newline[0]
        span = self._place(start, end)
        if span is None or not self._begins_line(span[0]):
            return None
        ends_line = span[1] == len(self.now) or self.now[span[1]] == "\n"
        return span if ends_line else None

    def _begins_line(self, at: int) -> bool:
        return at == 0 or self.now[at - 1] == "\n"

    def splice(self, offset: int, deleted: int) -> int:
        """Return the current offset of a splice at `offset` of the earlier version.

        What others have inserted at the place stays before it.

        Raises:
            StaleError: if one of the `deleted` characters is gone or something stands among them.
        """
        if not deleted:
            return self._position(offset)
        span = self._place(offset, offset + deleted)
        if span is None:
            raise StaleError(self._position(offset), self._position(offset + deleted))
        return span[0]

    def _position(self, offset: int) -> int:
        """The offset now of the place before a character, be it there or not."""
        if offset >= len(self.before):
            return len(self.now)
        at = bisect_right(self._starts, offset) - 1
        part = self._parts[at]
        return self._offsets[id(part)] + (offset - self._starts[at] if part.alive else 0)

    def _place(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the range where these characters are now, if they all are, side by side."""
        at = bisect_right(self._starts, start) - 1
        first = reached = self._position(start)
        while at < len(self._parts) and self._starts[at] < end:
            part, begin = self._parts[at], self._starts[at]
            skipped = max(start - begin, 0)
            if not part.alive or self._offsets[id(part)] + skipped != reached:
                return None
            reached += min(end - begin, part.size) - skipped
            at += 1
        return first, reached
