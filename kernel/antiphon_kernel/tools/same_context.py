"""Blocks that have to be of one context."""

from __future__ import annotations

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Call
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import quote, truncate


async def block_in(call: Call, context: Context, reference: str) -> str:
    """The id of a block that must be in `context`.

    Raises:
        AntiphonError: block_not_found, ambiguous_id, context_not_found.
    """
    found, block = await call.block(reference)
    if found is not context:
        raise AntiphonError(
            ErrorCode.BLOCK_NOT_FOUND,
            f"There is no block {quote(reference)} in context {context.label}.",
            reference=truncate(reference),
        )
    return block
