"""Cache points: places of the stream up to which providers are to keep what they have read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from antiphon_kernel.layout.items import LayoutItem, rounds_of

OFFSET_ROUNDS = 4
"""The pre-tail point stands so many rounds before the last one."""

MIN_ROUNDS = 2
"""With fewer rounds there is no pre-tail point."""


@dataclass(frozen=True, slots=True)
class CachePoints:
    """Indices of the items that end a part worth keeping; None where there is no such point."""

    previous_turn: int | None = None
    """The last item before the header of the current turn."""
    pre_tail: int | None = None
    """The end of a round some way back: models hide nothing up to here."""
    tail: int | None = None
    """The last item."""

    @property
    def indices(self) -> tuple[int, ...]:
        """Every point once, in the order of the stream."""
        points = (self.previous_turn, self.pre_tail, self.tail)
        return tuple(sorted({point for point in points if point is not None}))


def cache_points(
    items: Sequence[LayoutItem],
    *,
    live: str | None = None,
    exact: bool = False,
) -> CachePoints:
    """Return the cache points of a stream.

    A round ends at its last item, and rounds are ordered by their first; without any, items are
    counted instead. A point between a call and the last of its results moves before the call.

    Args:
        live: id of the current turn; the last one if absent.
        exact: leave points where they are, also between a call and its results.
    """
    if not items:
        return CachePoints()
    rounds = list(rounds_of(items).values())
    ends = [indices[-1] for indices in rounds] or list(range(len(items)))
    pre_tail = ends[max(0, len(ends) - 1 - OFFSET_ROUNDS)] if len(ends) >= MIN_ROUNDS else None
    headers = [
        index for index, item in enumerate(items) if not item.is_block and live in (None, item.turn)
    ]
    previous_turn = headers[-1] - 1 if headers and headers[-1] > 0 else None
    points = (previous_turn, pre_tail, len(items) - 1)
    if exact:
        return CachePoints(*points)
    spans = sorted(filter(None, (_span(items, indices) for indices in rounds)), reverse=True)
    return CachePoints(*(_outside(point, spans) for point in points))


def _outside(point: int | None, spans: Iterable[tuple[int, int]]) -> int | None:
    """Return the point itself, or that before the calls which it would part from their results."""
    if point is None:
        return None
    for first, last in spans:
        if first <= point < last:
            point = first - 1
    return point if point >= 0 else None


def _span(items: Sequence[LayoutItem], indices: Sequence[int]) -> tuple[int, int] | None:
    """Return the indices of a call and of its last result, which may be still to come."""
    exchange = [index for index in indices if items[index].is_exchange]
    if not exchange:
        return None
    is_open = not all(items[index].block.is_finished for index in exchange)
    return exchange[0], len(items) if is_open else exchange[-1]


def why_not_hidden(items: Sequence[LayoutItem], block: str) -> str | None:
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
    pre_tail = cache_points(items).pre_tail
    if pre_tail is None or index > pre_tail:
        return None
    last = items[pre_tail]
    return (
        f"{item.path} stands before the pre-tail cache point, which is at {last.path or last.turn}:"
        " hiding it would change what providers keep in their caches. Hide a later block, or ask a"
        " person to exclude this one"
    )
