"""Finding whole binary messages in what a client sends, ahead of the library's parser.

The library reads a frame through a chain of generators, which takes longer than checking and
applying what a keystroke says. A message that is one frame, all of it here, needs no parser;
anything else is the library's to read, and to reject.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from websockets.frames import apply_mask  # type: ignore[attr-defined]

_BINARY: Final = 0x82
"""The first byte of a binary message in one frame."""

_FIN: Final = 0x80
_MASKED: Final = 0x80
_FIRST: Final = (0x1, 0x2)
_CONTINUED: Final = 0x0
_PING_PONG: Final = (0x89, 0x8A)


class MessageSplitter:
    """Splitter of the frames of one connection, from its first frame on.

    The library gets the bytes of every other frame in their place. From a frame on that ends the
    connection, because it closes it or because no client may send it, it gets everything.
    """

    def __init__(self, limit: int) -> None:
        """`limit` is the most bytes of a message; a longer one ends the connection."""
        self._limit = limit
        self._begun = b""
        """A frame that has begun, without its length so far."""
        self._missing = 0
        """Bytes still to come of the frame that the library is reading."""
        self._fragmented = False
        """Whether a message has begun that goes on in the next frames."""
        self._fragments = 0
        """Bytes of that message so far."""
        self._ending = False

    def split(self, data: bytes) -> Iterator[tuple[list[bytes], bytes]]:
        """Yield runs of messages, each with the bytes behind it that are the library's."""
        if self._begun:
            data, self._begun = self._begun + data, b""
        messages: list[bytes] = []
        size = len(data)
        begin, at = 0, min(self._missing, size)
        self._missing -= at
        while at < size and not self._ending:
            head = data[at]
            payload = _payload(data, at)
            if payload is None:
                self._begun = data[at:]
                size = at
                break
            start, end = payload
            length = end - start
            is_whole = head == _BINARY and end <= size and length <= self._limit
            if is_whole and start and not self._fragmented:
                if begin < at:
                    yield messages, data[begin:at]
                    messages = []
                messages.append(apply_mask(data[start:end], data[start - 4 : start]))
                begin = at = end
            else:
                self._pass_on(head, length, masked=bool(start))
                self._missing = max(0, end - size)
                at = min(end, size)
        yield messages, data[begin:size]

    def _pass_on(self, head: int, length: int, *, masked: bool) -> None:
        """Take note of a frame that the library reads, with so many bytes of payload."""
        opcode = head & ~_FIN
        expected = (_CONTINUED,) if self._fragmented else _FIRST
        if opcode in expected and masked:
            self._fragments = self._fragments + length if self._fragmented else length
            self._fragmented = not head & _FIN
            self._ending = self._fragments > self._limit
        elif head not in _PING_PONG or not masked:
            self._ending = True


def _payload(data: bytes, at: int) -> tuple[int, int] | None:
    """Return where the payload of the frame at `at` starts and ends; None if that is not here yet.

    It starts at 0 if it is not masked.
    """
    size = len(data)
    if size < at + 2:
        return None
    length = data[at + 1] - _MASKED
    if length < 0:
        return 0, size
    start = at + 6
    if length >= 126:
        start += 2 if length == 126 else 8
    if size < start:
        return None
    if length >= 126:
        length = int.from_bytes(data[at + 2 : start - 4])
    return start, start + length
