"""Map of new ids to older ones: what an undo brings back has new ids.

The encoding is a list of variable-length numbers, five for each range.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from antiphon_kernel.yjs.update import ItemId
from antiphon_kernel.yjs.varint import read_var_uint, write_var_uint


class RestoredRange(NamedTuple):
    """`length` ids from `again` on are the characters that were written as `source` and on."""

    again: ItemId
    source: ItemId
    length: int


def encode_restored(revivals: Iterable[RestoredRange]) -> bytes:
    """The revivals as bytes."""
    out = bytearray()
    for again, source, length in revivals:
        for number in (*again, *source, length):
            out += write_var_uint(number)
    return bytes(out)


def decode_restored(data: bytes) -> tuple[RestoredRange, ...]:
    """The inverse of `encode_restored`.

    Raises:
        ValueError: if the bytes are not revivals.
    """
    found: list[RestoredRange] = []
    at = 0
    while at < len(data):
        numbers: list[int] = []
        for _ in range(5):
            number, at = read_var_uint(data, at)
            numbers.append(number)
        again, source = ItemId(*numbers[:2]), ItemId(*numbers[2:4])
        found.append(RestoredRange(again, source, numbers[4]))
    return tuple(found)
