"""`context.export` and `context.import`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from enum import StrEnum
from typing import Final

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import Params, Result, tool
from antiphon_kernel.transfer import export_lines, export_markdown, import_lines
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.roles import Permission

_PIECE: Final = 65_536


class ExportFormat(StrEnum):
    """In which form a context leaves the kernel."""

    JSONL = "jsonl"
    """Lines of JSON that can be imported again: headers, texts, order, parents, authors."""
    MARKDOWN = "markdown"
    """To be read."""


class ContextExportParams(Params):
    """Context to export, and format."""

    context: str | None = None
    """Label or id; the default context if absent."""
    format: ExportFormat = ExportFormat.JSONL
    """The form of the text."""


class ContextExportResult(Result):
    """A whole context."""

    label: str
    version: int
    """The context's version that was exported."""
    text: str
    """What was exported."""


class ContextImportParams(Params):
    """A context that was exported as lines of JSON."""

    text: str
    """What `context.export` gave."""
    label: str | None = None
    """The new context's, as context.create takes it; the exported one's if absent."""


class ContextImportResult(Result):
    """The new context."""

    context_id: str
    label: str
    blocks: int
    """How many blocks it has."""


@tool(
    "context.export",
    needs=Permission.READ,
    errors=(ErrorCode.CONTEXT_NOT_FOUND, ErrorCode.AMBIGUOUS_ID, ErrorCode.TOO_LARGE),
)
async def export(call: Call, params: ContextExportParams) -> ContextExportResult:
    """Give the whole content of a context, each block as it is at one moment.

    A large context is exported with `antiphon export`, or with `GET /export?context=&format=` at
    the address of the kernel's HTTP door: they stream.
    """
    context = await call.context(params.context)
    version, limit = context.seq, call.kernel.limits.export_code_points
    pieces: list[str] = []
    length = 0
    async for piece in exported(call, context, params.format):
        pieces.append(piece)
        length += len(piece)
        if length > limit:
            raise _too_large(f"The export of {context.label} has", limit, "antiphon export")
    return ContextExportResult(label=context.label, version=version, text="".join(pieces))


async def exported(call: Call, context: Context, form: ExportFormat) -> AsyncGenerator[str, None]:
    """Yield an export piece by piece, for as long as the caller may read.

    Raises:
        AntiphonError: permission_denied, storage_failed.
    """
    context.appends.flush_all()
    lines = export_markdown if form is ExportFormat.MARKDOWN else export_lines
    async with aclosing(lines(call.kernel, context)) as pieces:
        async for piece in pieces:
            call.check()
            yield piece


@tool("context.import", needs=Permission.OWN, errors=(ErrorCode.TOO_LARGE,))
async def import_(call: Call, params: ContextImportParams) -> ContextImportResult:
    """Make a new context of an exported one: it is there whole, or not at all.

    People and models are matched by username and kind; who wrote what is taken over, what could be
    undone is not. Text of others whom this kernel knows is imported only by whose kernel it is.
    A block of a model that answers nothing in the export answers nothing here. A large export is
    imported with `antiphon import`, or with `POST /import?label=` at the address of the kernel's
    HTTP door: they stream.
    """
    limit = call.kernel.limits.export_code_points
    if len(params.text) > limit:
        raise _too_large("The text has", limit, "antiphon import")
    return await imported(call, _in_pieces(params.text), params.label)


async def imported(
    call: Call, pieces: AsyncIterator[bytes], label: str | None
) -> ContextImportResult:
    """Import an export that comes in pieces, cut anywhere.

    Raises:
        AntiphonError: invalid_params, too_large, permission_denied, storage_failed.
    """
    made = await import_lines(call.kernel, call.actor, pieces, label, call.check)
    return ContextImportResult(context_id=made.row.id, label=made.row.label, blocks=made.blocks)


async def _in_pieces(text: str) -> AsyncIterator[bytes]:
    for at in range(0, len(text), _PIECE):
        yield text[at : at + _PIECE].encode()


def _too_large(what: str, limit: int, command: str) -> AntiphonError:
    return AntiphonError(
        ErrorCode.TOO_LARGE,
        f"{what} more than {limit} code points, which is the most for one call: use"
        f" `{command}`, which streams.",
        limit=limit,
    )
