"""Columns of numbers and texts as bytes: what a large index is kept as, quick to write and read."""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Iterator, Sequence
from typing import Final

_FORMAT: Final = b"columns1"
"""First bytes; whatever begins otherwise is not read."""

_LEVEL: Final = 1
"""Of compression: most of the numbers are small."""


def encode_columns(numbers: Sequence[int], texts: Sequence[str]) -> bytes:
    """Return numbers from 0 to 2^64 - 1, and texts, as bytes."""
    named = json.dumps(texts).encode()
    head = len(named).to_bytes(8, "little")
    return _FORMAT + zlib.compress(head + named + array("Q", numbers).tobytes(), _LEVEL)


def decode_columns(data: bytes) -> tuple[Iterator[int], Iterator[str]]:
    """Return what `encode_columns` has written, on a machine of the same kind.

    Both are to be taken one by one; equal texts are one object.

    Raises:
        ValueError: if it is anything else.
    """
    if not data.startswith(_FORMAT):
        raise ValueError("it has another format")
    try:
        held = zlib.decompress(data[len(_FORMAT) :])
    except zlib.error as error:
        raise ValueError(f"it cannot be read: {error}") from error
    end = 8 + int.from_bytes(held[:8], "little")
    numbers, known = array("Q"), dict[str, str]()
    numbers.frombytes(held[end:])
    return iter(numbers), (known.setdefault(text, text) for text in json.loads(held[8:end]))
