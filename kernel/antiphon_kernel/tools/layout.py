"""Readings of a context by models: layout with cache points, tokens and usage, and compaction.

`context.layout`, `context.usage`, `kernel.usage`, `context.compact` and `context.expand`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Final

from pydantic import Field

from antiphon_kernel.contexts import Context, order_after, order_before
from antiphon_kernel.contexts.lineage import read_version
from antiphon_kernel.conversation import (
    ContextLayout,
    UsageSum,
    current_layout,
    layout_of,
    read_announcement,
    shown_sources,
)
from antiphon_kernel.kernel import Call, Kernel
from antiphon_kernel.layout import (
    WHOLE_TURNS,
    BlockAuthor,
    BreakReason,
    CompactionError,
    ContributionFilter,
    ItemType,
    Layout,
    LayoutItem,
    LayoutReading,
    LayoutTail,
    NewSummary,
    PrefixBreak,
    compact,
    first_break,
    item_text,
    visible,
)
from antiphon_kernel.providers import TokenUsage
from antiphon_kernel.registry import REFERENCES, Params, Result, tool
from antiphon_kernel.storage import ChangeRow
from antiphon_kernel.tools._common import block_in, check_context_version, write
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Role, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.quoting import LISTED, join_names, quote
from antiphon_kernel.types.records import Actor, BlockHeader
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.validation import check_limit


class ReadingParams(Params):
    """A context, and the model that reads it."""

    context: str | None = None
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
    now = await current_layout(context)
    call.check()
    version = context.seq
    model = _reading_model(call, now, params.model)
    reading = await _read(call, context, params, model, exact=params.exact)
    count = len(reading.items)
    start = max(0, count - params.last) if params.last is not None else 0
    entries = [_entry(call, reading, index) for index in range(start, count)]
    tail = reading.tail.texts
    size = sum(len(entry.text) for entry in entries) + sum(map(len, tail))
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
        tail=list(tail),
        changed=changed,
    )


def _entry(call: Call, reading: LayoutReading, index: int) -> LayoutEntry:
    item, points = reading.items[index], reading.points
    return LayoutEntry(
        index=index,
        type=item.type,
        turn_id=item.turn,
        round=item.round,
        path=str(item.path) if item.path is not None else None,
        block_id=item.block.id,
        name=call.kernel.block_name(item.block.id),
        username=item.block.author.name,
        text=item_text(item, reading.reader),
        cache_points=[one.name for one in fields(points) if getattr(points, one.name) == index],
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
    if found.kind is not PrincipalKind.MODEL:
        raise invalid_params(
            f"{quote(named)} is no model but a {found.kind}: name a model. Here have written:"
            f" {join_names(one.name for one in wrote)}.",
            field="model",
        )
    return BlockAuthor(found.id, found.username, found.kind)


def _models(layout: Layout) -> list[BlockAuthor]:
    """Return the models that have written, by name."""
    models = (one for one in layout.authors if one.kind == PrincipalKind.MODEL)
    return sorted(models, key=lambda one: (one.name, one.id))


async def _changed(
    call: Call, context: Context, now: Layout, model: str | None, params: ContextLayoutParams
) -> PrefixChange | None:
    kernel, since = call.kernel, params.since or 0
    document = await read_version(kernel.journal, context.row, since, kernel.ids.client_id())
    try:
        before = await ContextLayout(document).load()
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
    return replace(reading, tail=LayoutTail(sources, announcement))


class TypeUsage(Result):
    """Items of one type."""

    type: ItemType
    """As `context.layout` shows it."""
    items: int
    """How many there are."""
    tokens: int
    """Estimate of their text, and of attached images and documents."""


class ContextUsageResult(Result):
    """Estimate of the tokens that a model reads with each request."""

    context_version: int
    model: str | None = None
    """Username of the model; absent if none has written yet."""
    estimated_tokens: int
    """Of all messages."""
    cached_tokens: int
    """Of those up to the last cache point."""
    types: list[TypeUsage]
    """Most tokens first."""
    used: TokenUsage
    """Tokens that all models have used here so far, as their providers count them."""


@tool("context.usage", needs=Permission.READ, errors=READING)
async def usage(call: Call, params: ReadingParams) -> ContextUsageResult:
    """Estimate how many tokens a context takes of what a model can read, and what takes them.

    What models have used here so far is counted, not estimated.
    """
    context, model, reading = await read_for_model(call, params)
    version, made, estimates = context.seq, reading.request(), reading.message_tokens()
    tokens: dict[ItemType, list[int]] = {}
    for part in reading.parts:
        for item, estimate in zip(part.items, part.text_tokens, strict=True):
            tokens.setdefault(item.type, []).append(estimate)
    types = [
        TypeUsage(type=kind, items=len(each), tokens=sum(each)) for kind, each in tokens.items()
    ]
    last = made.marks[-1].message if made.marks else -1
    used = [one for one in await call.kernel.usage.all() if one.context == context.id]
    await context.wait_persisted()
    return ContextUsageResult(
        context_version=version,
        model=model.name if model is not None else None,
        estimated_tokens=sum(estimates),
        cached_tokens=sum(estimates[: last + 1]),
        types=sorted(types, key=lambda one: -one.tokens),
        used=_total(used),
    )


class KernelUsageParams(Params):
    """Part of what has been used."""

    context: str | None = None
    """Label or id; all contexts if absent."""
    principal: str | None = None
    """Username or id of a model, or of somebody whose messages were answered; all if absent."""


class ModelUsage(Result):
    """Tokens that one model has used in one context for one principal."""

    context_id: str
    label: str
    model: str
    """Username of the model."""
    username: str
    """Name of whoever's messages it answered."""
    used: TokenUsage
    """Sum since the context was made."""


class KernelUsageResult(Result):
    """Tokens that have been used, in all and one by one."""

    total: TokenUsage
    """Sum of what is listed."""
    sums: list[ModelUsage]
    """Most tokens first."""


@tool(
    "kernel.usage",
    needs=Permission.READ,
    errors=READING[:2],
)
async def kernel_usage(call: Call, params: KernelUsageParams) -> KernelUsageResult:
    """Say how many tokens models have used, for whom, and what they cost where that is known.

    The numbers are those that providers report. A fork begins at zero.
    """
    kernel = call.kernel
    context = kernel.contexts.find(params.context) if params.context is not None else None
    whose = kernel.members.find(params.principal).id if params.principal is not None else None
    found = [
        one
        for one in await kernel.usage.all()
        if context in (None, one.context) and whose in (None, one.model, one.asker)
    ]
    found.sort(key=lambda one: -one.used.tokens)
    labels: dict[str, str] = {row.id: row.label for row in kernel.contexts.rows()}
    sums = [
        ModelUsage(
            context_id=one.context,
            label=labels[one.context],
            model=kernel.members.find(one.model).username,
            username=kernel.members.find(one.asker).username,
            used=one.used,
        )
        for one in found
    ]
    return KernelUsageResult(total=_total(found), sums=sums)


def _total(sums: Iterable[UsageSum]) -> TokenUsage:
    return sum((one.used for one in sums), TokenUsage())


class ContextCompactParams(Params):
    """Context, and how much of it models are to go on reading."""

    context: str | None = None
    budget: int | None = Field(default=None, ge=1)
    """Tokens that models may read, estimated: nothing happens until they are exceeded, and then
    about 70 percent are kept. If absent, the last turns are kept."""
    keep_turns: int = Field(default=WHOLE_TURNS, ge=1)
    """How many turns are kept whole if there is no budget."""


class ContextCompactResult(Result):
    """The summary that was written, and the estimate of what models read."""

    context_version: int
    block_id: str | None = None
    """The summary; absent if there was nothing to hide, or no summary shorter than it."""
    name: str | None = None
    path: str | None = None
    """Path that tools take for `block_id`."""
    hidden: int = 0
    """How many blocks models do not read any more."""
    tokens_before: int | None = None
    """Estimate of what models read before."""
    tokens: int | None = None
    """Estimate of what they read now."""


class ContextExpandParams(Params):
    """Context, and the summary that is to be left out."""

    context: str | None = None
    summary: str | None = None
    """Block or path of a summary; the one that models read from if absent."""


class ContextExpandResult(Result):
    """The summary that was left out, and where models read from now."""

    context_version: int
    block_id: str
    """The summary that was left out."""
    name: str
    reads_from: str | None = None
    """Path of the summary that models read from now; absent if they read from the beginning."""


@tool(
    "context.compact",
    needs=Permission.ARRANGE,
    errors=(ErrorCode.CONTEXT_NOT_FOUND, ErrorCode.AMBIGUOUS_ID, ErrorCode.CONTEXT_TOO_LONG),
)
async def compact_context(call: Call, params: ContextCompactParams) -> ContextCompactResult:
    """Put a summary in the place of the older part of what models read.

    The summary is a block like any other, an extract that quotes what was said and lists every call
    with the path of its result. Models read from it on; the blocks before stay, and people read,
    search and edit them as before. No call is parted from its results, and what people have said in
    the last turn goes on being read. Undo of the block, or `context.expand`, brings everything
    back.
    """
    context = await call.context(params.context)
    try:
        written = await write_summary(
            call.kernel,
            context,
            call.actor,
            budget=params.budget,
            keep_turns=params.keep_turns,
            check=call.check,
        )
    except CompactionError as error:
        raise AntiphonError(
            ErrorCode.CONTEXT_TOO_LONG,
            f"Context {context.label} cannot be made shorter: {error}. Give a larger budget, or"
            " exclude or shorten what is too long. Nothing was changed.",
            limit=error.budget,
            found=error.tokens,
            path=error.largest,
        ) from error
    if written is None:
        await context.wait_persisted()
        return ContextCompactResult(context_version=context.seq)
    return written


async def write_summary(
    kernel: Kernel,
    context: Context,
    actor: Actor,
    *,
    budget: int | None = None,
    reserved: int = 0,
    keep_turns: int = WHOLE_TURNS,
    live: str | None = None,
    check: Callable[[], None] = lambda: None,
) -> ContextCompactResult | None:
    """Write the summary that `layout.compact` plans; None if there is nothing to win.

    Args:
        check: raises if the actor may not write it any more; called right before.

    Raises:
        CompactionError: if what has to go on being read is larger than the budget.
        AntiphonError: what `Context.write` raises.
    """
    new = await _planned(
        context,
        partial(compact, budget=budget, reserved=reserved, keep_turns=keep_turns, live=live),
    )
    check()
    if new is None:
        return None
    block = str(context.next_block_id(actor.principal.id))
    place = order_before if new.is_before else order_after
    header = BlockHeader(
        id=block,
        kind=BlockKind.TEXT,
        role=Role.SYSTEM,
        status=Status.DONE,
        order=place(context.document, new.neighbour),
        created=iso_time(kernel.clock.now_ms()),
        author=actor.principal.id,
        parent=new.parent,
        collapsed=True,
        metadata=new.record.as_metadata(),
    )
    written = context.write(
        actor, "compact", lambda: context.document.create_block(header, new.text), blocks=()
    )
    path = next(item.path for item in layout_of(context).arranged().items if item.block.id == block)
    await written.saved()
    return ContextCompactResult(
        context_version=written.seq,
        block_id=block,
        name=context.block_name(block),
        path=str(path),
        hidden=new.hidden,
        tokens_before=new.tokens_before,
        tokens=new.tokens,
    )


async def _planned(
    context: Context, plan: Callable[[Layout, Callable[[str], int]], NewSummary | None]
) -> NewSummary | None:
    """Return the summary for the context as it is when this returns.

    A long context takes a while, in which others write: then once more, at last without a break.
    """

    def planned(layout: Layout) -> Callable[[], NewSummary | None]:
        places = {block: place for place, block in enumerate(context.document.block_ids())}
        return partial(plan, layout, places.__getitem__)

    for _ in range(2):
        layout = await current_layout(context)
        new = await asyncio.to_thread(planned(layout))
        if layout_of(context).arranged() is layout:
            return new
    return planned(await current_layout(context))()


@tool("context.expand", needs=Permission.ARRANGE, errors=REFERENCES)
async def expand(call: Call, params: ContextExpandParams) -> ContextExpandResult:
    """Let models read again what a summary stands for: the summary is left out instead.

    A summary before it, if there is one, is read again too. The block stays where it is;
    `block.exclude` with `excluded: false` puts it back.
    """
    context = await call.context(params.context)
    await current_layout(context)
    call.check()
    block = await _summary(call, context, params.summary)
    if not context.document.header(block).excluded:
        await write(
            call,
            context,
            block,
            "exclude",
            lambda: context.document.set_fields(block, excluded=True),
            undo=None,
        )
    read_from = _read_from(context)
    return ContextExpandResult(
        context_version=context.seq,
        block_id=block,
        name=context.block_name(block),
        reads_from=str(read_from.path) if read_from is not None else None,
    )


def _read_from(context: Context) -> LayoutItem | None:
    return visible(layout_of(context).arranged()).summary


async def _summary(call: Call, context: Context, reference: str | None) -> str:
    if reference is None:
        found = _read_from(context)
        if found is None:
            raise invalid_params(
                f"Models read context {context.label} from the beginning: no summary hides"
                " anything that could be read again.",
                field="context",
            )
        return found.block.id
    block = await block_in(call, context, reference)
    items = layout_of(context).arranged().items
    if not any(item.block.id == block and item.type is ItemType.SUMMARY for item in items):
        raise invalid_params(
            f"Block {quote(reference)} is no summary that context.compact has written: leave"
            " summary out to name the one that models read from.",
            field="summary",
        )
    return block
