"""State vectors: for each CRDT client id, the clock after the last item that is known."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Final

from antiphon_kernel.yjs.primitives import Reader, write_var_uint

NO_STATE: Final = b"\x00"
"""The state vector of an empty document."""


def decode_state_vector(data: bytes) -> dict[int, int]:
    """Client id to next clock.

    Raises:
        ValueError: if the bytes are not a state vector.
    """
    reader = Reader(data)
    return {reader.uint(): reader.uint() for _ in range(reader.count())}


def clock_in(data: bytes, client: int) -> int:
    """Return one client's next clock in a state vector.

    Raises:
        ValueError: if the bytes are not a state vector.
    """
    reader = Reader(data)
    for _ in range(reader.count()):
        one, clock = reader.uint(), reader.uint()
        if one == client:
            return clock
    return 0


def encode_state_vector(clocks: Mapping[int, int]) -> bytes:
    """The inverse of `decode_state_vector`."""
    return b"".join(map(write_var_uint, (len(clocks), *chain.from_iterable(clocks.items()))))
