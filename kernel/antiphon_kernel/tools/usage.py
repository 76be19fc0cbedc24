"""Tokens of a context, and usage of models: `context.usage` and `kernel.usage`."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon_kernel.conversation import UsageSum
from antiphon_kernel.kernel import Call
from antiphon_kernel.layout import ItemType
from antiphon_kernel.providers import TokenUsage
from antiphon_kernel.registry import Params, Result, tool
from antiphon_kernel.tools.layout import READING, ReadingParams, read_for_model
from antiphon_kernel.types.roles import Permission


class TypeUsage(Result):
    """Items of one type."""

    type: ItemType
    """As `context.layout` shows it."""
    items: int
    """How many there are."""
    tokens: int
    """Estimate of their text, and of attached images and documents."""


class ContextUsageResult(Result):
    """Estimate of the tokens that a model reads with each request."""

    context_version: int
    model: str | None = None
    """Username of the model; absent if none has written yet."""
    estimated_tokens: int
    """Of all messages."""
    cached_tokens: int
    """Of those up to the last cache point."""
    types: list[TypeUsage]
    """Most tokens first."""
    used: TokenUsage
    """Tokens that all models have used here so far, as their providers count them."""


@tool("context.usage", needs=Permission.READ, errors=READING)
async def usage(call: Call, params: ReadingParams) -> ContextUsageResult:
    """Estimate how many tokens of a model's window a context takes, and what takes them.

    What models have used here so far is counted, not estimated.
    """
    context, model, reading = await read_for_model(call, params)
    version, made, estimates = context.seq, reading.request(), reading.message_tokens()
    tokens: dict[ItemType, list[int]] = {}
    for part in reading.parts:
        for item, estimate in zip(part.items, part.text_tokens, strict=True):
            tokens.setdefault(item.type, []).append(estimate)
    types = [
        TypeUsage(type=kind, items=len(each), tokens=sum(each)) for kind, each in tokens.items()
    ]
    last = made.marks[-1].message if made.marks else -1
    used = [one for one in await call.kernel.usage.all() if one.context == context.id]
    await context.wait_persisted()
    return ContextUsageResult(
        context_version=version,
        model=model.name if model is not None else None,
        estimated_tokens=sum(estimates),
        cached_tokens=sum(estimates[: last + 1]),
        types=sorted(types, key=lambda one: -one.tokens),
        used=_total(used),
    )


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
    errors=READING[:2],
)
async def kernel_usage(call: Call, params: KernelUsageParams) -> KernelUsageResult:
    """Say how many tokens models have used, for whom, and what they cost where that is known.

    The numbers are those that providers report. A fork begins at zero.
    """
    kernel = call.kernel
    await kernel.members.read_again()
    context = None
    if params.context is not None:
        context = await kernel.contexts.look_up(params.context)
    whose = kernel.members.find(params.principal).id if params.principal is not None else None
    found = [
        one
        for one in await kernel.usage.all()
        if context in (None, one.context) and whose in (None, one.model, one.asker)
    ]
    found.sort(key=lambda one: -one.used.tokens)
    labels: dict[str, str] = {row.id: row.label for row in kernel.contexts.rows()}
    sums = [
        ModelUsage(
            context_id=one.context,
            label=labels[one.context],
            model=kernel.members.find(one.model).username,
            username=kernel.members.find(one.asker).username,
            used=one.used,
        )
        for one in found
    ]
    return KernelUsageResult(total=_total(found), sums=sums)


def _total(sums: Iterable[UsageSum]) -> TokenUsage:
    return sum((one.used for one in sums), TokenUsage())
