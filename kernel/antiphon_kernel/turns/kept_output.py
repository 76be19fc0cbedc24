"""Output of a tool as it is kept: its beginning and its end, with what was left out said."""

from __future__ import annotations

from collections import deque

OUTPUT_LIMIT = 200_000
"""Code points of one result that are kept, half of them of its beginning."""


class KeptOutput:
    """The beginning and the end of an output that comes in pieces.

    The beginning is handed on as it comes; the end is held back until it is known. No more is held
    than the end and one piece.
    """

    def __init__(self, limit: int = OUTPUT_LIMIT) -> None:
        """`limit` is the number of code points that are kept."""
        self._head_room = limit // 2
        self._tail_limit = limit - limit // 2
        self._tail: deque[str] = deque()
        self._tail_length = 0
        self._last = "\n"
        self.left_out = 0
        """Code points of which nothing is kept; complete once the rest has been taken."""

    @property
    def is_holding_back(self) -> bool:
        """Whether there is output that has not been handed on."""
        return self._tail_length > 0

    def add(self, text: str) -> str:
        """Take the next piece; return what of it belongs to the beginning."""
        head, rest = text[: self._head_room], text[self._head_room :]
        self._head_room -= len(head)
        self._last = head[-1:] or self._last
        if rest:
            self._tail.append(rest)
            self._tail_length += len(rest)
            while self._tail_length - len(self._tail[0]) >= self._tail_limit:
                dropped = len(self._tail.popleft())
                self._tail_length -= dropped
                self.left_out += dropped
        return head

    def take_rest(self) -> str:
        """Return what follows the beginning: the end, behind a line that says what is missing."""
        text = "".join(self._tail)
        self._tail.clear()
        self._tail_length = 0
        start = max(len(text) - self._tail_limit, 0)
        if not self.left_out and not start:
            return text
        # It begins with a whole line, unless too much would be lost by that.
        most = start + self._tail_limit // 100
        start = text.find("\n", max(start - 1, 0), most) + 1 or start
        self.left_out += start
        before = "" if self._last == "\n" else "\n"
        return f"{before}[{self.left_out:,} characters left out]\n{text[start:]}"
