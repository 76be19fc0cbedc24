"""Ids of turns and calls, derived from block ids: stable, and another in each fork."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

SUFFIX_LENGTH: Final = 6
"""Hex digits that tell apart blocks which would have the same path."""

_CALL_LENGTH: Final = 12


def block_hash(block: str, length: int = SUFFIX_LENGTH) -> str:
    """Return the first hex digits of the hash of a block's id."""
    return sha256(block.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def turn_id(block: str, created: int) -> str:
    """Return the id of the turn that a block of this id, created in this millisecond, begins."""
    return f"turn_{created}_{block_hash(block)}"


def tool_call_id(block: str) -> str:
    """Return the id of the call that a block of this id is."""
    return f"tc_{block_hash(block, _CALL_LENGTH)}"
