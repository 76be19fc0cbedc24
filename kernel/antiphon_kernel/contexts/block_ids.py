"""The numbers of the blocks that one context's tools create."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon_kernel.types.ids import DRAFT_SEQ_MIN, BlockId, ContextId, PrincipalId


class BlockIds:
    """Counts for each principal, from behind the highest number it has used."""

    def __init__(self, context: ContextId, blocks: Iterable[str]) -> None:
        self._context = context
        self._highest: dict[str, int] = {}
        for block in blocks:
            _, principal, number = block.split(".")
            seq = int(number)
            if self._highest.get(principal, 0) < seq < DRAFT_SEQ_MIN:
                self._highest[principal] = seq

    def next(self, principal: PrincipalId) -> BlockId:
        """A fresh id for a block of this principal's."""
        self._highest[principal] = number = self._highest.get(principal, 0) + 1
        return BlockId(self._context, principal, number)
