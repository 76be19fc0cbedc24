"""Normal form of messages: read from content blocks or the legacy form, written as content blocks.

The legacy form has a string or null as content, and calls beside it in `tool_calls`. Its text
comes first, then the calls, in order. Blank text is dropped, all other text is kept to the
character; everything else is kept or refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from antiphon_kernel.messages.message import (
    AssistantMessage,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    InputBlock,
    Message,
    MessageError,
    MessageProblem,
    MessageRole,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UnknownBlock,
    UserMessage,
    is_blank,
    require_visible,
    unexpected,
)
from antiphon_kernel.types.frozen_json import JsonObject, thaw
from antiphon_kernel.types.json_validation import read_json, unique_names
from antiphon_kernel.types.quoting import join_names, quote, truncate

_Fields = Mapping[str, Any]

_MESSAGE_FIELDS: Final = frozenset({"role", "content", "tool_calls"})
_TOOL_MESSAGE_FIELDS: Final = _MESSAGE_FIELDS | {"tool_call_id", "is_error"}
_ROLES: Final[Mapping[str, MessageRole]] = {str(role): role for role in MessageRole}
_JSON_TYPES: Final = {list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
_CALL_FIELDS: Final = frozenset({"id", "type", "function"})


def normalize_messages(values: object) -> tuple[Message, ...]:
    """Return the normal form of every message of a list.

    Raises:
        MessageError: with the index of the first message that has none, and what is wrong in it.
    """
    normalized: list[Message] = []
    for index, value in enumerate(require_list(values, "")):
        with MessageError.located(index=index):
            normalized.append(normalize_message(value))
    return tuple(normalized)


def normalize_message(value: object) -> Message:
    """Return the normal form of a message.

    Args:
        value: a JSON object of either form.

    Raises:
        MessageError: if it has none, with the path of what is wrong.
    """
    fields = require_fields(value, "")
    said = fields.get("role")
    role = _ROLES.get(said) if isinstance(said, str) else None
    if role is None:
        raise MessageError(
            MessageProblem.UNKNOWN_ROLE,
            f"expected a role of {join_names(MessageRole)}, found {quote(said)}."
            " Instructions of the system are no message of the conversation: send them apart.",
            path="role",
            allowed=[str(role) for role in MessageRole],
        )
    allowed = _TOOL_MESSAGE_FIELDS if role is MessageRole.TOOL else _MESSAGE_FIELDS
    _refuse_other_fields(fields, allowed, f"a message of role {role}")
    call_id: Any = fields.get("tool_call_id")
    if role is MessageRole.TOOL:
        require_visible(call_id, "tool_call_id", MessageProblem.BLANK_TOOL_CALL_ID)
    content = _read_content(fields, role)
    calls = fields.get("tool_calls")
    for at, item in enumerate(require_list(() if calls is None else calls, "tool_calls")):
        with MessageError.located(path=f"tool_calls[{at}]"):
            content.append(call := _read_call(item))
            if role is not MessageRole.ASSISTANT:
                raise _not_allowed(role, call, "")
    if not content:
        raise MessageError(
            MessageProblem.NO_CONTENT,
            f"a message of role {role} has content that is not blank, and none is left of this one",
            path="content",
        )
    if role is MessageRole.USER:
        return UserMessage(cast(tuple[InputBlock, ...], tuple(content)))
    if role is MessageRole.ASSISTANT:
        return AssistantMessage(tuple(content))
    is_error = fields.get("is_error", False)
    if not isinstance(is_error, bool):
        raise unexpected("true or false", is_error, "is_error")
    return ToolMessage(cast(tuple[InputBlock, ...], tuple(content)), call_id, is_error)


def dump_message(message: Message) -> dict[str, Any]:
    """Return a message as JSON, always as content blocks."""
    written: dict[str, Any] = {
        "role": str(message.role),
        "content": [dump_block(block) for block in message.content],
    }
    if isinstance(message, ToolMessage):
        written["tool_call_id"] = message.tool_call_id
        if message.is_error:
            written["is_error"] = True
    return written


_BLOCK_TYPES: Final[Mapping[str, tuple[type[ContentBlock], str]]] = {
    "text": (TextBlock, "a text block"),
    "tool-use": (ToolUse, "a tool use"),
    "thinking": (Thinking, "a thinking block"),
    "image": (ImageBlock, "a block of type image"),
    "document": (DocumentBlock, "a block of type document"),
    "unknown": (UnknownBlock, "an unknown block"),
}
"""The `type` of a content block in JSON; its other fields bear the names that they have here."""
_TYPE_OF: Final = {made: kind for kind, (made, _) in _BLOCK_TYPES.items()}


def dump_block(block: ContentBlock) -> dict[str, Any]:
    """Return a content block as JSON."""
    written: dict[str, Any] = {"type": _TYPE_OF[type(block)]}
    for name in block.__match_args__:
        if (value := getattr(block, name)) is not None:
            written[name] = thaw(value)
    return written


def parse_block(value: object) -> ContentBlock:
    """Read a content block; one of a type that is not ours is kept whole as an unknown one.

    Raises:
        MessageError: if it is none, with the path of what is wrong.
    """
    fields = require_fields(value, "")
    kind = fields.get("type")
    if kind == "unknown" and fields.keys() == {"type", "raw"}:
        if isinstance(fields["raw"], Mapping):
            return UnknownBlock(freeze_object(fields["raw"], "raw"))
    elif isinstance(kind, str) and kind != "unknown" and kind in _BLOCK_TYPES:
        made, what = _BLOCK_TYPES[kind]
        _refuse_other_fields(fields, {"type", *made.__match_args__}, what)
        given: dict[str, Any] = {name: fields.get(name) for name in made.__match_args__}
        if made is ToolUse:
            call = make_call(given["id"], given["name"], given["parameters"])
            return replace(call, signature=given["signature"])
        return made(**given)
    require_visible(kind, "type", MessageProblem.INVALID_VALUE)
    return UnknownBlock(freeze_object(fields, ""))


def parse_arguments(call_id: str, name: str, raw: object) -> JsonObject:
    """Read the arguments of a call: a JSON object or the text of one, none for blank text.

    Raises:
        MessageError: invalid_arguments, if they are something else.
    """
    if raw is None or (isinstance(raw, str) and is_blank(raw)):
        return JsonObject()
    try:
        value = read_json(raw, pairs=unique_names) if isinstance(raw, str) else raw
        if not isinstance(value, Mapping):
            raise ValueError(f"that is {_JSON_TYPES.get(type(value), 'a number')}")
        return JsonObject(value)
    except (ValueError, RecursionError) as error:
        text = raw if isinstance(raw, str) else _as_text(raw)
        raise MessageError(
            MessageProblem.INVALID_ARGUMENTS,
            f"the arguments of the call {quote(call_id)} of {quote(name)} must be a JSON object,"
            f" and are {quote(text)}: {_json_problem(error)}. Send an object, {{}} for none.",
            path="arguments",
            call=truncate(call_id),
            tool=truncate(name),
            found=truncate(text),
        ) from error


def freeze_object(value: Mapping[str, Any], path: str) -> JsonObject:
    """Freeze a JSON object.

    Raises:
        MessageError: if something in it has no place in JSON.
    """
    try:
        return JsonObject(value)
    except (ValueError, RecursionError) as error:
        raise MessageError(MessageProblem.INVALID_VALUE, _json_problem(error), path=path) from error


def _json_problem(error: ValueError | RecursionError) -> str:
    return "it is nested too deep" if isinstance(error, RecursionError) else str(error)


def require_list(value: object, path: str) -> Sequence[object]:
    """Return the list that a value is.

    Raises:
        MessageError: if it is something else.
    """
    if isinstance(value, list | tuple):
        return value
    raise unexpected("a list", value, path)


def require_fields(value: object, path: str) -> _Fields:
    """Return the JSON object that a value is.

    Raises:
        MessageError: if it is something else.
    """
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return value
    raise unexpected("a JSON object", value, path)


def _read_content(fields: _Fields, role: MessageRole) -> list[ContentBlock]:
    content = fields.get("content")
    if content is None:
        return []
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    elif not isinstance(content, list | tuple):
        raise unexpected("a string, null or a list of content blocks", content, "content")
    blocks: list[ContentBlock] = []
    for at, item in enumerate(content):
        with MessageError.located(path=f"content[{at}]"):
            blocks.append(parse_block(item))
    for at, block in enumerate(blocks):
        if role is not MessageRole.ASSISTANT and isinstance(block, ToolUse | Thinking):
            raise _not_allowed(role, block, f"content[{at}]")
    return [one for one in blocks if not isinstance(one, TextBlock) or not is_blank(one.text)]


def _read_call(value: object) -> ToolUse:
    fields = require_fields(value, "")
    _refuse_other_fields(fields, _CALL_FIELDS, "a tool call")
    if fields.get("type", "function") != "function":
        raise unexpected("the type function", fields["type"], "type")
    function = require_fields(fields.get("function"), "function")
    with MessageError.located(path="function"):
        _refuse_other_fields(function, {"name", "arguments"}, "a function call")
    require_visible(fields.get("id"), "id", MessageProblem.BLANK_CALL_ID)
    with MessageError.located(path="function"):
        return make_call(fields["id"], function.get("name"), function.get("arguments"))


def make_call(call_id: Any, name: Any, arguments: object) -> ToolUse:
    """Return a call.

    Raises:
        MessageError: with the path of what is wrong: `id`, `name` or `arguments`.
    """
    require_visible(call_id, "id", MessageProblem.BLANK_CALL_ID)
    require_visible(name, "name", MessageProblem.BLANK_TOOL_NAME)
    return ToolUse(call_id, name, parse_arguments(call_id, name, arguments))


def _refuse_other_fields(fields: _Fields, allowed: set[str] | frozenset[str], what: str) -> None:
    if not allowed.issuperset(fields):
        other = sorted(fields.keys() - allowed)
        raise MessageError(
            MessageProblem.UNKNOWN_FIELD,
            f"{what} has the fields {join_names(sorted(allowed))}, not {join_names(other)}",
            path=other[0],
            allowed=sorted(allowed),
        )


def _not_allowed(role: MessageRole, block: ContentBlock, path: str) -> MessageError:
    return MessageError(
        MessageProblem.BLOCK_NOT_ALLOWED,
        f"only messages of role {MessageRole.ASSISTANT} hold {quote(block)}; this one is of role"
        f" {role}",
        path=path,
    )


def _as_text(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)
