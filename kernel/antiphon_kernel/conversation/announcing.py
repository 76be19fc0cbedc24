"""Announcement to a model, filled from an open context."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from antiphon_kernel.contexts.context import Context
from antiphon_kernel.document.history.block_history import AuthoredChange
from antiphon_kernel.document.schema import TEXT
from antiphon_kernel.layout import (
    Announcement,
    BlockPath,
    ChangedBlock,
    ChangedLines,
    LayoutItem,
    PresentReader,
)
from antiphon_kernel.storage import BlockChangeRow
from antiphon_kernel.types.enums import Activity
from antiphon_kernel.types.ids import SYSTEM

_BLOCKS_LISTED: Final = 20
"""Changed blocks whose histories are read, those that were changed last."""

_OF_HEADERS: Final = ("status", "move", "collapse", "exclude", "join", "attach")
"""Operations that change nothing of a content."""


async def read_announcement(
    context: Context,
    model: str | None,
    items: Sequence[LayoutItem],
    time: int,
    since: int | None = None,
) -> Announcement:
    """Return who is here, and what others have changed of the blocks that a model reads.

    Args:
        model: id of the model's principal.
        items: what it reads now.
        time: of now, in milliseconds.
        since: the version of the context at which it last looked; None if it has not yet.
    """
    places = {item.block.id: item.path for item in items if item.path is not None}
    present = tuple(_present(context, model, places))
    if since is None:
        return Announcement(time, present=present)
    await context.wait_persisted()
    others = {
        block: later
        for block, changes in (await context.journal.changes_since(since)).items()
        if block in places and (later := _by_others(changes, model)) and later[0].version > 1
    }
    latest = sorted(others, key=lambda block: others[block][-1].seq, reverse=True)
    changes: list[ChangedBlock] = []
    for block in latest[:_BLOCKS_LISTED]:
        changes += await _changed(context, block, str(places[block]), model, others[block])
    return Announcement(
        time, present=present, changes=tuple(changes), unlisted=len(latest[_BLOCKS_LISTED:])
    )


def _by_others(changes: Sequence[BlockChangeRow], model: str | None) -> list[BlockChangeRow]:
    """Return the changes of a content that others have made; of the kernel's own there is none."""
    return [
        one
        for one in changes
        if one.principal not in (model, SYSTEM) and one.operation not in _OF_HEADERS
    ]


def _present(
    context: Context, model: str | None, places: Mapping[str, BlockPath]
) -> Iterator[PresentReader]:
    """Everybody but the model, each once, by name."""
    found: dict[str, PresentReader] = {}
    for state in context.presence.states().values():
        if state.principal == model:
            continue
        block, activity = state.block, None
        if block is None or block not in context.document:
            place = None
        elif context.document.is_draft(block):
            place = "a message that is not sent yet"
        else:
            path = places.get(block)
            place = str(path) if path is not None else context.block_name(block)
            activity = str(state.activity) if state.activity != Activity.IDLE else None
        there = found.get(state.principal)
        if there is None or there.place is None:
            found[state.principal] = PresentReader(state.username, place, activity)
    yield from sorted(found.values(), key=lambda one: one.name)


async def _changed(
    context: Context,
    block: str,
    place: str,
    model: str | None,
    changes: Sequence[BlockChangeRow],
) -> list[ChangedBlock]:
    """Return what each author has changed of a block."""
    if context.document.schema(block) != TEXT:
        authors = dict.fromkeys(one.principal for one in changes)
        return [ChangedBlock(place, context.username(one)) for one in authors]
    history = await context.history(block)
    by_author: dict[str, list[AuthoredChange]] = {}
    for change in history.changes_since(None, changes[0].version - 1):
        if change.principal not in (model, SYSTEM):
            by_author.setdefault(change.principal, []).append(change)
    text = history.text()
    starts = [0, *(at + 1 for at, one in enumerate(text) if one == "\n")]
    return [
        ChangedBlock(
            place,
            context.username(author),
            tuple(_lines(starts, len(text), made)),
            sum(one.removed for one in made),
        )
        for author, made in by_author.items()
    ]


def _lines(
    starts: Sequence[int], length: int, changes: Sequence[AuthoredChange]
) -> Iterator[ChangedLines]:
    """Yield the lines that changes in the order of the text touch, each run once."""
    ranges: list[ChangedLines] = []
    for change in changes:
        end = max(change.offset, change.offset + change.inserted - 1)
        first, last = (bisect_right(starts, min(at, length)) - 1 for at in (change.offset, end))
        if ranges and first <= ranges[-1].last + 1:
            ranges[-1] = ChangedLines(ranges[-1].first, max(last, ranges[-1].last))
        else:
            ranges.append(ChangedLines(first, last))
    yield from ranges
