"""`model.list` and `model.check`: the models of a kernel, and whether they answer."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import Final

from antiphon_kernel.config import NO_MODEL, ConfigProblem
from antiphon_kernel.kernel import Call
from antiphon_kernel.layout import ModelRequest
from antiphon_kernel.messages import ModelWindow, TextBlock, UserMessage
from antiphon_kernel.providers import (
    End,
    ErrorKind,
    ModelConfig,
    ModelKind,
    ModelPrice,
    ModelPrompt,
    Provider,
    ProviderError,
    RoundRequest,
)
from antiphon_kernel.registry import Params, Result, tool
from antiphon_kernel.turns.model_tools import tools_of
from antiphon_kernel.turns.models import Models
from antiphon_kernel.turns.runner import runner_of
from antiphon_kernel.types.ids import ContextId
from antiphon_kernel.types.roles import AccessRole, Permission

CHECK_SECONDS: Final = 60.0
"""Time that a model has to begin its answer."""

_CHECK_TOKENS: Final = 16
"""Tokens of the answer: fewer than these are refused by some providers."""

_NO_CONTEXT: Final = ContextId("0" * 32)


class ModelListParams(Params):
    """Details of the list."""

    published: bool = True
    """Also say published windows and prices; the first time it takes a moment to read them."""


class ModelInfo(Result):
    """One model."""

    name: str
    """Name in messages, after `@`."""
    kind: ModelKind
    """Wire format that it is asked in; `scripted` for recordings."""
    model: str | None = None
    """The provider's own name of it."""
    default: bool
    """Whether it answers messages that name no model."""
    base_url: str | None = None
    """Address of the server, where it is not the provider's own; for owners."""
    key: str | None = None
    """Place that the key comes from; for owners. Absent where it has none."""
    window: ModelWindow | None = None
    """Limits in tokens, configured or published; absent where nobody knows."""
    price: ModelPrice | None = None
    """Price for a million tokens, configured or published; absent where nobody knows."""
    tools: list[str] | None = None
    """Names of the tools it may call, configured or for the size of its window; all if absent."""


class ModelListResult(Result):
    """Models of the kernel, in order."""

    models: list[ModelInfo]
    """One entry a model."""
    problems: list[ConfigProblem]
    """Entries of configuration files that are wrong; for owners."""
    advice: str | None = None
    """One line that says what to do where there is no model."""


@tool("model.list", needs=Permission.READ)
async def list_models(call: Call, params: ModelListParams) -> ModelListResult:
    """List the models that can be asked here, and what is wrong with their configuration."""
    models, is_owner = runner_of(call.kernel).models, call.role is AccessRole.OWNER
    await models.looked.wait()
    # What is published of them is read from a large library.
    get = partial(models.configured, published=params.published)
    found = await asyncio.to_thread(lambda: [get(name) for name in models])
    return ModelListResult(
        models=[_info(models, config, is_owner=is_owner) for config in found],
        problems=list(models.config.problems) if is_owner else [],
        advice=None if found else NO_MODEL,
    )


def _info(models: Models, config: ModelConfig, *, is_owner: bool) -> ModelInfo:
    is_named = config.kind is not ModelKind.SCRIPTED
    return ModelInfo(
        name=config.name,
        kind=config.kind,
        # A file on the kernel's host concerns nobody else.
        model=config.model if is_named and (is_owner or config.kind != ModelKind.LOCAL) else None,
        default=config.name == models.default,
        base_url=config.base_url if is_owner else None,
        key=config.key.source if is_owner and config.key is not None else None,
        window=config.window,
        price=config.price,
        tools=None if (names := tools_of(config)) is None else list(names),
    )


class ModelCheckParams(Params):
    """The model to ask."""

    model: str | None = None
    """Name; every model if absent."""


class CheckedModel(Result):
    """One model that was asked."""

    name: str
    """Name in messages, after `@`."""
    ok: bool
    """Whether it answered."""
    error: str | None = None
    """Reason why it did not, and what to do."""
    error_kind: ErrorKind | None = None
    """Kind of that error."""


class ModelCheckResult(Result):
    """Answers of models."""

    models: list[CheckedModel]
    """One entry a model, in order."""


@tool("model.check", needs=Permission.OWN)
async def check_models(call: Call, params: ModelCheckParams) -> ModelCheckResult:
    """Ask one model or each for a few tokens, and say whether it answers.

    Only the owner may: it costs what the provider takes for it. Recordings answer always.
    """
    models = runner_of(call.kernel).models
    await models.looked.wait()
    names = list(models) if params.model is None else [params.model]
    if params.model is not None:
        models.check_known(params.model)
    return ModelCheckResult(models=await asyncio.gather(*(_check(models, one) for one in names)))


async def _check(models: Models, name: str) -> CheckedModel:
    if models.configured(name, published=False).kind is ModelKind.SCRIPTED:
        return CheckedModel(name=name, ok=True)
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            failed = await _ask((await models.open(name)).provider)
    except TimeoutError:
        said = f"No answer after {CHECK_SECONDS:.0f} s: look at the server, or try again."
        failed = ProviderError(said, ErrorKind.UNREACHABLE)
    if failed is None:
        return CheckedModel(name=name, ok=True)
    return CheckedModel(name=name, ok=False, error=failed.message, error_kind=failed.kind)


async def _ask(provider: Provider) -> ProviderError | None:
    """Return the error that a short request fails with; None if it is answered."""
    question = ModelRequest((UserMessage((TextBlock("Say OK."),)),))
    request = RoundRequest(_NO_CONTEXT, 0, ModelPrompt(question, max_tokens=_CHECK_TOKENS))
    async with aclosing(provider.stream(request)) as events:
        async for event in events:
            match event:
                case ProviderError():
                    return event
                case End():
                    return None
    return ProviderError("The answer ended without a word: try again.", ErrorKind.OTHER)
