"""`context.export` and `context.import`."""

from __future__ import annotations

from enum import StrEnum

from antiphon_kernel.kernel.exchange.exporting import as_markdown, export_context
from antiphon_kernel.kernel.exchange.importing import import_context
from antiphon_kernel.kernel.exchange.records import read_export
from antiphon_kernel.kernel.kernel import Call
from antiphon_kernel.kernel.registry import Params, Result, tool
from antiphon_kernel.types.access import Right
from antiphon_kernel.types.errors import ErrorCode


class ExportFormat(StrEnum):
    """In which form a context leaves the kernel."""

    JSONL = "jsonl"
    """Lines of JSON that can be imported again: headers, texts, order, parents, authors."""
    MARKDOWN = "markdown"
    """To be read."""


class ContextExportParams(Params):
    """Which context, and how."""

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
    needs=Right.READ,
    errors=(ErrorCode.CONTEXT_NOT_FOUND, ErrorCode.AMBIGUOUS_ID),
)
async def export(call: Call, params: ContextExportParams) -> ContextExportResult:
    """Give the whole content of a context, each block as it is at one moment."""
    context = await call.context(params.context)
    context.appends.flush_all()
    if params.format is ExportFormat.MARKDOWN:
        version, text = context.seq, as_markdown(call.kernel, context)
        await context.settled()
    else:
        exported = await export_context(call.kernel, context)
        version = exported.context.version
        text = "".join(f"{line}\n" for line in exported.lines())
    return ContextExportResult(label=context.label, version=version, text=text)


@tool("context.import", needs=Right.OWN, errors=(ErrorCode.TOO_LARGE,))
async def import_(call: Call, params: ContextImportParams) -> ContextImportResult:
    """Make a new context of an exported one: it is there whole, or not at all.

    People and models are matched by username and kind; who wrote what is taken over, what could be
    undone is not. Text of others whom this kernel knows is imported only by whose kernel it is.
    A block of a model that answers nothing in the export answers nothing here.
    """
    exported = read_export(params.text)
    label = params.label if params.label is not None else exported.context.label
    context = await import_context(call.kernel, call.actor, exported, label)
    return ContextImportResult(
        context_id=context.id, label=context.label, blocks=len(context.document)
    )
