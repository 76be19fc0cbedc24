"""Map of new ids to older ones: what an undo brings back has new ids.

The encoding is a list of variable-length numbers, five for each range.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from antiphon_kernel.yjs.reader import Reader
from antiphon_kernel.yjs.update import ItemId
from antiphon_kernel.yjs.varint import write_var_uint


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
    reader, found = Reader(data), list[RestoredRange]()
    while reader.remaining:
        again, source = (ItemId(reader.uint(), reader.uint()) for _ in range(2))
        found.append(RestoredRange(again, source, reader.uint()))
    return tuple(found)
