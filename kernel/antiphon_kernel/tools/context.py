"""`context.create`, `context.list`, `context.rename` and `context.archive`."""

from __future__ import annotations

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import Params, Result, tool
from antiphon_kernel.storage import ContextRow
from antiphon_kernel.types.clock import iso_time, iso_time_if
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.roles import Permission


class ContextListParams(Params):
    """Filter for contexts."""

    archived: bool = False
    """Name those that are archived too."""


class ContextInfo(Result):
    """One context."""

    context_id: str
    label: str
    created: str
    archived: str | None = None
    """Since when it has been out of the way; absent if it is not."""
    damaged: str | None = None
    """Why it cannot be opened; absent if it can, as far as is known."""


class ContextListResult(Result):
    """The contexts of the kernel, oldest first."""

    contexts: list[ContextInfo]
    """One entry a context."""


class ContextCreateParams(Params):
    """A new context."""

    label: str
    """At most 64 of a-z, 0-9, _ and -; not taken."""


@tool("context.list", needs=Permission.READ)
async def list_contexts(call: Call, params: ContextListParams) -> ContextListResult:
    """List the contexts of this kernel; archived ones only when asked for."""
    rows = [row for row in call.kernel.context_rows() if params.archived or row.archived is None]
    return ContextListResult(contexts=[context_info(call, row) for row in rows])


def context_info(call: Call, row: ContextRow) -> ContextInfo:
    """Return the info of a context."""
    damage = call.kernel.quarantine.reason(row.id)
    return ContextInfo(
        context_id=row.id,
        label=row.label,
        created=iso_time(row.created),
        archived=iso_time_if(row.archived),
        damaged=damage.message if damage is not None else None,
    )


@tool("context.create", needs=Permission.WRITE)
async def create_context(call: Call, params: ContextCreateParams) -> ContextInfo:
    """Create an empty context."""
    context = await call.kernel.create_context(params.label)
    return context_info(call, context.row)


class ContextRenameParams(Params):
    """Context to rename, and its new label."""

    context: str
    """Label or id."""
    label: str
    """At most 64 of a-z, 0-9, _ and -; not taken."""


class ContextArchiveParams(Params):
    """Context, and whether it is archived."""

    context: str
    """Label or id."""
    archived: bool = True
    """False brings it back; true if absent."""


class ContextStateResult(ContextInfo):
    """The context as it is now."""

    context_version: int


_STATES = (ErrorCode.CONTEXT_NOT_FOUND, ErrorCode.AMBIGUOUS_ID)


@tool("context.rename", needs=Permission.WRITE, errors=_STATES)
async def rename_context(call: Call, params: ContextRenameParams) -> ContextStateResult:
    """Give a context another label. Its id, and with it every block id, stays the same.

    Who is connected reads the new label in the document's `meta`. The default context keeps its
    label.
    """
    context = await call.context(params.context)
    seq = await call.kernel.contexts.rename(call.actor, context, params.label)
    return _state(call, context, seq)


@tool("context.archive", needs=Permission.WRITE, errors=_STATES)
async def archive_context(call: Call, params: ContextArchiveParams) -> ContextStateResult:
    """Put a context out of the way, or bring it back.

    An archived context is left out of context.list unless it is asked for. It keeps its label and
    everything in it, and can be read and written as before. The default context is not archived.
    """
    context = await call.context(params.context)
    seq = await call.kernel.contexts.archive(call.actor, context, params.archived)
    return _state(call, context, seq)


def _state(call: Call, context: Context, seq: int) -> ContextStateResult:
    info = context_info(call, context.row)
    return ContextStateResult(**info.model_dump(), context_version=seq)
