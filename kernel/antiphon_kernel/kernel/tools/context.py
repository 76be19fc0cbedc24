"""`context.create` and `context.list`."""

from __future__ import annotations

from antiphon_kernel.kernel.kernel import Call
from antiphon_kernel.kernel.registry import Params, Result, tool
from antiphon_kernel.types.access import Right
from antiphon_kernel.types.clock import iso_time


class NoParams(Params):
    """Nothing to say."""


class ContextInfo(Result):
    """One context."""

    context_id: str
    label: str
    created: str


class ContextListResult(Result):
    """Every context of the kernel, oldest first."""

    contexts: list[ContextInfo]


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
            ContextInfo(context_id=row.id, label=row.label, created=iso_time(row.created))
            for row in rows
        ]
    )


@tool("context.create", needs=Right.WRITE)
async def create_context(call: Call, params: ContextCreateParams) -> ContextInfo:
    """Create an empty context."""
    context = await call.kernel.create_context(params.label)
    row = next(row for row in call.kernel.context_rows() if row.id == context.id)
    return ContextInfo(context_id=row.id, label=row.label, created=iso_time(row.created))
