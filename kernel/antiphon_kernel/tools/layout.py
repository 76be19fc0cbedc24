"""Layout of a context: what a model is given of it, with its cache points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from pydantic import Field

from antiphon_kernel.contexts import (
    Context,
    ContextLayout,
    read_announcement,
    read_version,
    shown_sources,
)
from antiphon_kernel.kernel import Call
from antiphon_kernel.layout import (
    BlockAuthor,
    BreakReason,
    ContributionFilter,
    ItemType,
    Layout,
    LayoutItem,
    LayoutReading,
    LayoutTail,
    PrefixBreak,
    first_break,
    read_layout,
)
from antiphon_kernel.messages import (
    ModelWindow,
    clamp_max_tokens,
    dump_message,
    estimate_request,
)
from antiphon_kernel.registry import Params, Result, tool
from antiphon_kernel.storage import BlockChangeRow
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import LISTED, join_names, quote
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
    now = await context.current_layout()
    call.check()
    version = context.seq
    model = _reading_model(call, now, params.model)
    reading = read_layout(now, _id_of(model), params.admitted, exact=params.exact)
    reading = await _with_tail(call, context, params, reading)
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
        _check_since(context, version, params.since, "since")
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
        text=reading.text(item),
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
    found = call.kernel.find_principal(named)
    if found.kind is not PrincipalKind.MODEL:
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            f"{quote(named)} is no model but a {found.kind}: name a model. Here have written:"
            f" {join_names(one.name for one in wrote)}.",
            field="model",
        )
    return BlockAuthor(found.id, found.username, found.kind)


def _models(layout: Layout) -> list[BlockAuthor]:
    """Return the models that have written, by name."""
    authors = {item.block.author for item in layout.items}
    models = (one for one in authors if one.kind == PrincipalKind.MODEL)
    return sorted(models, key=lambda one: (one.name, one.id))


def _id_of(model: BlockAuthor | None) -> str | None:
    return model.id if model is not None else None


def _check_since(context: Context, version: int, since: int, field: str) -> None:
    if since > version:
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            f"Context {context.label} has the version {version}, there is none numbered"
            f" {quote(since)}: name one that a call has returned.",
            field=field,
            current_version=version,
        )


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
        name=call.kernel.block_name(item.block.id),
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


class RequestWindow(Params):
    """Most tokens that the model takes and gives."""

    input: int | None = Field(default=None, ge=1)
    """Of a request."""
    output: int | None = Field(default=None, ge=1)
    """Of an answer."""
    total: int | None = Field(default=None, ge=1)
    """Of both together."""
    separate: bool = False
    """Whether an answer does not count against the window of the input."""

    def values(self) -> ModelWindow:
        said = {"input": self.input, "output": self.output, "total": self.total}
        known = {name: value for name, value in said.items() if value is not None}
        return ModelWindow(**known, separate=self.separate)


class ContextRequestParams(ReadingParams):
    """A request that is not sent."""

    max_tokens: int | None = Field(default=None, ge=1)
    """Tokens that the answer may have; as many as the model gives if absent."""
    window: RequestWindow = Field(default_factory=RequestWindow)
    """Limits of the model; those of a small one if absent."""


class CacheMark(Result):
    """Content block up to which a provider is to keep what it has read."""

    message: int
    """Index of the message."""
    block: int
    """Index in its content."""


class ContextRequestResult(Result):
    """The messages that a model would be given now."""

    context_version: int
    model: str | None = None
    """Username of the model; absent if none has written yet."""
    messages: list[dict[str, Any]]
    """Each with `role` (user, assistant, tool) and `content`, a list of content blocks."""
    cache_marks: list[CacheMark]
    """In the order of the messages."""
    estimated_tokens: int
    """Of the messages."""
    max_tokens: int
    """Tokens that are left for the answer, at least 1."""


@tool("context.request", needs=Permission.READ, errors=READING)
async def request(call: Call, params: ContextRequestParams) -> ContextRequestResult:
    """Show the messages that a model would be given, and send nothing.

    Its own blocks are messages of the assistant, results of its calls tool messages, everything
    else messages of the user. In a context of several models, name one.
    """
    context, model, reading = await _read(call, params)
    version, made = context.seq, reading.request()
    estimated = estimate_request(made.messages, sizes=reading.file_sizes())
    window = params.window.values()
    wanted = params.max_tokens if params.max_tokens is not None else window.output
    messages = [dump_message(message) for message in made.messages]
    size = sum(len(reading.text(item)) for item in reading.items)
    what = f"The messages have {size} code points"
    check_limit(size, context.limits, "export_code_points", what, "exclude blocks")
    await context.wait_persisted()
    return ContextRequestResult(
        context_version=version,
        model=model.name if model is not None else None,
        messages=messages,
        cache_marks=[CacheMark(message=one.message, block=one.block) for one in made.marks],
        estimated_tokens=estimated,
        max_tokens=clamp_max_tokens(wanted, window, estimated),
    )


async def _read(
    call: Call, params: ReadingParams
) -> tuple[Context, BlockAuthor | None, LayoutReading]:
    """Return what one model reads now.

    Raises:
        AntiphonError: invalid_params, if several have written and none is named.
    """
    context = await call.context(params.context)
    now = await context.current_layout()
    call.check()
    model = _reading_model(call, now, params.model)
    if model is None and len(models := _models(now)) > 1:
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            f"Several models have written in {context.label}: name one as model:"
            f" {join_names(one.name for one in models)}.",
            field="model",
            allowed=[one.name for one in models][:LISTED],
        )
    reading = read_layout(now, _id_of(model), params.admitted)
    return context, model, await _with_tail(call, context, params, reading)


async def _with_tail(
    call: Call, context: Context, params: ReadingParams, reading: LayoutReading
) -> LayoutReading:
    sources, since = shown_sources(context.document), params.announce_since
    announcement = None
    if since is not None:
        _check_since(context, context.seq, since, "announce_since")
        now, model = call.kernel.clock.now_ms(), reading.reader.model
        announcement = await read_announcement(context, model, reading.items, now, since)
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


@tool("context.usage", needs=Permission.READ, errors=READING)
async def usage(call: Call, params: ReadingParams) -> ContextUsageResult:
    """Estimate how many tokens a context takes of what a model can read, and what takes them."""
    context, model, reading = await _read(call, params)
    version, made = context.seq, reading.request()
    tokens, sizes = dict[ItemType, list[int]](), reading.file_sizes()
    for item in reading.items:
        tokens.setdefault(item.type, []).append(reading.tokens(item))
    types = [
        TypeUsage(type=kind, items=len(each), tokens=sum(each)) for kind, each in tokens.items()
    ]
    last = made.marks[-1].message if made.marks else -1
    await context.wait_persisted()
    return ContextUsageResult(
        context_version=version,
        model=model.name if model is not None else None,
        estimated_tokens=estimate_request(made.messages, sizes=sizes),
        cached_tokens=estimate_request(made.messages[: last + 1], sizes=sizes),
        types=sorted(types, key=lambda one: -one.tokens),
    )
