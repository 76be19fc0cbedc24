"""`context.request`: the request that a model would be sent now, in its provider's own form."""

from __future__ import annotations

import json
from typing import Any, Final

from pydantic import Field

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Call
from antiphon_kernel.layout import BlockAuthor, BlockPosition, item_text
from antiphon_kernel.messages import ModelWindow, clamp_max_tokens, dump_message
from antiphon_kernel.providers import RemoteProvider
from antiphon_kernel.registry import Params, Result, tool
from antiphon_kernel.tools.layout import READING, ReadingParams, read_for_model
from antiphon_kernel.turns.prompt_reading import PromptReader, ReadPrompt
from antiphon_kernel.turns.runner import find_runner
from antiphon_kernel.types.frozen_json import thaw
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.validation import check_limit

_MASK: Final = "…"


class RequestWindow(Params):
    """Most tokens that the model takes and gives."""

    input: int | None = Field(default=None, ge=1)
    """Of a request."""
    output: int | None = Field(default=None, ge=1)
    """Of an answer."""
    total: int | None = Field(default=None, ge=1)
    """Of both together."""
    separate: bool = False
    """Whether an answer does not count against the window of the input."""


class ContextRequestParams(ReadingParams):
    """A request that is not sent."""

    max_tokens: int | None = Field(default=None, ge=1)
    """Tokens that the answer may have; as many as the model gives if absent."""
    window: RequestWindow = Field(default_factory=RequestWindow)
    """Limits of the model; if absent its own, or those of a small one if they are not known."""


class ContextRequestResult(Result):
    """The messages that a model would be given now."""

    context_version: int
    model: str | None = None
    """Username of the model; absent if none has written yet."""
    payload: dict[str, Any] | None = None
    """Body of the request in the provider's own form, keys masked; absent of a model that plays
    recordings, and of one that is not configured here."""
    messages: list[dict[str, Any]]
    """Each with `role` (user, assistant, tool) and `content`, a list of content blocks."""
    cache_marks: list[BlockPosition]
    """In the order of the messages."""
    estimated_tokens: int
    """Of the messages; of a configured model of the whole request, corrected by what its provider
    has reported."""
    max_tokens: int
    """Tokens that are left for the answer, at least 1."""


@tool("context.request", needs=Permission.READ, errors=READING)
async def context_request(call: Call, params: ContextRequestParams) -> ContextRequestResult:
    """Show the request that a model would be sent, and send nothing.

    Its own blocks are messages of the assistant, results of its calls tool messages, everything
    else messages of the user. In a context of several models, name one.
    """
    runner = find_runner(call.kernel)
    if runner is not None and params.model in runner.names:
        await runner.principal(params.model)  # known by its name before it has written
    context, author, reading = await read_for_model(call, params)
    name, payload = author.name if author is not None else None, None
    window = ModelWindow(**params.window.model_dump(exclude_none=True))
    asked = await _reader(call, context, author)
    if asked is None:
        version, conversation = context.seq, reading.request()
        estimated = sum(reading.message_tokens())
    else:
        read = await asked.read()
        version, conversation, estimated = read.version, read.prompt.conversation, read.estimate
        name = call.kernel.members.find(asked.principal).username
        payload = await _payload(asked, read)
        if asked.model.config.window is not None and not params.window.model_fields_set:
            window = asked.model.config.window
    wanted = params.max_tokens if params.max_tokens is not None else window.output
    messages = [dump_message(message) for message in conversation.messages]
    size = sum([len(item_text(item, reading.reader)) for item in reading.items])
    what = f"The messages have {size} code points"
    check_limit(size, context.limits, "export_code_points", what, "exclude blocks")
    await context.wait_persisted()
    return ContextRequestResult(
        context_version=version,
        model=name,
        payload=payload,
        messages=messages,
        cache_marks=list(conversation.marks),
        estimated_tokens=estimated,
        max_tokens=clamp_max_tokens(wanted, window, estimated),
    )


async def _reader(call: Call, context: Context, author: BlockAuthor | None) -> PromptReader | None:
    """Return what a model, the default one if None, is asked with; None where no service is."""
    runner = find_runner(call.kernel)
    if runner is None:
        return None
    name = runner.default_model(context) if author is None else await runner.named(author.id)
    if name is None or name not in runner.models:
        return None
    model = await runner.models.open(name)
    if not isinstance(model.provider, RemoteProvider):
        return None
    return await runner.reader(context, model, (await runner.principal(name)).id)


async def _payload(asked: PromptReader, read: ReadPrompt) -> dict[str, Any]:
    """Return the body of the request, without a key, wherever one may stand in it."""
    provider, config = asked.model.provider, asked.model.config
    assert isinstance(provider, RemoteProvider)
    text = json.dumps(thaw(await provider.payload(read.prompt)), ensure_ascii=False)
    if config.key is not None and config.key.value:
        text = text.replace(json.dumps(config.key.value, ensure_ascii=False)[1:-1], _MASK)
    found: dict[str, Any] = json.loads(text)
    return found
