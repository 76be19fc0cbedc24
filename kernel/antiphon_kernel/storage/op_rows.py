"""Row format of transactions: keyed by one number, without the most frequent values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from antiphon_kernel.storage.rows import BlockRow, InheritedRun

SEQ_BITS: Final = 32

LAST_SEQ: Final = 2**SEQ_BITS - 1
"""No `seq` is higher."""

_MOST_FREQUENT: Final = "append"

_BLOCK_BITS: Final = 12


def op_id(context: int, seq: int) -> int:
    """The number of a transaction: those of one context follow each other.

    Args:
        context: what stands for the context in the journal.
    """
    return (context << SEQ_BITS) + seq


def stored_operation(operation: str) -> str | None:
    """Return an operation as it is stored: None for the most frequent one."""
    return operation if operation != _MOST_FREQUENT else None


def stored_blocks(blocks: Sequence[BlockRow]) -> int | str:
    """Encode the blocks a transaction touched, with their versions then: one number, or a text."""
    if len(blocks) == 1 and blocks[0].number < 2**_BLOCK_BITS:
        return (blocks[0].version << _BLOCK_BITS) + blocks[0].number
    return " ".join(f"{block.number}:{block.version}" for block in blocks)


def encode_runs(runs: Sequence[InheritedRun]) -> str:
    """The runs of one text as they are stored."""
    return json.dumps([[one.start, one.end, one.principal, one.version, one.time] for one in runs])
