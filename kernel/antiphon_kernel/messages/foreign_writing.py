"""Conversations written in the shapes of OpenAI and Anthropic; reading gives the same again.

What a shape has no form for is written as our own content blocks; extra fields stand where they
stood.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import groupby
from typing import Any, Final

from antiphon_kernel.messages.foreign_conversations import (
    DATA_URLS,
    STATED_TYPE,
    ForeignMessageReader,
    ImportedMessage,
    without,
)
from antiphon_kernel.messages.message import (
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    MessageError,
    SystemMessage,
    Thinking,
    ToolMessage,
    ToolUse,
    UnknownBlock,
)
from antiphon_kernel.messages.normal_form import dump_block, dump_message
from antiphon_kernel.types.frozen_json import JsonObject, thaw
from antiphon_kernel.types.media_types import PLAIN_TEXT

_Json = dict[str, Any]

_INPUT: Final = "input"


class MessageShape(StrEnum):
    """Shape in which a conversation is written."""

    OPENAI = "openai"
    """Calls in `tool_calls`, each result a message of role tool, files as `data:` URLs."""
    ANTHROPIC = "anthropic"
    """Parts of type `tool_use` and `tool_result`, instructions of the system in `system`."""


def split_runs(
    messages: Iterable[ImportedMessage], shape: MessageShape
) -> Iterator[list[ImportedMessage]]:
    """Yield the messages that are written together: results in a row are one in Anthropic's."""
    joins = shape is MessageShape.ANTHROPIC
    for is_result, run in groupby(messages, lambda one: isinstance(one.message, ToolMessage)):
        if joins and is_result:
            yield list(run)
        else:
            yield from ([one] for one in run)


def write_system(one: ImportedMessage, shape: MessageShape, files: Mapping[str, bytes]) -> object:
    """Return the `system` field for a conversation's first message; None if it cannot be there."""
    is_whole = all(name.startswith("content[") for name in one.extra)
    if shape is not MessageShape.ANTHROPIC or not isinstance(one.message, SystemMessage):
        return None
    written = _write_anthropic(one, files)["content"] if is_whole else None
    said = {"role": "system", "content": written}
    return written if written is not None and _reads_as(said, [one]) else None


def write_run(
    run: Sequence[ImportedMessage], shape: MessageShape, files: Mapping[str, bytes]
) -> list[_Json]:
    """Return messages as JSON.

    Args:
        run: as `split_runs` yields it.
        files: bytes of the images and documents; what is not among them is named by its hash.
    """
    if shape is MessageShape.ANTHROPIC and isinstance(run[0].message, ToolMessage):
        written = [_write_anthropic(one, files) for one in run]
        results = [
            without(one, "role", "tool_call_id")
            | {"type": "tool_result", "tool_use_id": one["tool_call_id"]}
            for one in written
        ]
        together: _Json = {"role": "user", "content": results}
        if _reads_as(together, run):
            return [together]
    return [_write(one, shape, files) for one in run]


def _write(one: ImportedMessage, shape: MessageShape, files: Mapping[str, bytes]) -> _Json:
    """Write a message in the first form that reads as the same."""
    forms = (
        [_write_openai, _write_anthropic] if shape is MessageShape.OPENAI else [_write_anthropic]
    )
    in_own = _write_own(one, files), _write_own(one, {})
    written = [_write_raw(one), *(form(one, files) for form in forms), *in_own]
    found = (value for value in written if value is not None and _reads_as(value, [one]))
    # Extra fields that somebody has written by hand may be some of the message's own.
    return next(found, None) or _write_own(replace(one, extra=JsonObject()), files)


def _reads_as(value: _Json, run: Sequence[ImportedMessage]) -> bool:
    try:
        found = ForeignMessageReader().read(value)
    except MessageError:
        return False
    return found == [(one.message, one.extra) for one in run]


def _write_raw(one: ImportedMessage) -> _Json | None:
    """Return what was kept whole as an unknown block."""
    message = one.message
    if len(message.content) > 1 or not isinstance(raw := message.content[0], UnknownBlock):
        return None
    if isinstance(message, ToolMessage):
        fields = {"role": "tool", "tool_call_id": message.tool_call_id, **thaw(raw.raw)}
        return {**fields, **({"is_error": True} if message.is_error else {}), **thaw(one.extra)}
    kept: _Json = thaw(raw.raw)
    return kept if "role" in kept else None


def _write_own(one: ImportedMessage, files: Mapping[str, bytes]) -> _Json:
    """Write a message as our content blocks with the bytes of files, extra fields beside them."""
    rest, extras = _extras(one)
    content: list[_Json] = []
    for at, (block, more) in enumerate(zip(one.message.content, extras, strict=True)):
        if isinstance(block, ImageBlock | DocumentBlock) and block.hash in files:
            content.append(_part(block, more, files, _anthropic_file))
        else:
            content.append(dump_block(block))
            rest |= {f"content[{at}]": more} if more else {}
    return {**rest, **_frame(one), "content": content}


def _frame(one: ImportedMessage) -> _Json:
    message = one.message
    if isinstance(message, SystemMessage):
        return {"role": "developer" if one.extra.get("role") == "developer" else "system"}
    return without(dump_message(message), "content")


def _extras(one: ImportedMessage) -> tuple[_Json, list[_Json]]:
    """The extra fields of a message, and those of each of its content blocks."""
    rest: _Json = thaw(one.extra)
    parts: list[_Json] = []
    for at in range(len(one.message.content)):
        found = rest.get(f"content[{at}]")
        parts.append(rest.pop(f"content[{at}]") if isinstance(found, dict) else {})
    return rest, parts


def _write_openai(one: ImportedMessage, files: Mapping[str, bytes]) -> _Json:
    rest, extras = _extras(one)
    fields: _Json = {**rest, **_frame(one)}
    blocks = list(zip(one.message.content, extras, strict=True))
    if isinstance(blocks[0][0], Thinking) and blocks[0][0].signature is None and not extras[0]:
        fields["reasoning_content"] = blocks.pop(0)[0].text  # type: ignore[union-attr]
    said = [pair for pair in blocks if not isinstance(pair[0], ToolUse)]
    fields["content"] = _content([_part(block, more, files, _openai_file) for block, more in said])
    calls: list[_Json] = []
    for use, more in blocks:
        if not isinstance(use, ToolUse):
            continue
        parameters = thaw(use.parameters)
        if more.get("type") == "custom":
            called = {"name": use.name, _INPUT: parameters.get(_INPUT)}
            call: _Json = {"id": use.id, "custom": called}
        else:
            arguments = json.dumps(parameters, ensure_ascii=False)
            called = {"name": use.name, "arguments": arguments}
            call = {"id": use.id, "type": "function", "function": called}
        calls.append(_merge(call, more))
    if calls:
        fields["tool_calls"] = calls
    return fields


def _write_anthropic(one: ImportedMessage, files: Mapping[str, bytes]) -> _Json:
    rest, extras = _extras(one)
    parts = [
        _part(block, more, files, _anthropic_file)
        for block, more in zip(one.message.content, extras, strict=True)
    ]
    return {**rest, **_frame(one), "content": _content(parts)}


def _content(parts: list[_Json]) -> object:
    """The content of a message: a text alone as a string, nothing as null."""
    if len(parts) == 1 and parts[0].keys() == {"type", "text"} and parts[0]["type"] == "text":
        return parts[0]["text"]
    return parts or None


def _openai_file(block: ImageBlock | DocumentBlock, stated: str, data: bytes) -> _Json:
    kind = "image_url" if isinstance(block, ImageBlock) else "file"
    url = f"data:{stated};base64,{base64.b64encode(data).decode()}"
    return {"type": kind, kind: {DATA_URLS[kind]: url}}


def _anthropic_file(block: ImageBlock | DocumentBlock, stated: str, data: bytes) -> _Json:
    kind = "image" if isinstance(block, ImageBlock) else "document"
    is_text = block.media_type == PLAIN_TEXT
    said = data.decode() if is_text else base64.b64encode(data).decode()
    source = {"type": "text" if is_text else "base64", "media_type": stated, "data": said}
    return {"type": kind, "source": source}


def _part(
    block: ContentBlock,
    extra: _Json,
    files: Mapping[str, bytes],
    write_file: Callable[[ImageBlock | DocumentBlock, str, bytes], _Json],
) -> _Json:
    match block:
        case ImageBlock(media_type, digest) | DocumentBlock(media_type, digest) if digest in files:
            stated = extra.pop(STATED_TYPE, media_type)
            return _merge(write_file(block, stated, files[digest]), extra)
        case Thinking(text, signature):
            part: _Json = {"type": "thinking", "thinking": text}
            part |= {"signature": signature} if signature is not None else {}
            return _merge(part, extra)
        case ToolUse(call_id, name, parameters):
            use = {"type": "tool_use", "id": call_id, "name": name, "input": thaw(parameters)}
            return _merge(use, extra)
        case UnknownBlock(raw) if _is_kept(block):
            kept: _Json = thaw(raw)
            return kept
    return _merge(dump_block(block), extra)


def _is_kept(block: UnknownBlock) -> bool:
    """Whether an unknown block is read as one if it stands there as it came."""
    try:
        return ForeignMessageReader().read_part(block.raw) == (block, {})
    except MessageError:
        return False


def _merge(part: _Json, extra: Mapping[str, Any]) -> _Json:
    """Add fields to a part, also to the objects in it."""
    merged = dict(part)
    for name, value in extra.items():
        own = merged.get(name)
        if name not in merged:
            merged[name] = value
        elif isinstance(own, dict) and isinstance(value, dict):
            merged[name] = _merge(own, value)
    return merged
