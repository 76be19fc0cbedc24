"""`context.create` and `context.list`."""

from __future__ import annotations

from antiphon_kernel.kernel.kernel import Call
from antiphon_kernel.kernel.registry import Params, Result, tool
from antiphon_kernel.types.access import Right
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.ids import ContextId


class NoParams(Params):
    """Nothing to say."""


class ContextInfo(Result):
    """One context."""

    context_id: str
    label: str
    created: str
    damaged: str | None = None
    """Why it cannot be opened; absent if it can, as far as is known."""


class ContextListResult(Result):
    """Every context of the kernel, oldest first."""

    contexts: list[ContextInfo]
    """One entry a context."""


class ContextCreateParams(Params):
    """A new context."""

    label: str
    """a-z, 0-9, _ and -; not taken."""


@tool("context.list", needs=Right.READ)
async def list_contexts(call: Call, params: NoParams) -> ContextListResult:
    """List the contexts of this kernel."""
    rows = call.kernel.context_rows()
    return ContextListResult(
        contexts=[
            ContextInfo(
                context_id=row.id,
                label=row.label,
                created=iso_time(row.created),
                damaged=_damage(call, row.id),
            )
            for row in rows
        ]
    )


def _damage(call: Call, context: ContextId) -> str | None:
    error = call.kernel.quarantine.why(context)
    return error.message if error is not None else None


@tool("context.create", needs=Right.WRITE)
async def create_context(call: Call, params: ContextCreateParams) -> ContextInfo:
    """Create an empty context."""
    context = await call.kernel.create_context(params.label)
    row = next(row for row in call.kernel.context_rows() if row.id == context.id)
    return ContextInfo(context_id=row.id, label=row.label, created=iso_time(row.created))
