"""Compaction of a layout: the summary block that is to be written, and where it stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from antiphon_kernel.layout.compaction import (
    WHOLE_TURNS,
    CompactionPlan,
    plan_compaction,
    plan_last_turns,
)
from antiphon_kernel.layout.items import ItemType, Layout, LayoutItem
from antiphon_kernel.layout.model_view import file_tokens
from antiphon_kernel.layout.paths import SummaryPath
from antiphon_kernel.layout.summary import SummaryRecord, extract, previous_summary
from antiphon_kernel.layout.text_forms import LayoutReader, item_text
from antiphon_kernel.layout.visible import visible
from antiphon_kernel.messages import MESSAGE_COST, estimate_text

_SLACK: Final = 8
"""Tokens by which the estimate of a whole may differ from the sum of its parts."""


@dataclass(frozen=True, slots=True)
class NewSummary:
    """Summary that a compaction writes into the document."""

    text: str
    record: SummaryRecord
    turn: str
    """Id of the turn that it stands in."""
    parent: str
    """The block that begins the turn."""
    neighbour: str
    """The block next to which it stands."""
    is_before: bool
    """It stands before its neighbour, else behind."""
    hidden: int
    """How many blocks are not read any more."""
    tokens_before: int
    """Estimate of what was read."""
    tokens: int
    """Estimate of what is read from now on."""


def compact(
    layout: Layout,
    place_of: Callable[[str], int],
    *,
    budget: int | None = None,
    reserved: int = 0,
    keep_turns: int = WHOLE_TURNS,
    live: str | None = None,
) -> NewSummary | None:
    """Return the summary that makes a context shorter; None if there is nothing to win.

    With a budget nothing happens until it is exceeded; without one the last turns are kept.

    Args:
        layout: every block, as `arrange` has made it.
        place_of: gives the index of a block in the document.
        budget: tokens of what models read.
        reserved: tokens of what else is in the request.
        keep_turns: how many turns are kept without a budget.
        live: id of the turn that is played; the last one if absent.

    Raises:
        CompactionError: if what has to go on being read is larger than the budget.
    """
    shown = visible(layout, live=live)
    items, reader = shown.items, LayoutReader.of(layout)
    weights = [weigh(item, reader) for item in items]
    frame = _SLACK + weigh(_blank_summary(items[-1]), reader) if items else 0
    if budget is None:
        plan = plan_last_turns(items, weights, keep_turns, frame=frame)
    else:
        plan = plan_compaction(items, weights, budget, reserved=reserved, frame=frame, live=live)
    if plan is None or (text := extract(items, plan)) is None:
        return None
    turn, neighbour, is_before = _place(layout, items, plan, place_of)
    covered = [items[index] for index in plan.covered]
    return NewSummary(
        text,
        SummaryRecord.of(covered, previous_summary(items)),
        turn,
        next(one.items[0].block.id for one in layout.turns if one.id == turn),
        neighbour,
        is_before,
        sum(item.is_block for item in covered),
        sum(weights),
        plan.kept + estimate_text(text) + frame,
    )


def weigh(item: LayoutItem, reader: LayoutReader) -> int:
    """Estimate the tokens of an item in a request, as a message of its own."""
    return MESSAGE_COST + estimate_text(item_text(item, reader)) + file_tokens(item)


def _blank_summary(near: LayoutItem) -> LayoutItem:
    """Return a summary that says nothing, with as long a path as it may have."""
    block = near.block._replace(text="", blob=None)
    return LayoutItem(ItemType.SUMMARY, near.turn, block, SummaryPath(near.turn, "0" * 6))


def _place(
    layout: Layout,
    items: Sequence[LayoutItem],
    plan: CompactionPlan,
    place_of: Callable[[str], int],
) -> tuple[str, str, bool]:
    """Return the turn that the summary stands in, and the block next to which it does."""
    if plan.cut < len(items) and items[plan.cut].type is not ItemType.TURN_HEADER:
        behind = items[plan.cut]
        return behind.turn, behind.block.id, True
    last = items[plan.cut - 1]
    if last.type is ItemType.SUMMARY:
        return last.turn, last.block.id, False
    turn = next(one for one in layout.turns if one.id == last.turn)
    return turn.id, max((item.block.id for item in turn.items), key=place_of), False
