"""Comparison of two streams: the first place where the later one differs from the earlier."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from antiphon_kernel.layout.items import Layout, LayoutItem
from antiphon_kernel.layout.text_forms import LayoutReader, item_text
from antiphon_kernel.layout.visible import EVERYTHING, ContributionFilter, visible


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
                newcomers = _newcomers(before, after) or (is_now,)
                return PrefixBreak(index, BreakReason.NAMED, newcomers)
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


def _newcomers(before: Layout, after: Layout) -> tuple[LayoutItem, ...]:
    """Return the first item of somebody who had not written before."""
    known = {item.block.author.id for item in before.items}
    return tuple(item for item in after.items if item.block.author.id not in known)[:1]
