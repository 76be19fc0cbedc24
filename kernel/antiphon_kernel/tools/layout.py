"""Layout of a context: what a model is given of it, with its cache points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Final

from pydantic import Field

from antiphon_kernel.contexts import Context, layout_of, read_version
from antiphon_kernel.kernel import Call
from antiphon_kernel.layout import (
    BreakReason,
    CachePoints,
    ContributionFilter,
    ItemType,
    Layout,
    LayoutItem,
    LayoutReader,
    PrefixBreak,
    cache_points,
    first_break,
    item_text,
    visible,
)
from antiphon_kernel.registry import Params, Result, tool
from antiphon_kernel.storage import BlockChangeRow
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import join_names, quote
from antiphon_kernel.types.records import Principal
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.validation import check_limit


class ReadingParams(Params):
    """A context, and the model that reads it."""

    context: str | None = None
    """Label or id; the default context if absent."""
    model: str | None = None
    """Username of the model that reads; the only one that has written here if absent."""
    exclude_contributions: list[ItemType] = Field(default_factory=list)
    """Types of items to leave out. Messages of people are read whatever is named."""
    include_only_contributions: list[ItemType] | None = None
    """Types of items to read and no others, whatever `exclude_contributions` names."""

    @property
    def admitted(self) -> ContributionFilter:
        only = self.include_only_contributions
        return ContributionFilter(
            frozenset(self.exclude_contributions), frozenset(only) if only is not None else None
        )


class ContextLayoutParams(ReadingParams):
    """Part of a context's layout."""

    exact: bool = False
    """Leave cache points where they are counted, also between a call and its results."""
    last: int | None = Field(default=None, ge=1)
    """Only so many items, the last ones; all if absent."""
    since: int | None = Field(default=None, ge=0)
    """A version of the context: say what has changed the beginning of the stream since."""


class LayoutEntry(Result):
    """One item in the order in which it is read."""

    index: int
    """Place in the whole stream, counted from 0."""
    type: ItemType
    turn_id: str
    round: str | None = None
    """The call, or the author's last texts, that it belongs to."""
    path: str | None = None
    """What tools take for `block_id`; absent of the header of a turn."""
    block_id: str
    """Of the header of a turn the block that begins it."""
    username: str
    """Name of the block's author."""
    text: str
    """Text as it is read."""
    cache_points: list[str] = Field(default_factory=list)
    """Cache points at its end: `previous_turn`, `pre_tail`, `tail`."""


class PrefixChange(Result):
    """The first change of what was read before."""

    index: int
    """Place in the stream from which it differs."""
    reason: BreakReason
    block_id: str
    path: str | None = None
    username: str | None = None
    """Name of whoever made the change; absent if it was made before the version in question."""
    context_version: int | None = None
    """The version that it brought about."""


class ContextLayoutResult(Result):
    """The stream of items that a model reads; an empty line stands between two."""

    context_version: int
    model: str | None = None
    """Username of the model that reads; absent if there is none or there are several."""
    items: list[LayoutEntry]
    """In the order in which they are read."""
    count: int
    """How many there are in the whole stream."""
    changed: PrefixChange | None = None
    """With `since`: the change after which providers read everything behind it anew; absent if
    there was none."""


READING: Final = (ErrorCode.CONTEXT_NOT_FOUND, ErrorCode.AMBIGUOUS_ID, ErrorCode.TOO_LARGE)
"""Errors of a tool that shows what a model reads."""


@tool("context.layout", needs=Permission.READ, errors=READING)
async def layout(call: Call, params: ContextLayoutParams) -> ContextLayoutResult:
    """Show what a model reads of a context: turns and rounds, each item with path and text."""
    context = await call.context(params.context)
    context.appends.flush_all()
    version, now = context.seq, context.layout.arranged()
    reading = await reading_model(call, now, params.model)
    reader = LayoutReader.of(now, reading.id if reading is not None else None)
    items = visible(now, params.admitted).items
    points = cache_points(items, exact=params.exact)
    start = max(0, len(items) - params.last) if params.last is not None else 0
    entries = [_entry(index, items[index], reader, points) for index in range(start, len(items))]
    size = sum(len(entry.text) for entry in entries)
    what = f"The items have {size} code points"
    check_limit(size, context.limits, "export_code_points", what, "ask for the `last` ones")
    await context.wait_persisted()
    changed = None
    if params.since is not None:
        _check_since(context, version, params.since)
        changed = await _changed(call, context, now, reader.model, params)
    return ContextLayoutResult(
        context_version=version,
        model=reading.username if reading is not None else None,
        items=entries,
        count=len(items),
        changed=changed,
    )


def _entry(index: int, item: LayoutItem, reader: LayoutReader, points: CachePoints) -> LayoutEntry:
    return LayoutEntry(
        index=index,
        type=item.type,
        turn_id=item.turn,
        round=item.round,
        path=str(item.path) if item.path is not None else None,
        block_id=item.block.id,
        username=item.block.author.name,
        text=item_text(item, reader),
        cache_points=[one.name for one in fields(points) if getattr(points, one.name) == index],
    )


async def reading_model(call: Call, layout: Layout, named: str | None) -> Principal | None:
    """Return the model that a request names, else the only one that has written.

    Raises:
        AntiphonError: invalid_params or ambiguous_id, if there is no such model.
    """
    wrote = {
        item.block.author.id: item.block.author.name
        for item in layout.items
        if item.block.author.kind == PrincipalKind.MODEL
    }
    if named is None:
        return call.kernel.find_principal(next(iter(wrote))) if len(wrote) == 1 else None
    found = call.kernel.find_principal(named)
    if found.kind is not PrincipalKind.MODEL:
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            f"{quote(named)} is no model but a {found.kind}: name a model. Here have written:"
            f" {join_names(sorted(wrote.values()))}.",
            field="model",
        )
    return found


def _check_since(context: Context, version: int, since: int) -> None:
    if since > version:
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            f"Context {context.label} has the version {version}, there is none numbered"
            f" {since}: name one that a call has returned.",
            field="since",
            current_version=version,
        )


async def _changed(
    call: Call, context: Context, now: Layout, model: str | None, params: ContextLayoutParams
) -> PrefixChange | None:
    kernel, since = call.kernel, params.since or 0
    document, _ = await read_version(kernel.journal, context.row, since, kernel.ids.client_id(), ())
    try:
        before = layout_of(document)
    finally:
        document.close()
    found = first_break(before, now, model, params.admitted)
    if found is None:
        return None
    for item in found.items:
        cause = _cause(found, await context.changes(item.block.id), since)
        if cause is not None:
            return _prefix_change(call, found, item, cause)
    return _prefix_change(call, found, found.items[0], None)


def _prefix_change(
    call: Call, found: PrefixBreak, item: LayoutItem, cause: BlockChangeRow | None
) -> PrefixChange:
    author = call.kernel.find_principal(cause.principal) if cause is not None else None
    return PrefixChange(
        index=found.index,
        reason=found.reason,
        block_id=item.block.id,
        path=str(item.path) if item.path is not None else None,
        username=author.username if author is not None else None,
        context_version=cause.seq if cause is not None else None,
    )


_SILENT = ("status", "collapse")
"""Operations that do not change what is read."""


def _cause(
    found: PrefixBreak, changes: Iterable[BlockChangeRow], since: int
) -> BlockChangeRow | None:
    """Return the change of a block that made the difference; None if it has none since."""
    later = [change for change in changes if change.seq > since]
    telling: Sequence[BlockChangeRow] = [one for one in later if one.operation not in _SILENT]
    if found.reason is BreakReason.LEFT_OUT:
        telling = [one for one in telling if one.operation == "exclude"] or telling
    return next(iter(telling or later), None)
