"""Conversations in the shapes of OpenAI and Anthropic, as JSON or as one JSON document a line.

A conversation is a list of messages, or an object with `messages` (and `system`). A file holds
one, a list of them, or one a line; or one message a line. The types of parts say whose shape it is,
so one reader takes all of them. Nothing is lost: a part without a content block of its own is kept
whole as an unknown one, a field without a place as an extra.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from antiphon_kernel.messages.correlation import PathCorrelation
from antiphon_kernel.messages.errors import (
    CorrelationError,
    MessageError,
    MessageProblem,
    unexpected,
)
from antiphon_kernel.messages.message import (
    AssistantMessage,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    InputBlock,
    Message,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UnknownBlock,
    UserMessage,
    is_blank,
    require_visible,
)
from antiphon_kernel.messages.normal_form import (
    freeze_object,
    parse_arguments,
    parse_block,
    require_fields,
    require_list,
)
from antiphon_kernel.types.frozen_json import JsonObject
from antiphon_kernel.types.json_validation import read_json, unique_names
from antiphon_kernel.types.media_types import is_of_type, media_type_of
from antiphon_kernel.types.quoting import join_names, quote

STATED_TYPE: Final = "media_type"
"""Extra field of a file: the media type that was stated of it, if that is not what it is."""

Fields: TypeAlias = Mapping[str, Any]

Part: TypeAlias = tuple[ContentBlock, dict[str, Any]]
"""A content block, and the fields that have no place in it."""

_DATA_URL: Final = re.compile(r"data:([^,]*);base64,(.*)", re.DOTALL)
DATA_URLS: Final = {"image_url": "url", "file": "file_data"}
"""Field in which the URL stands, in the object of each of these parts."""
_ROLES: Final = ("system", "developer", "user", "assistant", "tool", "function")
_BYTE_ORDER_MARK: Final = "\ufeff"
_THINKING_FIELDS: Final = ("reasoning_content", "reasoning")


@dataclass(frozen=True, slots=True)
class SystemMessage:
    """Instructions of the system, which are no message of the conversation itself."""

    content: tuple[InputBlock, ...]


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """One message, with what the other tool has said of it."""

    message: Message | SystemMessage
    parent: int | None
    """Index of the message that it follows; None for the first one of a conversation."""
    extra: JsonObject = field(default_factory=JsonObject)
    """Fields that have no place in the message; those of a content block by its path."""


@dataclass(frozen=True, slots=True)
class ImportedConversation:
    """A conversation, or a tree of conversations with one beginning."""

    messages: tuple[ImportedMessage, ...]
    """Each one behind its parent."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Images and documents by the hash that their blocks have."""
    extra: JsonObject = field(default_factory=JsonObject)
    """Fields of the conversation beside its messages: model, tools, title."""


_Read: TypeAlias = tuple[Message | SystemMessage, JsonObject]
"""A message, and the fields that have no place in it."""


def read_conversations(text: str) -> tuple[ImportedConversation, ...]:
    """Read a file of conversations.

    Raises:
        MessageError: with the conversation, message and field of what cannot be read.
    """
    found = _read_documents(text.removeprefix(_BYTE_ORDER_MARK))
    if all(isinstance(one, dict) and "role" in one for one in found):
        return (_read_list(found, JsonObject(), None),)
    conversations: list[ImportedConversation] = []
    for number, value in enumerate(found):
        with MessageError.located(path=f"conversations[{number}]" if len(found) > 1 else ""):
            conversations.append(_read_conversation(value))
    return tuple(conversations)


def _read_documents(text: str) -> list[Any]:
    """The items of the list that a file is, or its lines."""
    try:
        value = read_json(text, pairs=unique_names)
    except ValueError as error:
        lines = [line for line in enumerate(text.split("\n")) if not is_blank(line[1])]
        if len(lines) < 2:
            raise _no_json("", error) from error
        return [_read_line(number, line) for number, line in lines]
    if not isinstance(value, list):
        return [value]
    if value and all(isinstance(one, dict) and "messages" in one for one in value):
        return value
    return [value]


def _read_line(number: int, line: str) -> Any:
    try:
        return read_json(line, pairs=unique_names)
    except ValueError as error:
        raise _no_json(f"line {number + 1}", error) from error


def _no_json(path: str, error: ValueError) -> MessageError:
    return MessageError(
        MessageProblem.INVALID_VALUE,
        f"this is not JSON: {error}. Give a JSON document, or one a line.",
        path=path,
    )


def _read_conversation(value: object) -> ImportedConversation:
    if isinstance(value, list):
        return _read_list(value, JsonObject(), None)
    fields = require_fields(value, "")
    messages = require_list(fields.get("messages"), "messages")
    extra = freeze_object(without(fields, "messages", "system"), "")
    return _read_list(messages, extra, fields.get("system"))


def _read_list(values: Sequence[object], extra: JsonObject, system: object) -> ImportedConversation:
    reader = ForeignMessageReader()
    correlation = PathCorrelation()
    read: list[ImportedMessage] = []
    if system is not None:
        with MessageError.located(path="system"):
            read = chain_messages(reader.read({"role": "system", "content": system}), None, 0)
    for index, value in enumerate(values):
        with MessageError.located(index=index):
            found = reader.read(value)
            for message, _ in found:
                if not isinstance(message, SystemMessage):
                    correlation.add(message)
        read += chain_messages(found, len(read) - 1 if read else None, len(read))
    return ImportedConversation(tuple(read), reader.files, extra)


def chain_messages(
    messages: Iterable[_Read], parent: int | None, first: int
) -> list[ImportedMessage]:
    """Make each message follow the one before it, and the first one `parent`.

    Args:
        first: index that the first one gets.
    """
    chained: list[ImportedMessage] = []
    for index, (message, extra) in enumerate(messages, first):
        chained.append(ImportedMessage(message, parent, extra))
        parent = index
    return chained


@dataclass(slots=True)
class _PartialMessage:
    """Content of a message that is being read, with the fields that have no place in it."""

    blocks: list[ContentBlock] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    def read(self, items: Iterable[object], name: str, read: Callable[[object], Part]) -> None:
        """Add what each item of the field of this name is read as."""
        for at, item in enumerate(items):
            with MessageError.located(path=f"{name}[{at}]"):
                self.add(read(item))

    def add(self, part: Part) -> None:
        block, extra = part
        if isinstance(block, TextBlock) and is_blank(block.text):
            if not extra:
                return
            block, extra = keep_whole({"type": "text", "text": block.text, **extra}), {}
        if extra:
            self.extra[f"content[{len(self.blocks)}]"] = extra
        self.blocks.append(block)


class ForeignMessageReader:
    """Reads the messages of one conversation, in order."""

    def __init__(self) -> None:
        self._parts = PartReader()
        self._function_calls: list[ToolUse] = []
        """Those of the form without ids that have no result yet."""
        self._made_ids = 0

    @property
    def files(self) -> dict[str, bytes]:
        return self._parts.files

    def read(self, value: object) -> list[_Read]:
        """Return the messages that one of another shape is, with the extra fields of each.

        Raises:
            MessageError: with the path of what cannot be read.
        """
        fields = require_fields(value, "")
        role = fields.get("role")
        if role not in _ROLES:
            expected = f"a role of {join_names(_ROLES)}"
            raise unexpected(expected, role, "role", MessageProblem.UNKNOWN_ROLE)
        if role == "tool":
            return [self._read_result(fields, "tool_call_id")]
        if role == "function":
            return [self._read_function_result(fields)]
        found, extra = (
            self._read_assistant(fields) if role == "assistant" else self._read_input(fields)
        )
        if not found:
            found, extra = [_made(str(role), _PartialMessage([keep_whole(fields)]))], {}
        message, own = found[0]
        return [(message, freeze_object({**extra, **own}, "")), *found[1:]]

    def _read_assistant(self, fields: Fields) -> tuple[list[_Read], dict[str, Any]]:
        extra = without(fields, "role", "content", "tool_calls", "function_call")
        draft = _PartialMessage()
        for name in _THINKING_FIELDS:
            if isinstance(text := extra.get(name), str):
                if not is_blank(text):
                    draft.blocks.append(Thinking(text))
                del extra[name]
        draft.read(_as_parts(fields), "content", self._parts.read)
        calls = fields.get("tool_calls")
        listed = require_list([] if calls is None else calls, "tool_calls")
        draft.read(listed, "tool_calls", self._parts.read_call)
        if fields.get("function_call") is not None:
            with MessageError.located(path="function_call"):
                draft.add(self._read_function_call(require_fields(fields["function_call"], "")))
        return ([_made("assistant", draft)] if draft.blocks else []), extra

    def _read_input(self, fields: Fields) -> tuple[list[_Read], dict[str, Any]]:
        role = str(fields["role"])
        found: list[_Read] = []
        draft = _PartialMessage()
        for at, part in enumerate(_as_parts(fields)):
            with MessageError.located(path=f"content[{at}]"):
                if role == "user" and isinstance(part, dict) and part.get("type") == "tool_result":
                    if draft.blocks:
                        found.append(_made(role, draft))
                        draft = _PartialMessage()
                    found.append(self._read_result(part, "tool_use_id"))
                else:
                    draft.add(self._read_input_part(part))
        if draft.blocks:
            found.append(_made(role, draft))
        return found, without(fields, "role", "content")

    def _read_input_part(self, part: object) -> Part:
        block, extra = self._parts.read(part)
        if isinstance(block, ToolUse | Thinking):
            return keep_whole(require_fields(part, "")), {}
        return block, extra

    def _read_result(self, fields: Fields, id_field: str) -> _Read:
        """Read a message of role tool, or a part of type tool_result."""
        call_id = fields.get(id_field)
        require_visible(call_id, id_field, MessageProblem.BLANK_TOOL_CALL_ID)
        extra = without(fields, "role", "type", "content", id_field)
        return self._finish_result(fields, str(call_id), extra)

    def _read_function_call(self, fields: Fields) -> Part:
        name = fields.get("name")
        require_visible(name, "name", MessageProblem.BLANK_TOOL_NAME)
        self._made_ids += 1
        call_id = f"function_call_{self._made_ids}"
        arguments = parse_arguments(call_id, str(name), fields.get("arguments"))
        use = ToolUse(call_id, str(name), arguments)
        self._function_calls.append(use)
        return use, without(fields, "name", "arguments")

    def _read_function_result(self, fields: Fields) -> _Read:
        name = fields.get("name")
        use = next((one for one in self._function_calls if one.name == name), None)
        if use is None:
            raise CorrelationError(
                MessageProblem.NO_SUCH_CALL,
                f"no function call before it is of {quote(name)} and without a result",
                path="name",
                call_id=str(name),
            )
        self._function_calls.remove(use)
        return self._finish_result(fields, use.id, without(fields, "role", "content", "name"))

    def _finish_result(self, fields: Fields, call_id: str, extra: dict[str, Any]) -> _Read:
        draft = _PartialMessage()
        draft.read(_as_parts(fields), "content", self._read_input_part)
        if not draft.blocks:
            draft.blocks.append(keep_whole({"content": fields.get("content")}))
        is_error = extra.pop("is_error") if isinstance(extra.get("is_error"), bool) else False
        content = cast(tuple[InputBlock, ...], tuple(draft.blocks))
        message = ToolMessage(content, call_id, is_error)
        return message, freeze_object({**extra, **draft.extra}, "")


def _as_parts(fields: Fields) -> Sequence[object]:
    content = fields.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return require_list([] if content is None else content, "content")


def _made(role: str, draft: _PartialMessage) -> _Read:
    extra = freeze_object(draft.extra, "")
    if role == "assistant":
        return AssistantMessage(tuple(draft.blocks)), extra
    content = cast(tuple[InputBlock, ...], tuple(draft.blocks))
    if role == "user":
        return UserMessage(content), extra
    return SystemMessage(content), freeze_object(
        draft.extra | ({} if role == "system" else {"role": role}), ""
    )


class PartReader:
    """Reads parts, and collects the bytes of images and documents in them."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def read(self, value: object) -> Part:
        """Read a part.

        Raises:
            MessageError: if it is none, with the path of what is wrong.
        """
        fields = require_fields(value, "")
        read = _READERS.get(fields.get("type", ""))
        found = read(self, fields) if read else None
        if found:
            return found
        if fields.get("type") in _OWN and not (fields.keys() & _FOREIGN_FIELDS):
            return parse_block(fields), {}
        return keep_whole(fields), {}

    def read_call(self, value: object) -> Part:
        """Read an item of `tool_calls`: of a function, or of a tool that takes a text.

        Raises:
            MessageError: if it is none, with the path of what is wrong.
        """
        fields = require_fields(value, "")
        kind = "custom" if fields.get("type") == "custom" else "function"
        given = "input" if kind == "custom" else "arguments"
        called = require_fields(fields.get(kind), kind)
        require_visible(fields.get("id"), "id", MessageProblem.BLANK_CALL_ID)
        with MessageError.located(path=kind):
            require_visible(called.get("name"), "name", MessageProblem.BLANK_TOOL_NAME)
            call_id, name, arguments = fields["id"], called["name"], called.get(given)
            if kind == "custom":
                arguments = {given: arguments}
            use = ToolUse(call_id, name, parse_arguments(call_id, name, arguments))
        rest = without(called, "name", given)
        extra = without(fields, "id", kind) | ({kind: rest} if rest else {})
        return use, without(extra, "type") if extra.get("type") == "function" else extra

    def read_text(self, fields: Fields) -> Part:
        return TextBlock(fields.get("text")), without(fields, "type", "text")  # type: ignore[arg-type]

    def read_tool_use(self, fields: Fields) -> Part:
        call_id, name = fields.get("id"), fields.get("name")
        require_visible(call_id, "id", MessageProblem.BLANK_CALL_ID)
        require_visible(name, "name", MessageProblem.BLANK_TOOL_NAME)
        parameters = parse_arguments(str(call_id), str(name), fields.get("input"))
        return ToolUse(str(call_id), str(name), parameters), without(
            fields, "type", "id", "name", "input"
        )

    def read_thinking(self, fields: Fields) -> Part | None:
        if "thinking" not in fields:
            return None
        block = Thinking(fields["thinking"], fields.get("signature"))
        return block, without(fields, "type", "thinking", "signature")

    def read_data_url(self, fields: Fields) -> Part | None:
        kind = fields["type"]
        name, file = DATA_URLS[kind], fields.get(kind)
        if not isinstance(file, Mapping) or not (data := _DATA_URL.fullmatch(_text(file, name))):
            return None
        rest = without(file, name)
        extra = without(fields, "type", kind) | ({kind: rest} if rest else {})
        return self._keep(data[1], data[2], extra)

    def read_source(self, fields: Fields) -> Part | None:
        source = fields.get("source")
        if not isinstance(source, Mapping) or source.keys() != {"type", "media_type", "data"}:
            return None
        data, media_type = _text(source, "data"), _text(source, "media_type")
        if source["type"] == "text":
            data = base64.b64encode(data.encode("utf-8", "surrogatepass")).decode()
        elif source["type"] != "base64":
            return None
        return self._keep(media_type, data, without(fields, "type", "source"))

    def _keep(self, stated: str, data: str, extra: dict[str, Any]) -> Part | None:
        """Make a part of a file's bytes, of the type that they have.

        None if they cannot be read, or are of no type that can be attached.
        """
        try:
            content = base64.b64decode(data, validate=True)
        except ValueError:
            return None
        found = media_type_of(content) if content else None
        if found is None:
            return None
        wanted = stated.partition(";")[0].strip().lower()
        media_type = wanted if is_of_type(content, wanted) else found
        digest = hashlib.sha256(content).hexdigest()
        self.files[digest] = content
        made = ImageBlock if media_type.startswith("image/") else DocumentBlock
        if media_type != stated:
            extra = {STATED_TYPE: stated, **extra}
        return made(media_type, digest), extra


_READERS: Final[Mapping[str, Callable[[PartReader, Fields], Part | None]]] = {
    "text": PartReader.read_text,
    "input_text": PartReader.read_text,
    "output_text": PartReader.read_text,
    "tool_use": PartReader.read_tool_use,
    "thinking": PartReader.read_thinking,
    **dict.fromkeys(DATA_URLS, PartReader.read_data_url),
    "image": PartReader.read_source,
    "document": PartReader.read_source,
}
_OWN: Final = frozenset({"tool-use", "thinking", "image", "document", "unknown"})
_FOREIGN_FIELDS: Final = frozenset({"source"})


def without(fields: Fields, *names: str) -> dict[str, Any]:
    """Return all fields but these."""
    return {name: value for name, value in fields.items() if name not in names}


def keep_whole(fields: Fields) -> UnknownBlock:
    """Keep a JSON object that has no content block of its own.

    Raises:
        MessageError: if something in it has no place in JSON.
    """
    return UnknownBlock(freeze_object(fields, ""))


def _text(fields: Fields, name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""
