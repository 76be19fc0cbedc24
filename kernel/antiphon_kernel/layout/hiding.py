"""Decision whether a model may hide a block from models."""

from __future__ import annotations

from collections.abc import Sequence

from antiphon_kernel.layout.cache_points import CachePoints
from antiphon_kernel.layout.items import LayoutItem


def why_not_hidden(items: Sequence[LayoutItem], points: CachePoints, block: str) -> str | None:
    """Return why a model may not hide a block; None if it may.

    Args:
        items: as they are read now.
        block: its id.
    """
    index = next(
        (index for index, item in enumerate(items) if item.is_block and item.block.id == block),
        None,
    )
    if index is None:
        return "models do not read this block now, so there is nothing to hide"
    item = items[index]
    if item.is_exchange:
        index = next(
            first
            for first, other in enumerate(items)
            if other.is_exchange and other.round == item.round
        )
    if points.pre_tail is None or index > points.pre_tail:
        return None
    last = items[points.pre_tail]
    return (
        f"{item.path} stands before the pre-tail cache point, which is at {last.path or last.turn}:"
        " hiding it would change what providers keep in their caches. Hide a later block, or ask a"
        " person to exclude this one"
    )
