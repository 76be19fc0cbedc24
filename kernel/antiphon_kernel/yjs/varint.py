"""Variable-length unsigned integers, as lib0 writes them: seven bits a byte, low bits first.

Bytes and texts of any length have theirs in front.
"""

from __future__ import annotations

_SHORT = [bytes([value]) for value in range(0x80)]


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
