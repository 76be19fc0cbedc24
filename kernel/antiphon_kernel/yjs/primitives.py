"""Primitives of lib0: a cursor over received bytes that never reads past their end, and writers.

Integers have seven bits a byte, low bits first; bytes and texts have their length in front.
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import Final

MAX_VAR_UINT: Final = 2**53 - 1
"""The largest integer a JavaScript peer can hold."""

_MAX_NESTING: Final = 64


class Undefined(Enum):
    """Value that a JavaScript peer writes for nothing; JSON has no such value."""

    UNDEFINED = "undefined"


UNDEFINED: Final = Undefined.UNDEFINED


class Reader:
    """Reads lib0's primitives one after the other; every misfit is a ValueError."""

    __slots__ = ("_data", "_size", "at")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._size = len(data)
        self.at = 0

    @property
    def remaining(self) -> int:
        """Return the number of unread bytes."""
        return self._size - self.at

    def byte(self) -> int:
        """The next byte."""
        at = self.at
        if at >= self._size:
            raise ValueError("the data ends where a byte was expected")
        self.at = at + 1
        return self._data[at]

    def skip(self, expected: bytes) -> bool:
        """Go past these bytes if they are the next; return whether they are."""
        if self._data.startswith(expected, self.at):
            self.at += len(expected)
            return True
        return False

    def uint(self) -> int:
        """A variable-length unsigned integer, at most 2^53 - 1."""
        at = self.at
        data = self._data
        try:
            value = data[at]
            at += 1
            if value < 0x80:
                self.at = at
                return value
            value &= 0x7F
            shift = 7
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
                if shift > 49:
                    raise ValueError("an integer has more than eight bytes")
        except IndexError:
            raise ValueError("the data ends inside an integer") from None
        if value > MAX_VAR_UINT:
            raise ValueError("an integer is larger than 2^53 - 1")
        self.at = at
        return value

    def count(self) -> int:
        """A number of things to follow; each takes a byte at least, so more cannot be meant."""
        value = self.uint()
        if value > self._size - self.at:
            raise ValueError(
                f"{value} elements are announced, but only {self.remaining} bytes follow"
            )
        return value

    def block(self) -> bytes:
        """Bytes behind their length."""
        length = self.count()
        start = self.at
        self.at = start + length
        return self._data[start : self.at]

    def text(self) -> str:
        """UTF-8 text behind its length in bytes."""
        return self.block().decode()

    def any(self, depth: int = 0) -> object:
        """A JSON-like value as lib0 encodes it."""
        kind = self.byte()
        if kind == 119:
            return self.text()
        if kind in _CONSTANTS:
            return _CONSTANTS[kind]
        if kind == 125:
            return self._signed()
        if kind in _FIXED:
            layout, start = _FIXED[kind], self.at
            if layout.size > self.remaining:
                raise ValueError("the data ends inside a number")
            self.at = start + layout.size
            return layout.unpack_from(self._data, start)[0]
        if kind == 116:
            return self.block()
        if depth >= _MAX_NESTING:
            raise ValueError(f"a value is nested deeper than {_MAX_NESTING} levels")
        if kind == 117:
            return [self.any(depth + 1) for _ in range(self.count())]
        if kind == 118:
            return {self.text(): self.any(depth + 1) for _ in range(self.count())}
        raise ValueError(f"{kind} is not the tag of a value")

    def end(self) -> None:
        """Insist that everything has been read."""
        if self.at != self._size:
            raise ValueError(f"{self.remaining} bytes follow after the end")

    def _signed(self) -> int:
        first = self.byte()
        value = first & 0x3F
        if first & 0x80:
            shift = 6
            while True:
                byte = self.byte()
                value |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
                if shift > 62:
                    raise ValueError("a signed integer has more than ten bytes")
        return -value if first & 0x40 else value


_CONSTANTS: Final[dict[int, object]] = {
    127: UNDEFINED,
    126: None,
    121: False,
    120: True,
}
_FIXED: Final = {124: struct.Struct(">f"), 123: struct.Struct(">d"), 122: struct.Struct(">q")}
_SHORT: Final = [bytes([value]) for value in range(0x80)]


def write_var_uint(value: int) -> bytes:
    """`value` (0 or more) as bytes."""
    if value < len(_SHORT):
        return _SHORT[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    out = bytearray()
    while value > 0x7F:
        out.append(0x80 | (value & 0x7F))
        value >>= 7
    out.append(value)
    return bytes(out)


def write_bytes(data: bytes) -> bytes:
    """Bytes behind their number."""
    return write_var_uint(len(data)) + data


def write_text(text: str) -> bytes:
    """A text as UTF-8, behind the number of its bytes."""
    data = text.encode()
    return write_var_uint(len(data)) + data
