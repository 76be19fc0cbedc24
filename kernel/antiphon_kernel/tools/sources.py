"""`source.add`, `source.list` and `source.read`: what a context refers to by number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Self

from pydantic import Field

from antiphon_kernel.conversation import add_sources, read_sources
from antiphon_kernel.kernel import Call
from antiphon_kernel.layout import (
    PathError,
    PoolSource,
    SourceError,
    SourcesPath,
    normal_path,
    normal_url,
    parse_path,
)
from antiphon_kernel.registry import ContextParams, Params, Result, tool
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, block_not_found, invalid_params
from antiphon_kernel.types.quoting import quote, truncate
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.validation import check_limit

_CONTEXT: Final = (ErrorCode.CONTEXT_NOT_FOUND, ErrorCode.AMBIGUOUS_ID, ErrorCode.TOO_LARGE)


class NewSource(Params):
    """A page or a file: its `url` or its `path`."""

    url: str | None = Field(default=None, max_length=4_096)
    """Address of a page: http or https. Case of the host and fragment make no difference."""
    path: str | None = Field(default=None, max_length=4_096)
    """A file of the project, relative to its root."""
    title: str | None = Field(default=None, max_length=1_000)
    """Title, in a line."""
    text: str | None = None
    """Text, as far as it was read."""


class SourceAddParams(ContextParams):
    """Sources for the pool of a context."""

    sources: list[NewSource] = Field(min_length=1, max_length=100)
    """All of them are added, or none."""


class SourceInfo(Result):
    """A source without its text."""

    sid: int
    """Its number, which it keeps for good."""
    url: str | None = None
    """Address of a page, as the pool keeps it."""
    path: str | None = None
    """Path of a file of the project."""
    title: str | None = None
    """Title."""
    length: int
    """Code points of its text."""

    @classmethod
    def of(cls, source: PoolSource, **fields: Any) -> Self:
        """Return what is told of a source of the pool."""
        return cls(
            sid=source.sid,
            url=source.url,
            path=source.path,
            title=source.title,
            length=len(source.text or ""),
            **fields,
        )


class AddedSourceInfo(SourceInfo):
    """A source, and whether it is new."""

    added: bool
    """False if it was there: it keeps its number, and gets what it lacked of title and text."""


class SourceAddResult(Result):
    """Sources as they are in the pool."""

    sources: list[AddedSourceInfo]
    """In the order of the request."""
    path: str
    """All of them, as `source.read` takes it."""
    context_version: int


@tool("source.add", needs=Permission.WRITE, errors=_CONTEXT)
async def add(call: Call, params: SourceAddParams) -> SourceAddResult:
    """Add pages and files to the sources pool of a context, where each has a number for good.

    The same URL or path keeps its number, whoever adds it again.
    """
    context = await call.context(params.context)
    limits = context.limits
    wanted = [_wanted(at, one) for at, one in enumerate(params.sources)]
    for one in wanted:
        size = len(one.text or "")
        what = f"The text of {truncate(one.place)} has {size} code points"
        check_limit(size, limits, "source_code_points", what, "keep the part that matters")
    kernel = call.kernel
    added = add_sources(context, kernel.system, call.actor, wanted, kernel.clock.now_ms())
    version = context.seq
    await context.wait_persisted()
    return SourceAddResult(
        sources=[AddedSourceInfo.of(source, added=is_new) for source, is_new in added],
        path=str(_path_of(source.sid for source, _ in added)),
        context_version=version,
    )


class SourceListParams(ContextParams):
    """Part of the sources pool of a context."""

    after: int = Field(default=0, ge=0)
    """Go on after this number: the `next` of the previous answer."""
    limit: int = Field(default=100, ge=1, le=1_000)
    """Sources in one answer."""


class SourceListResult(Result):
    """Sources in the order of their numbers."""

    sources: list[SourceInfo]
    """In the order of their numbers."""
    count: int
    """How many there are in all."""
    next: int | None = None
    """Value of `after` for the rest; absent if there is none."""


@tool("source.list", needs=Permission.READ, errors=_CONTEXT[:2])
async def list_sources(call: Call, params: SourceListParams) -> SourceListResult:
    """List the sources of a context, without their texts."""
    context = await call.context(params.context)
    sources = read_sources(context.document)
    await context.wait_persisted()
    later = [one for one in sources if one.sid > params.after]
    shown = later[: params.limit]
    return SourceListResult(
        sources=[SourceInfo.of(one) for one in shown],
        count=len(sources),
        next=shown[-1].sid if len(shown) < len(later) else None,
    )


class SourceReadParams(ContextParams):
    """Sources to read, by number."""

    path: str
    """`so:sources_pool[1-3,5]`: sources 1, 2, 3 and 5."""


class SourceContent(SourceInfo):
    """A source with its text."""

    text: str | None = None
    """Absent if nobody has given one."""


class SourceReadResult(Result):
    """Sources with their texts."""

    sources: list[SourceContent]
    """In the order of their numbers; what there is of those that were asked for."""


@tool("source.read", needs=Permission.READ, errors=(*_CONTEXT, ErrorCode.BLOCK_NOT_FOUND))
async def read(call: Call, params: SourceReadParams) -> SourceReadResult:
    """Read sources of a context."""
    context = await call.context(params.context)
    try:
        path = parse_path(params.path)
    except PathError as error:
        raise _wrong("path", str(error)) from error
    if not isinstance(path, SourcesPath):
        said = f"{quote(params.path)} is no path of sources, such as so:sources_pool[1-3,5]"
        raise _wrong("path", said)
    sources = read_sources(context.document)
    found = [one for one in sources if one.sid in path]
    if not found:
        there = f"it has {_path_of(one.sid for one in sources)}" if sources else "it is empty"
        raise block_not_found(
            f"The sources pool of {context.label} has none of {quote(params.path)}: {there}.",
            params.path,
        )
    size = sum(len(one.text or "") for one in found)
    what = f"The sources have {size} code points"
    check_limit(size, context.limits, "export_code_points", what, "ask for fewer")
    await context.wait_persisted()
    return SourceReadResult(sources=[SourceContent.of(one, text=one.text) for one in found])


def _wanted(at: int, asked: NewSource) -> PoolSource:
    if (asked.url is None) == (asked.path is None):
        raise _wrong(f"sources.{at}", "a source has a url or a path: give one of the two")
    try:
        url = normal_url(asked.url) if asked.url is not None else None
        path = normal_path(asked.path) if asked.path is not None else None
        return PoolSource(0, url, path, asked.title, asked.text)
    except SourceError as error:
        field = "url" if asked.url is not None else "path"
        raise _wrong(f"sources.{at}.{field}", str(error)) from error


def _wrong(field: str, what: str) -> AntiphonError:
    sentence = what[0].upper() + what[1:]
    return invalid_params(f"{sentence}.", field=field)


def _path_of(sids: Iterable[int]) -> SourcesPath:
    """Return the path of some sources, each run of numbers as a range."""
    ranges: list[tuple[int, int]] = []
    for sid in sorted(set(sids)):
        if ranges and ranges[-1][1] == sid - 1:
            ranges[-1] = ranges[-1][0], sid
        else:
            ranges.append((sid, sid))
    return SourcesPath(tuple(ranges))
