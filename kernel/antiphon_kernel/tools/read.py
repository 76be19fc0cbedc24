"""Reading of blocks: `block.read`, `.list`, `.search` and `kernel.search`, and following them.

`block.subscribe`, `block.unsubscribe` and `block.sync`: blocks as they change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated, Any

from pydantic import Field

from antiphon_kernel.contexts import BlockInfo, Context, header_values
from antiphon_kernel.document.content import part_of
from antiphon_kernel.document.rendering import render
from antiphon_kernel.kernel import Call
from antiphon_kernel.limits import Limits
from antiphon_kernel.registry import REFERENCES, Params, Result, tool
from antiphon_kernel.storage import Candidate, SearchFilter
from antiphon_kernel.subscriptions import BlockEvent, BlockEventKind, block_since, whole_block
from antiphon_kernel.text.lines import line_count, lines_between, number_lines
from antiphon_kernel.text.search import Found, LiteralQuery, Match, Query, RegexQuery, search_text
from antiphon_kernel.tools._common import block_in, check_text, check_version
from antiphon_kernel.types.clock import iso_time_if
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.validation import check_limit


class LineRange(Params):
    """Lines from `start` to `end` (exclusive), counted from 0."""

    start: int = Field(ge=0)
    """First line."""
    end: int = Field(ge=0)
    """Line after the last one."""


class ReadParams(Params):
    """Block and range to read."""

    block_id: str
    section: str | None = None
    line_numbers: bool = False
    """Put number and tab before each line; without, `content` is exactly the text."""
    range: LineRange | None = None
    """All of it if absent."""
    version: int | None = None
    """Read the text as it was at this version of the block; as it is now if absent."""


class ReadResult(BlockInfo):
    """The text of a block and its header."""

    content: str
    """The text, or the lines that were asked for."""
    line_count: int
    """Lines of the whole text."""
    lease: str | None = None
    """A model's or a tool's block that calls with sessions of their own write: when it is
    interrupted unless another write comes before."""


@tool(
    "block.read",
    needs=Permission.READ,
    errors=(
        *REFERENCES,
        ErrorCode.LINE_OUT_OF_RANGE,
    ),
)
async def read(call: Call, params: ReadParams) -> ReadResult:
    """Read a block, or some of its lines."""
    context, block = await call.block(params.block_id)
    section = params.section
    check_text(context.document, block, section)
    if params.version is not None and params.version != context.blocks.version(block):
        check_version(context, block, params.version)
        text = (await context.history(block)).text(section, params.version)
    else:
        text = context.document.text(block, section)
    content = text
    first = 0
    if params.range is not None:
        first = params.range.start
        version = params.version or context.blocks.version(block)
        with AntiphonError.with_details(version=version):
            content = lines_between(text, first, params.range.end)
    if params.line_numbers:
        content = number_lines(content, first)
    header = header_values(context, block)
    if params.version is not None:
        header["version"] = params.version
    is_programs = context.document.header(block).is_written_by_program
    left = call.kernel.writers.lease_seconds(block) if is_programs else None
    lease = call.kernel.clock.now_ms() + round(left * 1_000) if left is not None else None
    result = ReadResult(
        content=content, line_count=line_count(text), lease=iso_time_if(lease), **header
    )
    await context.wait_persisted()
    return result


_SUMMARY = 80


class ListParams(Params):
    """Filter for blocks. Every criterion given must hold."""

    context: str | None = None
    parent_id: str | None = None
    """Only what answers this block, directly or, with `depth`, at some removes."""
    kind: BlockKind | None = None
    role: Role | None = None
    status: Status | None = None
    path_prefix: str | None = None
    """How the `path` of the block begins."""
    depth: int | None = Field(default=None, ge=1)
    """How many generations below `parent_id`; 1 if absent. Needs `parent_id`."""
    after_block: str | None = None
    limit: int = Field(default=100, ge=1, le=1_000)
    """Blocks in one answer."""


class BlockSummary(BlockInfo):
    """The header of a block and how its text begins."""

    summary: str
    """The first line, shortened."""
    length: int
    """Code points of the text."""
    dirty: bool
    """Whether a newer version than that on disk has come in meanwhile."""


class ListResult(Result):
    """Blocks in document order."""

    blocks: list[BlockSummary]
    """In document order."""
    truncated: bool
    next: str | None = None
    """Value of `after_block` for the rest."""
    next_name: str | None = None


@tool("block.list", needs=Permission.READ, errors=REFERENCES)
async def list_blocks(call: Call, params: ListParams) -> ListResult:
    """List the blocks of a context in document order.

    Page by page: blocks that are created meanwhile neither hide others nor show them twice.
    """
    if params.depth is not None and params.parent_id is None:
        raise invalid_params(
            "depth counts generations below a block: give parent_id with it.",
            field="depth",
        )
    below, behind = params.parent_id, params.after_block
    reference = below if below is not None else behind
    if reference is not None and params.context is None:
        context, _ = await call.block(reference)
    else:
        context = await call.context(params.context)
    parent = await block_in(call, context, below) if below is not None else None
    after = await block_in(call, context, behind) if behind is not None else None
    context.appends.flush_all()
    page = list(islice(_matching(context, params, parent, after), params.limit + 1))
    values = [{**_summary(context, one), **header_values(context, one)} for one in page]
    await context.wait_persisted()
    blocks = [
        BlockSummary(
            **one, dirty=context.blocks.version(block) > context.blocks.persisted.get(block, 0)
        )
        for block, one in zip(page, values, strict=True)
    ]
    if len(blocks) <= params.limit:
        return ListResult(blocks=blocks, truncated=False)
    blocks.pop()
    last = blocks[-1]
    return ListResult(blocks=blocks, truncated=True, next=last.block_id, next_name=last.name)


def _summary(context: Context, block: str) -> dict[str, Any]:
    text = render(context.document, block)
    first = text.split("\n", 1)[0]
    return {
        "summary": first if len(first) <= _SUMMARY else first[: _SUMMARY - 1] + "…",
        "length": len(text),
    }


def _matching(
    context: Context, params: ListParams, parent: str | None, after: str | None
) -> Iterator[str]:
    """In document order, behind `after`."""
    document, order, prefix = context.document, context.document.order, params.path_prefix
    if parent is None:
        start = order.index(after) + 1 if after is not None else 0
        found = (order.at(place) for place in range(start, len(order)))
    else:
        key = order.key(after) if after is not None else None
        below = context.block_tree.descendants(parent, params.depth or 1)
        found = (one for one in below if key is None or order.key(one) > key)
    for block in found:
        header = document.header(block)
        if (
            params.kind in (None, header.kind)
            and params.role in (None, header.role)
            and params.status in (None, header.status)
            and (prefix is None or (header.path is not None and header.path.startswith(prefix)))
        ):
            yield block


_ERRORS = (*REFERENCES, ErrorCode.INVALID_REGEX, ErrorCode.REGEX_TIMEOUT, ErrorCode.TOO_LARGE)


class BlockSearchParams(Params):
    """Search query for one block. A match lies within one line."""

    block_id: str
    section: str | None = None
    query: str
    """Exactly these characters, or a regular expression."""
    regex: bool = False
    """Take `query` for a regular expression in Python's syntax; `(?i)` in front ignores case.

    `^` and `$` are the ends of a line, and nothing matches a newline.
    """
    context_lines: int = Field(default=2, ge=0, le=100)
    """Lines to give above and below each match."""
    max_matches: int = Field(default=20, ge=1, le=1_000)
    """Stop after so many matches."""


class KernelSearchParams(Params):
    """Search query for all blocks of all contexts. A match lies within one line."""

    query: str
    """Exactly these characters, or a regular expression."""
    regex: bool = False
    """Take `query` for a regular expression, as in block.search."""
    kinds: list[BlockKind] = Field(default=[BlockKind.FILE], min_length=1)
    """Only blocks of these kinds."""
    path_prefix: str | None = None
    """Only blocks whose path begins so."""
    context_lines: int = Field(default=2, ge=0, le=100)
    """Lines to give above and below each match."""
    max_matches_per_block: int = Field(default=5, ge=1, le=1_000)
    """Give no more matches of one block."""
    max_blocks: int = Field(default=20, ge=1, le=1_000)
    """Stop after so many blocks with matches."""
    after_block: str | None = None


class BlockSearchResult(Result):
    """Matches in the order of the text."""

    matches: list[Match]
    """In the order of the text."""
    truncated: bool
    version: int
    """The version of the block that was searched."""


class BlockMatches(Result):
    """The matches in one block."""

    block_id: str
    name: str
    kind: str
    path: str | None = None
    """The file it is about."""
    version: int
    """The version of the block that was searched."""
    matches: list[Match]
    """In the order of the text."""
    truncated: bool
    """Whether the block has more matches than these."""


class KernelSearchResult(Result):
    """Blocks with matches, in the order in which they were created, context by context."""

    results: list[BlockMatches]
    """One entry a block."""
    truncated: bool
    """Whether more blocks have matches."""
    next: str | None = None
    """Value of `after_block` for the rest."""
    next_name: str | None = None
    unsearched: list[str] | None = None
    """Labels of contexts that are damaged, and so were searched as last indexed, if at all."""


@tool("block.search", needs=Permission.READ, errors=_ERRORS)
async def block_search(call: Call, params: BlockSearchParams) -> BlockSearchResult:
    """Find text in a block: for each match its line, its columns and the lines around it."""
    query = _query(params.query, params.regex, call.kernel.limits)
    context, block = await call.block(params.block_id)
    check_text(context.document, block, params.section)
    text, version = context.document.text(block, params.section), context.blocks.version(block)
    found = await asyncio.to_thread(
        search_text,
        text,
        query,
        max_matches=params.max_matches,
        context_lines=params.context_lines,
        max_size=context.limits.search_code_points,
    )
    await context.wait_persisted()
    return BlockSearchResult(
        matches=list(found.matches), truncated=found.truncated, version=version
    )


@tool("kernel.search", needs=Permission.READ, errors=_ERRORS)
async def kernel_search(call: Call, params: KernelSearchParams) -> KernelSearchResult:
    """Find text in the blocks of every context, open or not; only in files unless told otherwise.

    What was written before the call is found. A block with a schema is searched as `block.render`
    shows it.
    """
    kernel = call.kernel
    query = _query(params.query, params.regex, kernel.limits)
    await kernel.open_contexts.flush()
    changes = await kernel.search.changes()
    after = 0
    if params.after_block is not None:
        row = await kernel.search.table.row_of((await call.block(params.after_block))[1])
        assert row is not None, "what is in a document and flushed is in the journal"
        after = row
    kinds = [str(kind) for kind in params.kinds]
    wanted = SearchFilter(tuple(query.literals), kinds, params.path_prefix)
    results: list[BlockMatches] = []
    left = kernel.limits.search_code_points
    truncated = False
    async for batch in kernel.search.texts(wanted, after, changes):
        room = params.max_blocks - len(results)
        hits = await asyncio.to_thread(_search_batch, batch, query, params, room + 1, left)
        results += [
            BlockMatches(
                block_id=one.block,
                name=kernel.block_name(one.block),
                kind=one.kind,
                path=one.path,
                version=one.version,
                matches=list(found.matches),
                truncated=found.truncated,
            )
            for one, found in hits[:room]
        ]
        left -= sum(found.size for _, found in hits)
        truncated = len(hits) > room or left <= 0
        if truncated:
            break
    return KernelSearchResult(
        results=results,
        truncated=truncated,
        next=results[-1].block_id if truncated else None,
        next_name=results[-1].name if truncated else None,
        unsearched=list(changes.unreadable) or None,
    )


def _query(wanted: str, is_regex: bool, limits: Limits) -> Query:
    size = len(wanted)
    what = f"The query has {size} code points"
    check_limit(size, limits, "query_code_points", what, "look for a part of it")
    if not is_regex:
        return LiteralQuery(wanted)
    return RegexQuery(wanted, seconds=limits.regex_seconds, line_seconds=limits.regex_line_seconds)


def _search_batch(
    batch: Sequence[tuple[Candidate, str]],
    query: Query,
    params: KernelSearchParams,
    blocks: int,
    size: int,
) -> list[tuple[Candidate, Found]]:
    """The first `blocks` that match; fewer if their lines have more than `size` code points."""
    hits: list[tuple[Candidate, Found]] = []
    for candidate, text in batch:
        found = search_text(
            text,
            query,
            max_matches=params.max_matches_per_block,
            context_lines=params.context_lines,
            max_size=max(size, 0),
        )
        if found.matches:
            hits.append((candidate, found))
            size -= found.size
        if len(hits) == blocks or size <= 0:
            break
    return hits


Version = Annotated[int, Field(ge=0)]
Versions = list[tuple[str, Version]] | dict[str, Version]
"""Block ids and the version one has of each: a list of pairs or an object."""


class SubscribeParams(Params):
    """Blocks to follow, and versions that the caller has."""

    context: str | None = None
    """Label or id; if no blocks are named, all blocks of it, also those that come later."""
    block_ids: list[str] | None = None
    """Only these blocks; all of the context if absent or empty."""
    section: str | None = None
    """Only what concerns this part of the content of the blocks that are named: path of a section
    or of a field."""
    from_versions: Versions | None = None
    """The versions that the caller has: what has changed since comes first, as a patch where there
    can be one; so do the blocks that it does not have. Nothing comes first if absent."""


class SubscribeResult(Result):
    """The events come from now on."""

    subscription: str
    """Name of the subscription: events carry it, and block.unsubscribe takes it."""
    context_version: int


class UnsubscribeParams(Params):
    """Subscription to end."""

    subscription: str
    """As block.subscribe returned it."""


class UnsubscribeResult(Result):
    """It is over; every event came before this answer."""

    subscription: str
    """The one that was ended."""


class SyncParams(Params):
    """Versions of the caller."""

    context: str | None = None
    """Label or id; the context of the first block that is named, or the default one, if absent."""
    versions: Versions = Field(default_factory=list)
    """Block ids and the version one has of each."""
    limit: int = Field(default=100, ge=1, le=1_000)
    """How many blocks to answer with; call again with what came until `truncated` is false."""


class SyncResult(Result):
    """Blocks that the caller lacks."""

    patches: list[BlockEvent]
    """Of the blocks that it has in an earlier version."""
    new_blocks: list[BlockEvent]
    """The blocks that it does not have, in document order."""
    truncated: bool
    context_version: int


@tool(
    "block.subscribe",
    needs=Permission.READ,
    errors=(*REFERENCES, ErrorCode.SCHEMA_VIOLATION, ErrorCode.TOO_LARGE),
)
async def subscribe(call: Call, params: SubscribeParams) -> SubscribeResult:
    """Follow blocks: every committed change of one becomes an event.

    Over a WebSocket, and in `antiphon call --jsonl`, events come as `{"subscription", "event"}`
    beside the answers; a POST answers with lines of them for as long as it is read. An event has
    the new version, the patch in code points, who did it and whether that was this session. A
    reader that is too slow gets a `resync` of the blocks that it has missed something of.
    """
    named = [await call.block(reference) for reference in params.block_ids or ()]
    known = await _known(call, params.from_versions or [])
    if named:
        contexts = list(dict.fromkeys(context for context, _ in named))
        blocks = frozenset(block for _, block in named)
        if params.context is not None and contexts != [await call.context(params.context)]:
            raise AntiphonError(
                ErrorCode.BLOCK_NOT_FOUND,
                f"Not all of these blocks are in context {params.context}: leave out `context`.",
                reference=params.context,
            )
    else:
        contexts, blocks = [await call.context(params.context)], None
    if params.section is not None:
        if not named:
            raise invalid_params(
                "section is a part of the blocks that are named: give block_ids with it.",
                field="section",
            )
        for context, block in named:
            part_of(context.document, block, params.section)
    made = await call.kernel.subscriptions.open(call.actor, contexts, blocks, params.section)
    if params.from_versions is not None:
        for context in contexts:
            for block in context.document.block_ids():
                version = known.get(block)
                if made.follows(block) and version != context.blocks.version(block):
                    made.resume(block, version)
    return SubscribeResult(subscription=made.id, context_version=contexts[0].seq)


@tool("block.unsubscribe", needs=Permission.READ)
async def unsubscribe(call: Call, params: UnsubscribeParams) -> UnsubscribeResult:
    """End a subscription of this session."""
    subscriptions = call.kernel.subscriptions
    subscriptions.end(subscriptions.find(call.actor, params.subscription))
    return UnsubscribeResult(subscription=params.subscription)


@tool("block.sync", needs=Permission.READ, errors=REFERENCES)
async def sync(call: Call, params: SyncParams) -> SyncResult:
    """Say what has changed since the versions that the caller has, and what is new."""
    known = await _known(call, params.versions)
    first = next(iter(known), None)
    if params.context is not None or first is None:
        context = await call.context(params.context)
    else:
        context = await call.context(first.split(".", 1)[0])
    for block in known:
        if block not in context.document:
            raise AntiphonError(
                ErrorCode.BLOCK_NOT_FOUND,
                f"There is no block {block} in context {context.label}: sync one context a time.",
                reference=block,
            )
    context.appends.flush_all()
    patches: list[BlockEvent] = []
    new_blocks: list[BlockEvent] = []
    seq, truncated = context.seq, False
    for block in list(context.document.block_ids()):
        version = known.get(block)
        if version == context.blocks.version(block):
            continue
        if len(patches) + len(new_blocks) == params.limit:
            truncated = True
            break
        if version is None:
            new_blocks.append(await whole_block(context, block, BlockEventKind.CREATED))
        elif (patch := await block_since(context, block, version)) is not None:
            patches.append(patch)
    await context.wait_persisted()
    return SyncResult(
        patches=patches, new_blocks=new_blocks, truncated=truncated, context_version=seq
    )


async def _known(call: Call, versions: Versions) -> dict[str, int]:
    pairs = versions.items() if isinstance(versions, dict) else versions
    return {(await call.block(reference))[1]: version for reference, version in pairs}
