"""Messages of a context: read from its blocks, kept up to date with them, and written as blocks.

Every block that is finished and that models read is a message of one content block. Blocks of one
role and author that name the same `message` in their metadata and follow each other are one
message; so are a message and the files attached to it, the results of one call, and a drift with
what came with it. Drafts, blocks that are being written, and blocks of the system are none. A new
message is written in one transaction, one block for each content block.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final, cast

from antiphon_kernel.contexts.commit_types import Applied
from antiphon_kernel.contexts.context import Context
from antiphon_kernel.contexts.ordering import order_after, order_at_end
from antiphon_kernel.conversation.context_layout import layout_of
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.rendering import render
from antiphon_kernel.layout import (
    NO_OUTPUT,
    SIGNATURE,
    SIGNED_TEXT,
    call_signature,
    drift_text,
    signature_metadata,
    valid_signature,
)
from antiphon_kernel.limits import Limits
from antiphon_kernel.messages import (
    AssistantMessage,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    InputBlock,
    Message,
    MessageError,
    MessageRole,
    SystemMessage,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UnknownBlock,
    UserMessage,
    dump_block,
    message_digest,
    pages_metadata,
    parse_arguments,
    parse_block,
)
from antiphon_kernel.text.graphemes import common_ends
from antiphon_kernel.types.block_metadata import CALL_SIGNATURE, DRIFT, SUMMARY_TYPE
from antiphon_kernel.types.drift import drift_id, is_drifted
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.frozen_json import JsonObject, thaw
from antiphon_kernel.types.media_types import (
    PLAIN_TEXT,
    file_suffix,
    is_media_type,
    is_sha256,
    is_text_type,
    media_type_of,
)
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.validation import check_value, reject_long_text

MESSAGE: Final = "message"
"""The key of a block's metadata that blocks of one message have in common."""
CONTENT_BLOCK: Final = "content_block"
"""The key of a block's metadata that holds content that is no text."""

_MODEL_KINDS: Final = frozenset({BlockKind.THINKING, BlockKind.TOOL_CALL})
_SPOKEN_KINDS: Final = frozenset({BlockKind.TEXT, BlockKind.FILE})


@dataclass(frozen=True, slots=True)
class PathMessage:
    """One message of a context, and the blocks that it is made of."""

    message: Message
    blocks: tuple[str, ...]
    digest: bytes
    """Of what two messages that are the same have in common."""
    start: int
    """Place of its first block."""
    reach: int
    """The last place of a block of it, or of a message before it."""

    @property
    def id(self) -> str:
        """Its first block."""
        return self.blocks[0]


@dataclass(slots=True)
class _Entry:
    """A message while its blocks are read."""

    role: MessageRole
    start: int
    end: int
    author: str
    group: object
    call_id: str
    blocks: list[str] = field(default_factory=list)
    content: list[ContentBlock] = field(default_factory=list)
    is_error: bool = False


class MessagePath:
    """The messages of one open context, in order."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.messages: list[PathMessage] = []
        self.index: dict[str, int] = {}
        """The message that each block is part of, by its number here."""
        self.callers: dict[str, str] = {}
        """The block of each tool use, by id."""
        self.answers: dict[str, int] = {}
        """The message that answers a tool use, by id."""
        self._places: dict[str, int] = {}
        """The place of each block as it was read."""
        self._calls: dict[str, str] = {}
        """The id of the tool use that each call is, by block."""
        self._changed_from: int | None = 0
        self.close = context.applied.listen(self._note)
        """Follow the context no longer."""

    @property
    def is_current(self) -> bool:
        """Whether nothing has changed since the last refresh."""
        return self._changed_from is None

    def call_index(self, call_id: str) -> int | None:
        """Return the number of the message that holds a tool use; None if there is none."""
        return self.index.get(self.callers.get(call_id, ""))

    def is_followed(self) -> bool:
        """Return whether something is being written behind the last message."""
        document = self.context.document
        for place in range(self._end(), len(document)):
            header = document.header(document.order.at(place))
            is_open = header.status in (Status.PENDING, Status.RUNNING)
            if is_open and not header.is_draft and not header.excluded and _role(header):
                return True
        return False

    @property
    def unread(self) -> int:
        """How many blocks there are to be read, at least."""
        if self._changed_from is None:
            return 0
        return len(self.context.document) - self._changed_from

    def refresh(self, most: int | None = None) -> int:
        """Read what has changed; return how many messages at the beginning are what they were.

        Args:
            most: how many blocks are read, some more or less; the path is not current then, if
                there are others.
        """
        if self._changed_from is None:
            return len(self.messages)
        length = len(self.context.document)
        stop = length if most is None else min(length, self._changed_from + most)
        begin: int | None = self._changed_from
        while begin is not None:
            while self.messages and self.messages[-1].reach >= begin:
                self._forget(self.messages.pop())
            begin = self._continued_from(stop)
        self._changed_from = stop if stop < length else None
        first = len(self.messages)
        self._read(self._end(), stop)
        return first

    def _end(self) -> int:
        """The place behind the last message."""
        return self.messages[-1].reach + 1 if self.messages else 0

    def _continued_from(self, stop: int) -> int | None:
        """The place of the first message to which what is to be read now belongs; None if none.

        Args:
            stop: place behind the last block that is to be read.
        """
        document = self.context.document
        if self.messages and not isinstance(self.messages[-1].message, ToolMessage):
            last = self.messages[-1]
            metadata = document.header(last.blocks[-1]).metadata
            if (MESSAGE in metadata or DRIFT in metadata) and self._end() < stop:
                return last.reach
        answered: list[int] = []
        for place in range(self._end(), stop):
            header = document.header(document.order.at(place))
            known = None
            if _role(header) is MessageRole.TOOL:
                known = self.answers.get(self._answered_call(header) or "")
            elif is_attached_file(header) and header.parent is not None:
                known = self.index.get(header.parent)
            if known is not None:
                answered.append(self.messages[known].reach)
        return min(answered, default=None)

    def _answered_call(self, header: BlockHeader) -> str | None:
        """The id of the tool use that a result answers."""
        if header.parent in self._calls:
            return self._calls[header.parent]
        return header.tool_call_id if header.tool_call_id in self.callers else None

    def _note(self, applied: Applied) -> None:
        document = self.context.document
        for change in applied.changes:
            for block in change.touched:
                place = document.order.index(block)
                place = min(place, self._places.get(block, place))
                if self._changed_from is None or place < self._changed_from:
                    self._changed_from = place

    def _forget(self, one: PathMessage) -> None:
        if isinstance(one.message, ToolMessage):
            self.answers.pop(one.message.tool_call_id, None)
        for block in one.blocks:
            self.index.pop(block, None)
            call_id = self._calls.pop(block, None)
            if call_id is not None:
                self.callers.pop(call_id, None)

    def _read(self, begin: int, stop: int) -> None:
        document, first = self.context.document, len(self.messages)
        entries: list[_Entry] = []
        for place in range(begin, stop):
            block = document.order.at(place)
            self._places[block] = place
            header = document.header(block)
            role = _role(header)
            if role is None or header.excluded or header.ephemeral or not _is_finished(header):
                continue
            call_id, number = "", first + len(entries) - 1
            if role is MessageRole.TOOL:
                call_id = self._answered_call(header) or ""
                number = self.answers.get(call_id, first + len(entries))
                content = self._content(block, header) if call_id else None
            else:
                is_of_draft = (
                    is_attached_file(header)
                    and header.parent is not None
                    and header.parent in document
                    and not _is_finished(document.header(header.parent))
                )
                content = None if is_of_draft else self._content(block, header)
                if not entries or not _continues(entries[-1], role, header):
                    number += 1
            if content is None:
                continue
            if number == first + len(entries):
                group = drift_id(header.metadata) or header.metadata.get(MESSAGE)
                entries.append(_Entry(role, place, place, header.author, group, call_id))
                if call_id:
                    self.answers[call_id] = number
            entry = entries[number - first]
            entry.blocks.append(block)
            entry.content.append(content)
            entry.end = place
            entry.is_error = entry.is_error or header.is_error
            self.index[block] = number
        reach = self.messages[-1].reach if self.messages else -1
        for one in entries:
            reach = max(reach, one.end)
            message = _message(one)
            digest = message_digest(message)
            self.messages.append(PathMessage(message, tuple(one.blocks), digest, one.start, reach))

    def _content(self, block: str, header: BlockHeader) -> ContentBlock | None:
        is_drift = header.kind == BlockKind.DRIFT or is_drifted(header.metadata)
        if header.kind == BlockKind.TOOL_CALL and not is_drift:
            return self._call(block, header)
        text = _text(self.context.document, block)
        if (stored := stored_content(header) or _stored_file(header, text)) is not None:
            return stored
        if is_drift:
            return TextBlock(drift_text(layout_of(self.context).block(block)))
        if header.kind == BlockKind.THINKING:
            signature = valid_signature(text, header.metadata)
            return Thinking(text, signature) if text.strip() or signature is not None else None
        is_result = header.kind == BlockKind.TOOL_RESULT
        return TextBlock(text) if text.strip() or is_result else None

    def _call(self, block: str, header: BlockHeader) -> ToolUse:
        call_id = header.tool_call_id
        if not call_id or call_id.isspace() or call_id in self.callers:
            # What stands behind the context's id is the same in every fork.
            call_id = block.partition(".")[2]
            while call_id in self.callers:
                call_id += "+"
        self._calls[block], self.callers[call_id] = call_id, block
        name = header.tool_name
        if not name or name.isspace():
            name = header.tool_kind or "tool"
        text = _text(self.context.document, block)
        if header.input is None:
            parameters = JsonObject({"text": text}) if text.strip() else JsonObject()
        else:
            try:
                parameters = parse_arguments("call", "tool", header.input)
            except MessageError:
                parameters = JsonObject({"input": header.input})
        return ToolUse(call_id, name, parameters, call_signature(header.metadata))


def stored_content(header: BlockHeader) -> ContentBlock | None:
    """Return the content of a block that is no text; None if it is its text."""
    stored = header.metadata.get(CONTENT_BLOCK)
    if not isinstance(stored, dict):
        return None
    try:
        content = parse_block(stored)
    except MessageError:
        return None  # people write metadata as they like
    is_stored_as_text = isinstance(content, TextBlock | Thinking | ToolUse)
    return None if is_stored_as_text else content


@dataclass(frozen=True, slots=True)
class PlacedInstructions:
    """Instructions of the system, which are no message of the path, in their place."""

    message: SystemMessage
    id: str
    """Their first block."""
    start: int
    """Place of that block."""


def read_instructions(document: Document) -> list[PlacedInstructions]:
    """Return the instructions of the system that models read, in document order.

    Summaries of what was said are none.
    """
    found: list[tuple[list[str], list[InputBlock]]] = []
    before: tuple[object, str] | None = None
    for block in document.block_ids():
        header = document.header(block)
        is_said = header.role == Role.SYSTEM and header.kind in _SPOKEN_KINDS
        is_said = is_said and not is_drifted(header.metadata)
        if not is_said or header.excluded or header.ephemeral or not _is_finished(header):
            continue
        text = _text(document, block)
        content = stored_content(header) or _stored_file(header, text)
        if header.metadata.get("type") == SUMMARY_TYPE or not (content or text.strip()):
            continue
        group = header.metadata.get(MESSAGE)
        if group is None or before != (group, header.author):
            found.append(([], []))
        before = group, header.author
        found[-1][0].append(block)
        found[-1][1].append(cast(InputBlock, content) if content else TextBlock(text))
    return [
        PlacedInstructions(SystemMessage(tuple(each)), blocks[0], document.order.index(blocks[0]))
        for blocks, each in found
    ]


def is_attached_file(header: BlockHeader) -> bool:
    """Return whether a block is a file that is attached to a message."""
    return header.kind == BlockKind.FILE and header.role == Role.USER and header.blob is not None


def _stored_file(header: BlockHeader, text: str) -> ImageBlock | DocumentBlock | None:
    """The file that a block holds; None if it is none, or a text that reads otherwise by now."""
    kind, digest = header.media_type, header.blob
    if kind is None or digest is None or not (is_media_type(kind) and is_sha256(digest)):
        return None
    if kind.startswith("image/"):
        return ImageBlock(kind, digest)
    data = text.encode("utf-8", "surrogatepass")
    known = (sha256(one).hexdigest() for one in (data, BOM_UTF8 + data))
    return None if is_text_type(kind) and digest not in known else DocumentBlock(kind, digest)


def _continues(last: _Entry, role: MessageRole, header: BlockHeader) -> bool:
    """Whether a block is part of the message before it: nobody adds to another's message."""
    group = drift_id(header.metadata) or header.metadata.get(MESSAGE)
    if is_drifted(header.metadata):
        return last.group == group
    if (last.role, last.author) != (role, header.author):
        return False
    if group is not None and last.group == group:
        return True
    return is_attached_file(header) and header.parent in last.blocks


def _role(header: BlockHeader) -> MessageRole | None:
    """The role of the message that a block is part of; None if it is none whatever it says."""
    if header.kind == BlockKind.DRIFT or is_drifted(header.metadata):
        return MessageRole.USER
    if header.kind == BlockKind.TOOL_RESULT:
        return MessageRole.TOOL
    if header.kind in _MODEL_KINDS:
        return MessageRole.ASSISTANT
    if header.kind not in _SPOKEN_KINDS:
        return None
    if header.role == Role.USER:
        return MessageRole.USER
    return MessageRole.ASSISTANT if header.role == Role.MODEL else None


def _is_finished(header: BlockHeader) -> bool:
    return header.status in (Status.DONE, Status.ERROR)


def _text(document: Document, block: str) -> str:
    (text,) = document.plain_texts([block])
    return text if text is not None else render(document, block)


def _message(entry: _Entry) -> Message:
    content = tuple(entry.content)
    if entry.role is MessageRole.ASSISTANT:
        return AssistantMessage(content)
    if entry.role is MessageRole.USER:
        return UserMessage(content)  # type: ignore[arg-type]
    kept = [one for one in content if not isinstance(one, TextBlock) or one.text.strip()]
    said = tuple(kept) or (TextBlock(NO_OUTPUT),)
    return ToolMessage(said, entry.call_id, entry.is_error)  # type: ignore[arg-type]


_ROLES: Final = {
    MessageRole.USER: Role.USER,
    MessageRole.ASSISTANT: Role.MODEL,
    MessageRole.TOOL: Role.TOOL,
}

IMPORTED: Final = "imported"
"""Key of `metadata` of a message's first block: fields of another tool without a place in it."""

CONVERSATION: Final = "imported_conversation"
"""The same of a conversation's first block: fields of the conversation itself."""


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that messages name by the hash of its bytes."""

    size: int
    """In bytes."""
    text: str = ""
    """Content of a file that is text."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Metadata of the blocks that hold it."""

    @classmethod
    def of(cls, data: bytes) -> NewFile:
        """Return the file of these bytes."""
        is_text = media_type_of(data) == PLAIN_TEXT
        return cls(len(data), data.decode("utf-8-sig") if is_text else "", pages_metadata(data))


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to write."""

    message: Message | SystemMessage
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Further metadata of its first block."""
    names: Mapping[int, str] = field(default_factory=dict)
    """Names of files in it, by the index of their content block."""


@dataclass(slots=True)
class ConversationEnd:
    """End of a conversation, as far as messages that follow refer to it."""

    prompt: str | None = None
    """Block that the next answer of a model answers."""
    calls: dict[str, str] = field(default_factory=dict)
    """Block of each tool use, by id."""

    def pass_on(self, message: Message | SystemMessage, blocks: Sequence[str]) -> None:
        """Take in a message and its blocks."""
        if isinstance(message, UserMessage):
            self.prompt = blocks[0]
        for block, content in zip(blocks, message.content, strict=True):
            if isinstance(content, ToolUse):
                self.calls[content.id] = block


@dataclass(frozen=True, slots=True)
class MessageWriter:
    """Writer of messages into one document, on behalf of one principal; inside a transaction."""

    document: Document
    next_id: Callable[[], str]
    author: str
    created: str
    files: Mapping[str, NewFile] = field(default_factory=dict)
    """Images and documents that messages name, by hash."""

    def append(self, messages: Iterable[NewMessage], end: ConversationEnd) -> list[list[str]]:
        """Write messages at the end; return the blocks of each.

        Args:
            end: of the conversation before them; made to be that behind them.
        """
        written: list[list[str]] = []
        for new in messages:
            message = new.message
            parent = end.prompt if isinstance(message, AssistantMessage) else None
            if isinstance(message, ToolMessage):
                parent = end.calls.get(message.tool_call_id)
            written.append(self._write(new, parent, None, self.author))
            end.pass_on(message, written[-1])
        return written

    def _write(
        self, new: NewMessage, parent: str | None, after: str | None, author: str
    ) -> list[str]:
        """Write one message at the end, or behind a block; return its blocks."""
        message = new.message
        ids = [self.next_id() for _ in message.content]
        headers = message_headers(message, self.files)
        spoken = (BlockKind.TEXT, Role.USER)
        said = (at for at, one in enumerate(headers) if (one.kind, one.role) == spoken)
        prompt = next((ids[at] for at in said), None)
        for at, (block, header) in enumerate(zip(ids, headers, strict=True)):
            metadata = {**header.metadata, **(new.metadata if at == 0 else {})}
            if len(ids) > 1 and not isinstance(message, ToolMessage):
                metadata[MESSAGE] = group_of(ids[0])
            if isinstance(message, ToolMessage) and at < len(ids) - 1:
                metadata["more"] = True
            order = order_after(self.document, after) if after else order_at_end(self.document)
            made = header._replace(
                id=block,
                order=order,
                created=self.created,
                author=author,
                path=new.names.get(at, header.path),
                parent=prompt if is_attached_file(header) else parent,
                metadata=metadata,
            )
            self.document.create_block(made, self._text(message.content[at]))
            after = block if after else None
        return ids

    def _text(self, content: ContentBlock) -> str:
        if isinstance(content, ImageBlock | DocumentBlock):
            return self.files[content.hash].text
        return content_text(content)

    def change(self, blocks: Sequence[str], message: Message) -> None:
        """Give a message another content: texts keep what they have in common with it.

        Blocks that it has no content for any more are excluded.
        """
        document = self.document
        headers = message_headers(message, self.files)
        kept = count_kept(document, blocks, headers)
        for block, header, content in zip(blocks[:kept], headers, message.content, strict=False):
            self._change(block, header, content)
        for block in blocks[kept:]:
            document.set_fields(block, excluded=True)
        first, last = document.header(blocks[0]), blocks[max(kept - 1, 0)]
        made = list(blocks[:kept])
        if kept < len(headers):
            rest = replace(message, content=message.content[kept:])  # type: ignore[arg-type]
            made += self._write(NewMessage(rest), first.parent, last, first.author)
        if len(made) > 1 and not isinstance(message, ToolMessage):
            group = group_of(made[0])
            for block in made:
                metadata = document.header(block).metadata
                if metadata.get(MESSAGE) != group:
                    document.set_fields(block, metadata={**metadata, MESSAGE: group})

    def _change(self, block: str, header: BlockHeader, content: ContentBlock) -> None:
        document = self.document
        before = document.header(block)
        old, new = document.text(block), self._text(content)
        metadata = {
            name: value
            for name, value in before.metadata.items()
            if name not in (CONTENT_BLOCK, SIGNATURE, SIGNED_TEXT, CALL_SIGNATURE)
        }
        names = ["tool_name", "tool_call_id", "input"]
        if header.blob is not None:
            names += ["media_type", "blob", "blob_bytes"]
        fields: dict[str, Any] = {name: getattr(header, name) for name in names}
        fields["metadata"] = {**metadata, **header.metadata}
        stated = {name: value for name, value in fields.items() if value != getattr(before, name)}
        if stated:
            document.set_fields(block, **stated)
        if old != new:
            start, end = common_ends(old, new)
            removed, inserted = len(old) - start - end, new[start : len(new) - end]
            document.splice(block, start, removed, inserted)


def count_kept(document: Document, blocks: Sequence[str], headers: Iterable[BlockHeader]) -> int:
    """Return how many blocks a message keeps, from its first on, if it gets another content.

    Args:
        headers: those of the other content.
    """
    kept = 0
    for block, header in zip(blocks, headers, strict=False):
        if _content_kind(document.header(block)) != _content_kind(header):
            break
        kept += 1
    return kept


def _content_kind(header: BlockHeader) -> BlockKind | str:
    """The kind of a block; of a file that is read as its text, that of a text."""
    is_stored = header.blob is not None or stored_content(header) is not None
    is_text_file = header.kind == BlockKind.FILE and not is_stored
    return BlockKind.TEXT if is_text_file else header.kind


def group_of(block: str) -> str:
    """Return what blocks of one message have in common: the same in every fork."""
    return block.partition(".")[2]


def role_of(message: Message | SystemMessage) -> Role:
    """Return the role of the blocks of a message."""
    return Role.SYSTEM if isinstance(message, SystemMessage) else _ROLES[message.role]


def message_headers(
    message: Message | SystemMessage, files: Mapping[str, NewFile]
) -> list[BlockHeader]:
    """Return the header of each block of a message, without id, place and author.

    Args:
        files: images and documents in it, by hash.
    """
    return [_header(message, content, files) for content in message.content]


def content_text(content: ContentBlock) -> str:
    """Return the text of the block that holds a content block."""
    match content:
        case TextBlock(text) | Thinking(text, _):
            return text
        case ToolUse(parameters=parameters):
            return json.dumps(thaw(parameters), ensure_ascii=False) if parameters else ""
    return ""


def check_message(new: NewMessage, files: Mapping[str, NewFile], limits: Limits) -> None:
    """Refuse content that is too large for a block.

    Raises:
        AntiphonError: too_large or invalid_params.
    """
    check_value("metadata", dict(new.metadata), limits)
    for name in new.names.values():
        check_value("path", name, limits)
    message = new.message
    for content, header in zip(message.content, message_headers(message, files), strict=True):
        reject_long_text(limits, len(content_text(content)))
        for field_name in ("tool_name", "tool_call_id", "input", "metadata"):
            value = getattr(header, field_name)
            if value:
                check_value(field_name, value, limits)


def _header(
    message: Message | SystemMessage, content: ContentBlock, files: Mapping[str, NewFile]
) -> BlockHeader:
    header = BlockHeader("", BlockKind.TEXT, role_of(message), Status.DONE, "", "", "")
    match content:
        case ToolUse(call_id, name, parameters, signature):
            header = header._replace(
                kind=BlockKind.TOOL_CALL,
                tool_name=name,
                tool_call_id=call_id,
                input=json.dumps(thaw(parameters), ensure_ascii=False),
                metadata={} if signature is None else {CALL_SIGNATURE: signature},
            )
        case Thinking():
            signed = signature_metadata(content)
            header = header._replace(kind=BlockKind.THINKING, metadata=signed)
        case TextBlock():
            pass
        case ImageBlock(media_type, digest) | DocumentBlock(media_type, digest):
            name = "image" if isinstance(content, ImageBlock) else "document"
            header = header._replace(
                kind=BlockKind.FILE,
                path=name + file_suffix(media_type),
                media_type=media_type,
                blob=digest,
                blob_bytes=files[digest].size,
                metadata=dict(files[digest].metadata),
            )
        case UnknownBlock():
            stored = {CONTENT_BLOCK: dump_block(content)}
            header = header._replace(kind=BlockKind.FILE, metadata=stored)
    if isinstance(message, ToolMessage):
        header = header._replace(
            kind=BlockKind.TOOL_RESULT,
            tool_call_id=message.tool_call_id,
            is_error=message.is_error,
            path=None,
        )
    return header
