"""`kernel.usage`: tokens and money that models have used, as their providers count them."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon_kernel.conversation import UsageSum
from antiphon_kernel.kernel import Call, Kernel
from antiphon_kernel.providers import TokenUsage
from antiphon_kernel.registry import Params, Result, tool
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.roles import Permission


class KernelUsageParams(Params):
    """Part of what has been used."""

    context: str | None = None
    """Label or id; all contexts if absent."""
    principal: str | None = None
    """Username or id of a model, or of somebody whose messages were answered; all if absent."""


class ModelUsage(Result):
    """Tokens that one model has used in one context for one principal."""

    context_id: str
    label: str
    model: str
    """Username of the model."""
    username: str
    """Name of whoever's messages it answered."""
    used: TokenUsage
    """Sum since the context was made."""


class KernelUsageResult(Result):
    """Tokens that have been used, in all and one by one."""

    total: TokenUsage
    """Sum of what is listed."""
    sums: list[ModelUsage]
    """Most tokens first."""


@tool(
    "kernel.usage",
    needs=Permission.READ,
    errors=(ErrorCode.CONTEXT_NOT_FOUND, ErrorCode.AMBIGUOUS_ID),
)
async def kernel_usage(call: Call, params: KernelUsageParams) -> KernelUsageResult:
    """Say how many tokens models have used, for whom, and what they cost where that is known.

    The numbers are those that providers report. A fork begins at zero.
    """
    kernel = call.kernel
    context = kernel.contexts.find(params.context) if params.context is not None else None
    whose = kernel.members.find(params.principal).id if params.principal is not None else None
    found = [
        one
        for one in await kernel.usage.all()
        if context in (None, one.context) and whose in (None, one.model, one.asker)
    ]
    found.sort(key=lambda one: -one.used.tokens)
    return KernelUsageResult(total=total_usage(found), sums=[_shown(kernel, one) for one in found])


def total_usage(sums: Iterable[UsageSum]) -> TokenUsage:
    """Return what has been used in all."""
    return sum((one.used for one in sums), TokenUsage())


def _shown(kernel: Kernel, one: UsageSum) -> ModelUsage:
    return ModelUsage(
        context_id=one.context,
        label=next(row.label for row in kernel.contexts.rows() if row.id == one.context),
        model=kernel.members.find(one.model).username,
        username=kernel.members.find(one.asker).username,
        used=one.used,
    )
