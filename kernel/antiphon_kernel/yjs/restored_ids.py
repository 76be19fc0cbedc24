"""Map of new ids to older ones: what an undo brings back has new ids.

The encoding is a list of variable-length numbers, five for each range.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from antiphon_kernel.yjs.primitives import Reader, write_var_uint
from antiphon_kernel.yjs.update import ItemId


class RestoredRange(NamedTuple):
    """`length` ids from `again` on are the characters that were written as `source` and on."""

    again: ItemId
    source: ItemId
    length: int


def encode_restored(revivals: Iterable[RestoredRange]) -> bytes:
    """The revivals as bytes."""
    numbers = (one for again, source, size in revivals for one in (*again, *source, size))
    return b"".join(map(write_var_uint, numbers))


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
