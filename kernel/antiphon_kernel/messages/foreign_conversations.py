"""Conversations of other tools: in the shapes of OpenAI and Anthropic, and of loom.

A conversation is a list of messages, or an object with `messages` (and `system`). A file holds
one, a list of them, or one a line; or one message a line. The types of parts say whose shape it is,
so one reader takes all of them. Nothing is lost: a part without a content block of its own is kept
whole as an unknown one, a field without a place as an extra.

Loom has a folder with `roots.json` and one JSON file for each node of a tree. A root has an id and
the system prompt, a node its message and the id of its parent; the file of the node `root-1/node-2`
is `root-1/nodes/node-2.json`. Messages are of our form or the legacy one.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from antiphon_kernel.messages.message import (
    AssistantMessage,
    ContentBlock,
    CorrelationError,
    DocumentBlock,
    ImageBlock,
    InputBlock,
    Message,
    MessageError,
    MessageProblem,
    PathCorrelation,
    SystemMessage,
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
from antiphon_kernel.messages.normal_form import (
    freeze_object,
    make_call,
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
            if isinstance(value, list):
                conversations.append(_read_list(value, JsonObject(), None))
                continue
            fields = require_fields(value, "")
            messages = require_list(fields.get("messages"), "messages")
            extra = freeze_object(without(fields, "messages", "system"), "")
            conversations.append(_read_list(messages, extra, fields.get("system")))
    return tuple(conversations)


def _read_documents(text: str) -> list[Any]:
    """The items of the list that a file is, or its lines."""
    try:
        value = read_json(text, pairs=unique_names)
    except ValueError as error:
        lines = [line for line in enumerate(text.split("\n")) if not is_blank(line[1])]
        if len(lines) < 2:
            raise _no_json("", error) from error
        found: list[Any] = []
        for number, line in lines:
            try:
                found.append(read_json(line, pairs=unique_names))
            except ValueError as wrong:
                raise _no_json(f"line {number + 1}", wrong) from wrong
        return found
    if not isinstance(value, list):
        return [value]
    if value and all(isinstance(one, dict) and "messages" in one for one in value):
        return value
    return [value]


def _no_json(path: str, error: ValueError) -> MessageError:
    return _invalid(f"this is not JSON: {error}. Give a JSON document, or one a line.", path)


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
        self.files: dict[str, bytes] = {}
        """Images and documents in them, by hash."""
        self._function_calls: list[ToolUse] = []
        """Those of the form without ids that have no result yet."""
        self._made_ids = 0

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
        draft.read(_as_parts(fields), "content", self.read_part)
        calls = fields.get("tool_calls")
        listed = require_list([] if calls is None else calls, "tool_calls")
        draft.read(listed, "tool_calls", _read_call)
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
        block, extra = self.read_part(part)
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
        self._made_ids += 1
        call_id = f"function_call_{self._made_ids}"
        use = make_call(call_id, fields.get("name"), fields.get("arguments"))
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

    def read_part(self, value: object) -> Part:
        """Read a part.

        Raises:
            MessageError: if it is none, with the path of what is wrong.
        """
        fields = require_fields(value, "")
        found: Part | None = None
        match fields.get("type"):
            case "text" | "input_text" | "output_text":
                text = fields.get("text")
                return TextBlock(text), without(fields, "type", "text")  # type: ignore[arg-type]
            case "tool_use":
                use = make_call(fields.get("id"), fields.get("name"), fields.get("input"))
                return use, without(fields, "type", "id", "name", "input")
            case "thinking" if "thinking" in fields:
                block = Thinking(fields["thinking"], fields.get("signature"))
                return block, without(fields, "type", "thinking", "signature")
            case "image_url" | "file" as kind:
                found = self._read_data_url(fields, kind)
            case "image" | "document":
                found = self._read_source(fields)
        if found is not None:
            return found
        if fields.get("type") in _OWN and "source" not in fields:
            return parse_block(fields), {}
        return keep_whole(fields), {}

    def _read_data_url(self, fields: Fields, kind: str) -> Part | None:
        name, file = DATA_URLS[kind], fields.get(kind)
        if not isinstance(file, Mapping) or not (data := _DATA_URL.fullmatch(_text(file, name))):
            return None
        rest = without(file, name)
        extra = without(fields, "type", kind) | ({kind: rest} if rest else {})
        return self._keep(data[1], data[2], extra)

    def _read_source(self, fields: Fields) -> Part | None:
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


def _read_call(value: object) -> Part:
    """Read an item of `tool_calls`: of a function, or of a tool that takes a text."""
    fields = require_fields(value, "")
    kind = "custom" if fields.get("type") == "custom" else "function"
    given = "input" if kind == "custom" else "arguments"
    called = require_fields(fields.get(kind), kind)
    require_visible(fields.get("id"), "id", MessageProblem.BLANK_CALL_ID)
    with MessageError.located(path=kind):
        arguments = called.get(given)
        if kind == "custom":
            arguments = {given: arguments}
        use = make_call(fields["id"], called.get("name"), arguments)
    rest = without(called, "name", given)
    extra = without(fields, "id", kind) | ({kind: rest} if rest else {})
    return use, without(extra, "type") if extra.get("type") == "function" else extra


_OWN: Final = frozenset({"tool-use", "thinking", "image", "document", "unknown"})


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


ROOTS_FILE: Final = "roots.json"

_STRUCTURE: Final = ("child_ids", "parent_id", "root_id")
"""Fields of which the tree is made."""


def read_loom(files: Mapping[str, str]) -> tuple[ImportedConversation, ...]:
    """Read the conversations of a folder, one for each root, as trees.

    Args:
        files: text of `roots.json` and of every node's file, by the path in the folder.

    Raises:
        MessageError: with the file and field of what cannot be read, also if a node descends from
            no root.
    """
    if ROOTS_FILE not in files:
        raise _invalid(f"expected the file {ROOTS_FILE}, found {join_names(files)}", ROOTS_FILE)
    roots: dict[str, Fields] = {}
    with MessageError.located(path=ROOTS_FILE):
        for at, value in enumerate(require_list(_parse(files[ROOTS_FILE]), "")):
            with MessageError.located(path=f"[{at}]"):
                _add_by_id(require_fields(value, ""), roots)
    folder = _Folder({path: text for path, text in files.items() if path != ROOTS_FILE})
    conversations = tuple(folder.read_tree(root) for root in roots.values())
    if folder.rest:
        path, _ = next(iter(folder.rest.values()))
        raise _invalid(
            f"expected nodes that descend from a root, found {join_names(folder.rest)}, which do"
            " not; give the whole folder",
            path,
        )
    return conversations


class _Folder:
    """Nodes of a folder, which are taken out as the trees are read."""

    def __init__(self, files: Mapping[str, str]) -> None:
        nodes: dict[str, Fields] = {}
        self.rest: dict[str, tuple[str, Fields]] = {}
        """The path of each node's file, and what it holds."""
        self._children: dict[str, list[str]] = {}
        for path, text in files.items():
            with MessageError.located(path=path):
                fields = require_fields(_parse(text), "")
                node_id = _add_by_id(fields, nodes)
                self.rest[node_id] = path, fields
                self._children.setdefault(_read_id(fields, "parent_id"), []).append(node_id)

    def read_tree(self, root: Fields) -> ImportedConversation:
        """Read the messages below a root, each one behind its parent."""
        reader = ForeignMessageReader()
        correlation = PathCorrelation()
        read: list[ImportedMessage] = []
        told, config = without(root, *_STRUCTURE, "config"), root.get("config")
        if isinstance(config, Mapping) and config.get("systemPrompt"):
            with MessageError.located(path=f"{ROOTS_FILE}.{root['id']}.config.systemPrompt"):
                prompt = {"role": "system", "content": config["systemPrompt"]}
                read = chain_messages(reader.read(prompt), None, 0)
            config = without(config, "systemPrompt")
        path: list[int] = []
        """Indices of the messages from the root to the last one that was read."""
        waiting = self._below(root, len(read) - 1 if read else None)
        while waiting:
            node_id, parent = waiting.pop()
            file, node = self.rest.pop(node_id)
            while path and path[-1] != parent:
                correlation.remove_last(read[path.pop()].message)
            with MessageError.located(path=file):
                with MessageError.located(path="message"):
                    (message, extra), *rest = reader.read(node.get("message"))
                own = freeze_object({**extra, **without(node, *_STRUCTURE, "message")}, "")
                found = chain_messages([(message, own), *rest], parent, len(read))
                for one in found:
                    correlation.add(one.message)
            path += range(len(read), len(read) + len(found))
            read += found
            waiting += self._below(node, path[-1])
        told |= {"config": config} if config else {}
        return ImportedConversation(tuple(read), reader.files, freeze_object(told, ROOTS_FILE))

    def _below(self, parent: Fields, index: int | None) -> list[tuple[str, int | None]]:
        """The children in reverse of the order in which their parent lists them."""
        listed = parent.get("child_ids")
        places = {str(one): at for at, one in enumerate(listed if isinstance(listed, list) else [])}
        found = self._children.get(parent["id"], [])
        found = sorted(found, key=lambda one: (places.get(one, len(places)), one), reverse=True)
        return [(one, index) for one in found]


def _add_by_id(fields: Fields, found: dict[str, Fields]) -> str:
    own = _read_id(fields, "id")
    if own in found:
        raise _invalid(f"another one has the id {quote(own)} too", "id")
    found[own] = fields
    return own


def _read_id(fields: Fields, name: str) -> str:
    value = fields.get(name)
    if isinstance(value, str) and value:
        return value
    raise _invalid(f"expected the id of a node, found {quote(value)}", name)


def _parse(text: str) -> Any:
    try:
        return read_json(text, pairs=unique_names)
    except ValueError as error:
        raise _invalid(f"this is not JSON: {error}", "") from error


def _invalid(reason: str, path: str) -> MessageError:
    return MessageError(MessageProblem.INVALID_VALUE, reason, path=path)
