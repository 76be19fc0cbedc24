"""Selection of what is read of a layout, and the first place where two selections differ.

What is read goes from the latest summary on, without what is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from antiphon_kernel.layout.arrange import ItemType, Layout, LayoutItem, LayoutTurn, rounds_of
from antiphon_kernel.layout.text_forms import LayoutReader, item_text

SIGNATURE: Final = "signature"
"""Key of `metadata` of a thinking block: what the provider signed it with."""

SIGNED_TEXT: Final = "signed_sha256"
"""Key of `metadata` of a thinking block: the SHA-256 of the text that was signed."""


@dataclass(frozen=True, slots=True)
class ContributionFilter:
    """Types of contributions that are read; what people have said always is."""

    exclude: frozenset[ItemType] = frozenset()
    include_only: frozenset[ItemType] | None = None
    """Nothing else, whatever `exclude` says."""


EVERYTHING = ContributionFilter()


def visible(
    layout: Layout,
    admitted: ContributionFilter = EVERYTHING,
    *,
    live: str | None = None,
    before: Layout | None = None,
) -> Layout:
    """Return the part of a layout that models read.

    It begins with the latest summary. Left out are excluded blocks, filtered contributions and
    texts without a character; a call goes with its results, and the other way round. The messages
    of people in the live turn are read even if a summary stands behind them.

    Args:
        layout: as `arrange` has made it.
        live: id of the turn that is played; the last one that is read if absent.
        before: what was read of an earlier layout with the same filter, from which the parts of
            turns are taken that are the same objects.
    """
    turns = layout.turns
    read = (one.id for one in reversed(turns) if _without_unread(one.items, admitted))
    # Of the last turn its prompt alone may be excluded.
    last = live if live is not None else next(read, None)
    summary: LayoutItem | None = None
    for turn in reversed(turns):
        summary = turn.summary
        if summary is not None:
            break
    is_read = summary is None
    known = {id(turn.whole or turn): turn for turn in before.turns} if before is not None else {}
    shown: list[LayoutTurn] = []
    for turn in turns:
        part = known.get(id(turn)) if is_read else None
        if part is None and (is_read or turn.id == last or turn.summary is summary):
            part = _part(turn, admitted) if is_read else _cut(turn, summary, admitted, last)
            is_read = is_read or turn.summary is summary
        if part is not None:
            shown.append(part)
    return Layout(tuple(shown), summary)


def _part(turn: LayoutTurn, admitted: ContributionFilter) -> LayoutTurn | None:
    """Return what is read of a turn behind the summary."""
    items = _without_unread(turn.items, admitted)
    if len(items) == len(turn.items) - 1:
        return turn
    return LayoutTurn(turn.id, (turn.items[0], *items), whole=turn) if items else None


def _cut(
    turn: LayoutTurn, summary: LayoutItem | None, admitted: ContributionFilter, last: str | None
) -> LayoutTurn | None:
    """Return what is read of the turn of the summary, or of one before it."""
    kept: list[LayoutItem] = []
    is_read = False
    for item in turn.items:
        if item is summary:
            is_read = True
        elif is_read or (turn.id == last and item.type.is_said):
            kept.append(item)
    items = _without_unread(kept, admitted)
    return LayoutTurn(turn.id, (turn.items[0], *items)) if items else None


def _without_unread(items: Sequence[LayoutItem], admitted: ContributionFilter) -> list[LayoutItem]:
    """Return the items of a turn that are read, without its header."""
    blocks = [item for item in items if item.is_block]
    read = [item for item in blocks if _is_read(item, admitted)]
    if len(read) == len(blocks):
        return read
    # The calls that are not read, or had results none of which is.
    parted: set[str] = set()
    before, after = rounds_of(items), rounds_of(read)
    for call, indices in before.items():
        was = {items[index].type for index in indices}
        now = {read[index].type for index in after.get(call, ())}
        if (was - now) & {ItemType.TOOL_CALL, ItemType.TOOL_RESULT}:
            parted.add(call)
    return [item for item in read if not (item.is_exchange and item.round in parted)]


def _is_read(item: LayoutItem, admitted: ContributionFilter) -> bool:
    kind, only = item.type, admitted.include_only
    is_admitted = kind in only if only is not None else kind not in admitted.exclude
    if kind is ItemType.SUMMARY or item.block.excluded:
        return False
    if kind.is_contribution and not is_admitted:
        return False
    # Reasoning that its provider keeps to itself has a signature and no text.
    is_signed = item.type is ItemType.THINKING and SIGNATURE in item.block.metadata
    is_told = item.is_exchange or is_signed or item.block.is_drift
    return is_told or bool(item.block.text.strip() or item.block.file)


class BreakReason(StrEnum):
    """Reason why the beginning of a stream is not what it was."""

    EDITED = "edited"
    INSERTED = "inserted"
    """The block was not read before, or did not stand here."""
    LEFT_OUT = "left_out"
    MOVED = "moved"
    NAMED = "named"
    """A second person or model has written since, so authors are named."""


@dataclass(frozen=True, slots=True)
class PrefixBreak:
    """First item that differs."""

    index: int
    """Its place among the items that are read now."""
    reason: BreakReason
    items: tuple[LayoutItem, ...]
    """Items whose change has caused it, the likeliest first."""


def first_break(
    before: Layout,
    after: Layout,
    model: str | None = None,
    admitted: ContributionFilter = EVERYTHING,
) -> PrefixBreak | None:
    """Return the first difference between two layouts as they are read; None if one was only added.

    Args:
        before: everything that there was, as `arrange` gives it.
        after: the same of now.
        model: id of the principal that reads.
    """
    then, now = LayoutReader.of(before, model), LayoutReader.of(after, model)
    old, new = visible(before, admitted).items, visible(after, admitted).items
    for index, was in enumerate(old):
        if index >= len(new):
            return PrefixBreak(index, BreakReason.LEFT_OUT, _with_round(was, before))
        is_now = new[index]
        if item_text(was, then) == item_text(is_now, now):
            continue
        if _key(was) == _key(is_now):
            if then != now and item_text(was, then) == item_text(is_now, then):
                known = {item.block.author.id for item in before.items}
                # The first item of somebody who had not written before.
                new_ones = (one for one in after.items if one.block.author.id not in known)
                return PrefixBreak(index, BreakReason.NAMED, (next(new_ones, is_now),))
            return PrefixBreak(index, BreakReason.EDITED, (is_now,))
        if _key(is_now) not in {_key(item) for item in old}:
            return PrefixBreak(index, BreakReason.INSERTED, (is_now,))
        if _key(was) not in {_key(item) for item in new}:
            return PrefixBreak(index, BreakReason.LEFT_OUT, _with_round(was, before))
        return PrefixBreak(index, BreakReason.MOVED, (is_now, was))
    return None


def _key(item: LayoutItem) -> tuple[str, bool]:
    return item.block.id, item.is_block


def _with_round(item: LayoutItem, layout: Layout) -> tuple[LayoutItem, ...]:
    """Return an item, and the calls and results that are left out together with it."""
    if not item.is_exchange:
        return (item,)
    others = (one for one in layout.items if one.is_exchange and one.round == item.round)
    return (item, *(one for one in others if one != item))
