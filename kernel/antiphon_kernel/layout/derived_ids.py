"""Ids of turns and calls, derived from block ids: stable, and another in each fork."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from antiphon_kernel.types.records import TextSplice

SUFFIX_LENGTH: Final = 6
"""Hex digits that tell apart blocks which would have the same path."""

_CALL_LENGTH: Final = 12

_DERIVED: Final = re.compile(
    r"turn_\d{1,15}_[0-9a-f]{6}(?![0-9a-f])|tc_[0-9a-f]{12}(?![0-9a-f])|~[0-9a-f]{6}(?![0-9a-f])",
    re.ASCII,
)


def block_hash(block: str, length: int = SUFFIX_LENGTH) -> str:
    """Return the first hex digits of the hash of a block's id."""
    return sha256(block.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def turn_id(block: str, created: int) -> str:
    """Return the id of the turn that a block of this id, created in this millisecond, begins."""
    return f"turn_{created}_{block_hash(block)}"


def tool_call_id(block: str) -> str:
    """Return the id of the call that a block of this id is."""
    return f"tc_{block_hash(block, _CALL_LENGTH)}"


def copied_ids(block: str, copy: str, created: int) -> dict[str, str]:
    """Return what is derived from the id of a block, by that which is from the id of its copy."""
    return {
        turn_id(block, created): turn_id(copy, created),
        tool_call_id(block): tool_call_id(copy),
        f"~{block_hash(block)}": f"~{block_hash(copy)}",
    }


def rename_derived(text: str, names: Mapping[str, str]) -> list[TextSplice]:
    """Return the splices that rename derived ids in a text; each is as long as before.

    Args:
        names: as `copied_ids` gives them.
    """
    found = ((one.start(), one[0], names.get(one[0])) for one in _DERIVED.finditer(text))
    return [TextSplice(at, len(old), new) for at, old, new in found if new is not None]
