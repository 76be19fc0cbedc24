"""`context.page`."""

from __future__ import annotations

from antiphon_kernel.contexts import ContextPage, read_page
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import REFERENCES, Params, tool
from antiphon_kernel.tools._common import block_in
from antiphon_kernel.types.constants import DEFAULT_CONTEXT
from antiphon_kernel.types.roles import Permission


class ContextPageParams(Params):
    """Context and place of a page."""

    context: str | None = None
    around: str | None = None
    """A block in the middle of the page; the last blocks if absent."""


@tool("context.page", needs=Permission.READ, errors=REFERENCES)
async def page(call: Call, params: ContextPageParams) -> ContextPage:
    """Read some neighbouring blocks of a context with their texts, as a screen shows them.

    The last blocks of a context that nobody has opened since the kernel was started are read
    without opening it, so that a long one can be shown at once.
    """
    kernel, around = call.kernel, params.around
    stored = await kernel.stored_page(params.context or DEFAULT_CONTEXT)
    if stored is not None and (around is None or stored.surrounds(around)):
        call.check()
        return stored
    context = await call.context(params.context)
    block = await block_in(call, context, around) if around is not None else None
    context.appends.flush_all()
    found = read_page(context, block)
    await context.wait_persisted()
    return found
