"""A context as a model reads it: `context.layout`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from pydantic import Field

from antiphon_kernel.contexts import Context
from antiphon_kernel.contexts.lineage.forking import read_version
from antiphon_kernel.conversation import (
    ContextLayout,
    current_layout,
    layout_of,
    read_announcement,
    shown_sources,
)
from antiphon_kernel.kernel import Call
from antiphon_kernel.layout import (
    BlockAuthor,
    BreakReason,
    ContributionFilter,
    ItemType,
    Layout,
    LayoutReading,
    PrefixBreak,
    first_break,
    item_text,
    tail_texts,
)
from antiphon_kernel.registry import ContextParams, Result, tool
from antiphon_kernel.storage import ChangeRow
from antiphon_kernel.tools._common import check_context_version
from antiphon_kernel.tools.file_references import file_changes, read_file_references
from antiphon_kernel.types.enums import ANSWERING_KINDS
from antiphon_kernel.types.errors import ErrorCode, invalid_params
from antiphon_kernel.types.quoting import LISTED, join_names, quote
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.validation import check_limit


class ReadingParams(ContextParams):
    """A context, and the model that reads it."""

    model: str | None = None
    """Username of the model that reads; the only one that has written here if absent."""
    exclude_contributions: list[ItemType] = Field(default_factory=list)
    """Types of items to leave out. Messages of people are read whatever is named."""
    include_only_contributions: list[ItemType] | None = None
    """Types of items to read and no others, whatever `exclude_contributions` names."""

    announce_since: int | None = Field(default=None, ge=0)
    """The version of the context at which the model last looked: who is here and what others have
    changed since stand behind the stream. Left out if absent."""

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
    start: int | None = Field(default=None, ge=0)
    """Index of the first item, whatever `last` says."""
    limit: int | None = Field(default=None, ge=1)
    """Only so many items at most."""
    text_limit: int | None = Field(default=None, ge=1)
    """Only so many code points of each text."""
    since: int | None = Field(default=None, ge=0)
    """A version of the context: say what has changed the beginning of the stream since."""


class LayoutEntry(Result):
    """One item in the order in which it is read."""

    index: int
    """Place in the whole stream, counted from 0."""
    type: ItemType
    """Type by which contributions are filtered."""
    turn_id: str
    """Derived from the block that begins the turn."""
    round: str | None = None
    """The call, or the author's last texts, that it belongs to."""
    path: str | None = None
    """Path that tools take for `block_id`; absent of the header of a turn."""
    block_id: str
    """Of the header of a turn the block that begins it."""
    name: str
    username: str
    """Name of the block's author."""
    text: str
    """Text as it is read."""
    truncated: bool | None = None
    """Whether the text goes on behind `text_limit`; absent if it does not."""
    cache_points: list[str] = Field(default_factory=list)
    """Cache points at its end: `previous_turn`, `pre_tail`, `tail`."""


class PrefixChange(Result):
    """The first change of what was read before."""

    index: int
    """Place in the stream from which it differs."""
    reason: BreakReason
    """Kind of the change; `named`: a second person or model has written, so authors
    are named."""
    block_id: str
    name: str
    path: str | None = None
    """Path of the block as it is now."""
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
    next: int | None = None
    """With `limit`: the `start` of the items that follow; absent at the end."""
    tail: list[str]
    """The items behind them, which are never cached: the sources pool, and the announcement."""
    changed: PrefixChange | None = None
    """With `since`: the change after which providers read everything behind it anew; absent if
    there was none."""


READING: Final = (ErrorCode.CONTEXT_NOT_FOUND, ErrorCode.AMBIGUOUS_ID, ErrorCode.TOO_LARGE)
"""Errors of a tool that shows what a model reads."""


@tool("context.layout", needs=Permission.READ, errors=READING)
async def layout(call: Call, params: ContextLayoutParams) -> ContextLayoutResult:
    """Show what a model reads of a context: turns and rounds, each item with path and text."""
    context = await call.context(params.context)
    await read_file_references(call.kernel, layout_of(context))
    now = await current_layout(context)
    call.check()
    version = context.seq
    model = _reading_model(call, now, params.model)
    reading = await _read(call, context, params, model, exact=params.exact)
    count = len(reading.items)
    start = params.start if params.start is not None else max(0, count - (params.last or count))
    end = min(count, start + (params.limit or count))
    entries = [_entry(call, reading, index, params.text_limit) for index in range(start, end)]
    size = sum(len(entry.text) for entry in entries) + sum(map(len, reading.tail))
    what = f"The items have {size} code points"
    check_limit(size, context.limits, "export_code_points", what, "ask for the `last` ones")
    await context.wait_persisted()
    changed = None
    if params.since is not None:
        check_context_version(context, version, params.since, "since")
        changed = await _changed(call, context, now, reading.reader.model, params)
    return ContextLayoutResult(
        context_version=version,
        model=model.name if model is not None else None,
        items=entries,
        count=count,
        next=end if end < count else None,
        tail=list(reading.tail),
        changed=changed,
    )


def _entry(call: Call, reading: LayoutReading, index: int, limit: int | None) -> LayoutEntry:
    item, points = reading.items[index], reading.points
    text = item_text(item, reading.reader)
    return LayoutEntry(
        index=index,
        type=item.type,
        turn_id=item.turn,
        round=item.round,
        path=str(item.path) if item.path is not None else None,
        block_id=item.block.id,
        name=call.kernel.block_name(item.block.id),
        username=item.block.author.name,
        text=text[:limit],
        truncated=True if limit is not None and len(text) > limit else None,
        cache_points=[name for name, at in points._asdict().items() if at == index],
    )


def _reading_model(call: Call, layout: Layout, named: str | None) -> BlockAuthor | None:
    """Return the model that a request names, else the only one that has written.

    Raises:
        AntiphonError: invalid_params or ambiguous_id, if there is no such model.
    """
    wrote = _models(layout)
    if named is None:
        return wrote[0] if len(wrote) == 1 else None
    found = call.kernel.members.find(named)
    if found.kind not in ANSWERING_KINDS:
        raise invalid_params(
            f"{quote(named)} is no model but a {found.kind}: name a model. Here have written:"
            f" {join_names(one.name for one in wrote)}.",
            field="model",
        )
    return BlockAuthor(found.id, found.username, found.kind)


def _models(layout: Layout) -> list[BlockAuthor]:
    """Return the models that have written, by name."""
    models = (one for one in layout.authors if one.kind in ANSWERING_KINDS)
    return sorted(models, key=lambda one: (one.name, one.id))


async def _changed(
    call: Call, context: Context, now: Layout, model: str | None, params: ContextLayoutParams
) -> PrefixChange | None:
    kernel, since = call.kernel, params.since or 0
    document = await read_version(kernel.journal, context.row, since, kernel.ids.client_id())
    try:
        earlier = ContextLayout(document)
        await read_file_references(kernel, earlier)
        before = earlier.arranged()
    finally:
        document.close()
    found = first_break(before, now, model, params.admitted)
    if found is None:
        return None
    item, cause = found.items[0], None
    for one in found.items:
        cause = _cause(found, await context.journal.changes(block=one.block.id), since)
        if cause is not None:
            item = one
            break
    author = call.kernel.members.find(cause.principal) if cause is not None else None
    return PrefixChange(
        index=found.index,
        reason=found.reason,
        block_id=item.block.id,
        name=call.kernel.block_name(item.block.id),
        path=str(item.path) if item.path is not None else None,
        username=author.username if author is not None else None,
        context_version=cause.seq if cause is not None else None,
    )


_SILENT = ("status", "collapse")
"""Operations that do not change what is read."""


def _cause(
    found: PrefixBreak, changes: Iterable[ChangeRow[str]], since: int
) -> ChangeRow[str] | None:
    """Return the change of a block that made the difference; None if it has none since."""
    later = [change for change in changes if change.seq > since]
    telling: Sequence[ChangeRow[str]] = [one for one in later if one.operation not in _SILENT]
    if found.reason is BreakReason.LEFT_OUT:
        telling = [one for one in telling if one.operation == "exclude"] or telling
    return next(iter(telling or later), None)


async def read_for_model(
    call: Call, params: ReadingParams
) -> tuple[Context, BlockAuthor | None, LayoutReading]:
    """Return what one model reads now.

    Raises:
        AntiphonError: invalid_params, if several have written and none is named.
    """
    context = await call.context(params.context)
    now = await current_layout(context)
    call.check()
    model = _reading_model(call, now, params.model)
    if model is None and len(models := _models(now)) > 1:
        raise invalid_params(
            f"Several models have written in {context.label}: name one as model:"
            f" {join_names(one.name for one in models)}.",
            field="model",
            allowed=[one.name for one in models][:LISTED],
        )
    return context, model, await _read(call, context, params, model)


async def _read(
    call: Call,
    context: Context,
    params: ReadingParams,
    model: BlockAuthor | None,
    *,
    exact: bool = False,
) -> LayoutReading:
    """Return what a model reads, with what stands behind the stream."""
    reader = model.id if model is not None else None
    reading = layout_of(context).read(reader, params.admitted, exact=exact)
    sources, since = shown_sources(context.document), params.announce_since
    announcement = None
    if since is not None:
        check_context_version(context, context.seq, since, "announce_since")
        now, reader = call.kernel.clock.now_ms(), reading.reader.model
        announcement = await read_announcement(context, reader, reading.items, now, since)
        files = await file_changes(call.kernel, reading.items)
        announcement = replace(announcement, files=files)
    return replace(reading, tail=tail_texts(sources, announcement))
