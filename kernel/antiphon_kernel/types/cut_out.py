"""Blocks that are cut out: neither models nor people are shown them until they are brought back."""

from __future__ import annotations

from typing import Final

from antiphon_kernel.types.records import BlockHeader

CUT_OUT: Final = "cut_out"
"""Key of a block's metadata; it counts while the block is excluded."""


def is_cut_out(header: BlockHeader) -> bool:
    """Return whether a block is cut out."""
    return header.excluded and header.metadata.get(CUT_OUT) is True
