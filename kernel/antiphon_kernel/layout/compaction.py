"""Plan of a compaction: which items a summary is to stand for, and how long it may be.

Pure: weights in, cut out. A cut parts no call from its results and never hides what people have
said in the turn that is played.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Final

from antiphon_kernel.layout.arrange import ItemType, LayoutItem, group_indices
from antiphon_kernel.types.drift import is_drifted

KEEP_SHARE: Final = 0.7
"""Part of the budget that is kept, about."""

WHOLE_TURNS: Final = 6
"""The last turns that are kept whole if they fit."""

MIN_SUMMARY: Final = 64
"""Tokens; with less room there is no summary."""

MAX_SUMMARY: Final = 4_000
"""Tokens of a summary, whatever the budget."""

_SUMMARY_SHARE: Final = 0.2

_OPENING: Final = (
    ItemType.TURN_HEADER,
    ItemType.USER_PROMPT,
    ItemType.USER_ATTACHMENT,
    ItemType.SUMMARY,
)
"""Types of what stands before the progress of a turn."""

_LEADING: Final = (ItemType.NOTES, ItemType.THINKING)
"""Types of what leads to a call."""


class CompactionError(ValueError):
    """Error of a compaction: the part that cannot be hidden is larger than the budget."""

    def __init__(self, message: str, *, tokens: int, budget: int, largest: str | None) -> None:
        super().__init__(message)
        self.tokens = tokens
        """Tokens of what cannot be hidden."""
        self.budget = budget
        self.largest = largest
        """Path of the largest item among it; None if that is not an item."""


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """Cut of a stream, and the size of the summary that stands for what is before it."""

    cut: int
    """Index of the first item behind the summary; the number of items if there is none."""
    covered: tuple[int, ...]
    """Indices of the items that are not read any more; not the summary before."""
    room: int
    """Tokens that the new summary may have."""
    kept: int
    """Tokens that go on being read, the new summary not counted."""
    replaced: int
    """Tokens that are not read any more, those of the summary before included."""
    live: str | None
    """Id of the turn that is played."""


def plan_compaction(
    items: Sequence[LayoutItem],
    weights: Sequence[int],
    budget: int,
    *,
    reserved: int = 0,
    frame: int = 0,
    live: str | None = None,
) -> CompactionPlan | None:
    """Return the plan that brings a stream under a budget; None if it is not over it.

    About `KEEP_SHARE` of the budget is kept, or the last `WHOLE_TURNS` turns if they fit; more is
    hidden step by step as long as what is kept and a summary do not fit.

    Args:
        items: as models read them now, the summary that they begin with included.
        weights: tokens of each.
        reserved: tokens of what else is in the request.
        frame: tokens of a summary besides its text.
        live: id of the turn that is played; the last one if absent.

    Raises:
        CompactionError: if what cannot be hidden is too large.
    """
    stream = _Stream(items, weights, live)
    if reserved + stream.total <= budget:
        return None
    cuts = stream.cuts()
    most = min(MAX_SUMMARY, max(MIN_SUMMARY, int(budget * _SUMMARY_SHARE)))
    for cut in _candidates(stream, cuts, budget, reserved + frame, most):
        available = budget - reserved - frame - stream.kept(cut)
        room = min(most, available)
        if cut == stream.end:
            room = max(room, available - int(budget * (1 - KEEP_SHARE)))
        if room >= MIN_SUMMARY:
            return stream.plan(cut, room)
    raise _too_large(stream, cuts, budget, reserved, MIN_SUMMARY + frame)


def plan_last_turns(
    items: Sequence[LayoutItem],
    weights: Sequence[int],
    turns: int = WHOLE_TURNS,
    *,
    frame: int = 0,
) -> CompactionPlan | None:
    """Return the plan that keeps the last turns whole; None if nothing would be won by it.

    More turns are kept if something of them is still being written.

    Args:
        frame: tokens of a summary besides its text.
    """
    stream = _Stream(items, weights, None)
    latest = stream.start_of_last(turns) or 0
    starts = [at for at in stream.cuts() if at <= latest and not items[at].is_block]
    cut = starts[-1] if starts else 0
    if not stream.covered(cut):
        return None
    room = min(MAX_SUMMARY, stream.total - stream.kept(cut) - frame - 1)
    return stream.plan(cut, room) if room >= MIN_SUMMARY else None


def _candidates(
    stream: _Stream, cuts: Sequence[int], budget: int, reserved: int, most: int
) -> Iterator[int]:
    """Yield cuts, each hiding more than the one before; at last the one that hides most."""
    # The first of the last items that have as many tokens together as are kept.
    first, found = len(stream.items), 0
    while first > 0 and found < int(budget * KEEP_SHARE) - reserved:
        first -= 1
        found += stream.weights[first]
    whole = stream.start_of_last(WHOLE_TURNS)
    if whole is not None and whole < first and whole in cuts:
        if reserved + stream.kept(whole) + most <= budget:
            yield whole
    later = [cut for cut in cuts if cut >= first]
    yield from later or cuts[-1:]


def _too_large(
    stream: _Stream, cuts: Sequence[int], budget: int, reserved: int, summary: int
) -> CompactionError:
    cut = cuts[-1] if cuts else 0
    hidden = set(stream.covered(cut))
    remaining = [
        index
        for index, item in enumerate(stream.items)
        if index not in hidden and item.type is not ItemType.SUMMARY
    ]
    largest = max(remaining, key=lambda index: stream.weights[index], default=None)
    tokens = reserved + stream.kept(cut)
    said = (
        f"a budget of {budget} tokens is too small: a summary takes at least {summary}, and"
        f" {tokens} cannot be hidden"
    )
    path = None
    if largest is not None and stream.weights[largest] >= reserved:
        item = stream.items[largest]
        path = str(item.path or item.turn)
        why = ", which is still being written," if largest in stream.open else ""
        said += f", most of all {path}{why} with {stream.weights[largest]}"
    elif reserved:
        said += f", {reserved} of them besides the conversation"
    return CompactionError(said, tokens=tokens, budget=budget, largest=path)


class _Stream:
    """Items with their weights, and the places between them."""

    def __init__(
        self, items: Sequence[LayoutItem], weights: Sequence[int], live: str | None
    ) -> None:
        self.items = items
        self.weights = weights
        self.total = sum(weights)
        headers = [index for index, item in enumerate(items) if not item.is_block]
        self._turn_starts = headers
        ids = [items[index].turn for index in headers]
        self.live = live if live is not None else ids[-1] if ids else None
        at = ids.index(self.live) if self.live in ids else len(ids) - 1
        self.end = headers[at + 1] if at + 1 < len(headers) else len(items)
        """The end of the turn that is played."""
        self._before = [0, *accumulate(weights)]
        pinned = (w if self._is_pinned(item) else 0 for item, w in zip(items, weights, strict=True))
        self._pinned_before = [0, *accumulate(pinned)]

    def plan(self, cut: int, room: int) -> CompactionPlan:
        kept = self.kept(cut)
        return CompactionPlan(cut, self.covered(cut), room, kept, self.total - kept, self.live)

    def _is_pinned(self, item: LayoutItem) -> bool:
        """Return whether it is read wherever the cut is."""
        return item.turn == self.live and (not item.is_block or item.type.is_said)

    def kept(self, cut: int) -> int:
        """Return the tokens that remain of a stream that is cut there."""
        header = self._header_again(cut)
        again = self.weights[header] if header is not None else 0
        return self.total - self._before[cut] + self._pinned_before[cut] + again

    def covered(self, cut: int) -> tuple[int, ...]:
        """Return the items that a cut hides, without the summary before."""
        return tuple(
            index
            for index in range(cut)
            if not self._is_pinned(self.items[index])
            and self.items[index].type is not ItemType.SUMMARY
            and index != self._header_again(cut)
        )

    def _header_again(self, cut: int) -> int | None:
        """Return the header of the turn that is cut, which opens what remains of it."""
        if cut == len(self.items) or self.items[cut].turn == self.live:
            return None
        starts = self._turn_starts
        header = starts[bisect_right(starts, cut) - 1] if starts and starts[0] <= cut else cut
        return header if header < cut else None

    def start_of_last(self, turns: int) -> int | None:
        """Return the start of the first of the last turns; None if there are not more."""
        starts = self._turn_starts
        return starts[-turns] if len(starts) > turns else None

    def cuts(self) -> list[int]:
        """Return every place where the stream may be cut and something is replaced by it."""
        limit = min((self.end, *self.open))
        # For each place, how many calls would be parted from one of their results there.
        change = [0] * (len(self.items) + 2)
        calls = (item.round if item.is_exchange else None for item in self.items)
        for indices in group_indices(calls).values():
            change[indices[0] + 1] += 1
            change[indices[-1] + 1] -= 1
        parted = list(accumulate(change))
        hidden = 0
        found = []
        for at in range(1, limit + 1):
            before = self.items[at - 1]
            is_covered = before.type is not ItemType.SUMMARY and not self._is_pinned(before)
            hidden += is_covered
            is_summary = before.type is ItemType.SUMMARY and at < len(self.items)
            if is_summary or (hidden and not parted[at] and self._begins(at)):
                found.append(at)
        return found

    def _begins(self, at: int) -> bool:
        """Return whether a turn, a round or a text begins there behind other progress."""
        before = self.items[at - 1]
        if at == self.end and before.type not in _OPENING:
            return True
        if at == len(self.items):
            return False
        item = self.items[at]
        if not item.is_block:
            return True
        is_same_round = item.round is not None and item.round == before.round
        return (
            before.type not in _OPENING
            and item.type not in _OPENING
            and not is_drifted(item.block.metadata)
            and not (
                is_same_round
                and (item.is_exchange or before.is_exchange or before.type in _LEADING)
            )
        )

    @cached_property
    def open(self) -> frozenset[int]:
        """Indices of what somebody still writes; of a call, results and what leads to it too."""
        rounds = group_indices(
            item.round or item.block.id if item.is_block else None for item in self.items
        )
        found: list[int] = []
        for indices in rounds.values():
            items = [self.items[index] for index in indices]
            has_results = any(item.type is ItemType.TOOL_RESULT for item in items)
            if any(  # a call is finished if its results are
                not item.block.is_finished and not (item.type is ItemType.TOOL_CALL and has_results)
                for item in items
            ):
                found += indices
        return frozenset(found)
