"""Columns of numbers and texts as bytes: what a large index is kept as, quick to write and read."""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_FORMAT: Final = b"columns1"
"""First bytes; whatever begins otherwise is not read."""

_LEVEL: Final = 1
"""Of compression: most of the numbers are small."""


@dataclass(frozen=True, slots=True)
class NumberColumns:
    """Numbers from 0 to 2^64 - 1, and texts, each in the order in which they were written."""

    numbers: Sequence[int]
    texts: Sequence[str]

    def encode(self) -> bytes:
        """Return both as bytes."""
        texts = json.dumps(self.texts).encode()
        numbers = array("Q", self.numbers)
        head = len(texts).to_bytes(8, "little")
        return _FORMAT + zlib.compress(head + texts + numbers.tobytes(), _LEVEL)

    @classmethod
    def decode(cls, data: bytes) -> NumberColumns:
        """Return what `encode` has written, on a machine of the same kind.

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
        numbers = array("Q")
        numbers.frombytes(held[end:])
        return cls(numbers, json.loads(held[8:end]))

    def reader(self) -> tuple[Iterator[int], Iterator[str]]:
        """Return the numbers and the texts, to be taken one by one; equal texts as one object."""
        known: dict[str, str] = {}
        return iter(self.numbers), (known.setdefault(text, text) for text in self.texts)
