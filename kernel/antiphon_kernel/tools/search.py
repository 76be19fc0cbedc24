"""Search in blocks and files: `block.search`, `kernel.search` and `file.search`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from math import inf

from pydantic import Field

from antiphon_kernel.files.search import FileHit, disk_text, ripgrep, search_files
from antiphon_kernel.kernel import Call
from antiphon_kernel.limits import Limits
from antiphon_kernel.registry import REFERENCES, Params, Result, TextParams, tool
from antiphon_kernel.storage import IndexedText, SearchFilter
from antiphon_kernel.text.search import Found, Match, Query, search_text
from antiphon_kernel.tools._common import PageResult, check_text
from antiphon_kernel.types.enums import ANSWERING_KINDS, BlockKind
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.validation import check_limit

_ERRORS = (*REFERENCES, ErrorCode.INVALID_REGEX, ErrorCode.REGEX_TIMEOUT, ErrorCode.TOO_LARGE)


class SearchParams(Params):
    """A search query. A match lies within one line."""

    query: str
    """Exactly these characters, or a regular expression."""
    regex: bool = False
    """Take `query` for a regular expression in Python's syntax; `(?i)` in front ignores case.

    `^` and `$` are the ends of a line, and nothing matches a newline.
    """


class BlockSearchParams(TextParams, SearchParams):
    """Search query for one block."""

    context_lines: int = Field(default=2, ge=0, le=100)
    """Lines to give above and below each match."""
    max_matches: int = Field(default=20, ge=1, le=1_000)
    """Stop after so many matches."""


class KernelSearchParams(SearchParams):
    """Search query for all blocks of all contexts."""

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


class BlockMatches(BlockSearchResult):
    """The matches in one block."""

    block_id: str
    name: str
    kind: str
    path: str | None = None
    """The file it is about."""


class KernelSearchResult(PageResult):
    """Blocks with matches, in the order in which they were created, context by context."""

    results: list[BlockMatches]
    """One entry a block."""
    unsearched: list[str] | None = None
    """Labels of contexts that are damaged, and so were searched as last indexed, if at all."""


@tool("block.search", needs=Permission.READ, errors=_ERRORS)
async def block_search(call: Call, params: BlockSearchParams) -> BlockSearchResult:
    """Find text in a block: for each match its line, its columns and the lines around it."""
    query = _query(params, call.kernel.limits)
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
    query = _query(params, kernel.limits)
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
        is_denied, by = kernel.files.is_denied, call.actor.principal
        shown = [one for one in batch if one.path is None or not is_denied(by, one.path)]
        hits = await asyncio.to_thread(_search_batch, shown, query, params, room + 1, left)
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


class FileSearchParams(SearchParams):
    """Search query for the files of the project."""

    glob: str | None = None
    """Only in paths that match, as in file.list."""
    limit: int = Field(default=100, ge=1, le=1_000)
    """Lines in the answer."""


class FileSearchResult(Result):
    """Lines that match, by path."""

    hits: list[FileHit]
    """By path, then by line."""
    truncated: bool
    """Whether there are more."""


@tool("file.search", needs=Permission.READ, errors=_ERRORS)
async def file_search(call: Call, params: FileSearchParams) -> FileSearchResult:
    """Find text in the files of the project that git does not ignore.

    Text that is not saved yet counts, not what the disk has in its place.
    """
    kernel, by = call.kernel, call.actor.principal
    call.check_files("")
    query = _query(params, kernel.limits)
    paths = await kernel.files.listed(params.glob, by)
    texts = {one.path.shown: one.now().text for one in kernel.files.opened()}
    likely = await ripgrep(kernel.project, params.query, is_regex=params.regex)
    if likely is not None:
        paths = [one for one in paths if one in likely or one in texts]
    most, has_one_name = kernel.limits.file_bytes, by.kind in ANSWERING_KINDS
    root = str(kernel.project.resolve())

    def text_of(path: str) -> str:
        if path in texts:
            return texts[path]
        return disk_text(root, path, most, query.literals, has_one_name=has_one_name)

    hits = await asyncio.to_thread(search_files, paths, text_of, query, params.limit + 1, most)
    return FileSearchResult(hits=hits[: params.limit], truncated=len(hits) > params.limit)


def _query(params: SearchParams, limits: Limits) -> Query:
    wanted, size = params.query, len(params.query)
    what = f"The query has {size} code points"
    check_limit(size, limits, "query_code_points", what, "look for a part of it")
    is_plain = not params.regex
    pattern, seconds = (re.escape(wanted), inf) if is_plain else (wanted, limits.regex_seconds)
    return Query(pattern, seconds=seconds, line_seconds=limits.regex_line_seconds)


def _search_batch(
    batch: Sequence[IndexedText],
    query: Query,
    params: KernelSearchParams,
    blocks: int,
    size: int,
) -> list[tuple[IndexedText, Found]]:
    """The first `blocks` that match; fewer if their lines have more than `size` code points."""
    hits: list[tuple[IndexedText, Found]] = []
    for one in batch:
        found = search_text(
            one.text,
            query,
            max_matches=params.max_matches_per_block,
            context_lines=params.context_lines,
            max_size=max(size, 0),
        )
        if found.matches:
            hits.append((one, found))
            size -= found.size
        if len(hits) == blocks or size <= 0:
            break
    return hits
