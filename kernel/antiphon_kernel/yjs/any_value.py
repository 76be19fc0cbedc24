"""JSON-like values as lib0 writes them; `Reader.any` is the inverse of `encode_any`."""

from __future__ import annotations

import struct
from enum import Enum
from typing import Final

from antiphon_kernel.yjs.varint import write_bytes, write_text, write_var_uint

_INTEGER_LIMIT: Final = 2**31
"""Larger whole numbers are written as floats, as a JavaScript peer would."""


class Undefined(Enum):
    """Value that a JavaScript peer writes for nothing; JSON has no such value."""

    UNDEFINED = "undefined"


UNDEFINED: Final = Undefined.UNDEFINED


def encode_any(value: object) -> bytes:
    """The bytes of null, a boolean, number, string, byte string, list, map or `UNDEFINED`.

    Raises:
        TypeError: if the value is something else.
    """
    if isinstance(value, str):
        data = value.encode()
        return b"\x77" + write_var_uint(len(data)) + data
    match value:
        case None:
            return b"\x7e"
        case Undefined.UNDEFINED:
            return b"\x7f"
        case True:
            return b"\x78"
        case False:
            return b"\x79"
        case int() if -_INTEGER_LIMIT < value < _INTEGER_LIMIT:
            return b"\x7d" + _signed(value)
        case int():
            return b"\x7a" + struct.pack(">q", value)
        case float():
            return b"\x7b" + struct.pack(">d", value)
        case bytes():
            return b"\x74" + write_bytes(value)
        case list():
            return b"\x75" + write_var_uint(len(value)) + b"".join(map(encode_any, value))
        case dict():
            pairs = (write_text(str(key)) + encode_any(one) for key, one in value.items())
            return b"\x76" + write_var_uint(len(value)) + b"".join(pairs)
    raise TypeError(f"{type(value).__name__} is not a JSON-like value")


def _signed(value: int) -> bytes:
    left = abs(value)
    out = bytearray([(0x80 if left > 0x3F else 0) | (0x40 if value < 0 else 0) | (left & 0x3F)])
    left >>= 6
    while left:
        out.append((0x80 if left > 0x7F else 0) | (left & 0x7F))
        left >>= 7
    return bytes(out)
