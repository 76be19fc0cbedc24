"""The messages of one context, read from its blocks and kept up to date with them.

Every block that is finished and that models read is a message of one content block. Blocks of one
role and author that name the same `message` in their metadata and follow each other are one
message; so are a message and the files attached to it, and the results of one call. Drafts, blocks
that are being written, and blocks of the system are none.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, cast

from antiphon_kernel.contexts.commit_types import Applied
from antiphon_kernel.contexts.context import Context
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.rendering import render
from antiphon_kernel.layout import call_signature, valid_signature
from antiphon_kernel.messages import (
    AssistantMessage,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    InputBlock,
    MessageError,
    MessageRole,
    SystemMessage,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UserMessage,
    comparison_form,
    message_digest,
    parse_arguments,
    parse_block,
)
from antiphon_kernel.messages import Message as AnyMessage
from antiphon_kernel.types.block_metadata import SUMMARY_TYPE
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.frozen_json import JsonObject
from antiphon_kernel.types.media_types import is_media_type, is_sha256, is_text_type
from antiphon_kernel.types.records import BlockHeader

MESSAGE: Final = "message"
"""The key of a block's metadata that blocks of one message have in common."""
CONTENT_BLOCK: Final = "content_block"
"""The key of a block's metadata that holds content that is no text."""
NO_OUTPUT: Final = "(no output)"
"""The content of a result that has none."""

_MODEL_KINDS: Final = frozenset({BlockKind.THINKING, BlockKind.TOOL_CALL})
_SPOKEN_KINDS: Final = frozenset({BlockKind.TEXT, BlockKind.FILE})


@dataclass(frozen=True, slots=True)
class PathMessage:
    """One message of a context, and the blocks that it is made of."""

    message: AnyMessage
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
    blocks: list[str]
    content: list[ContentBlock]
    start: int
    end: int
    author: str = ""
    group: object = None
    call_id: str = ""
    is_error: bool = False


class MessagePath:
    """The messages of one open context, in order."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.messages: list[PathMessage] = []
        self._index: dict[str, int] = {}
        """The message of each block, by its number here."""
        self._places: dict[str, int] = {}
        """The place of each block as it was read."""
        self._calls: dict[str, str] = {}
        """The id of the tool use that each call is, by block."""
        self._callers: dict[str, str] = {}
        """The block of each tool use, by id."""
        self._answers: dict[str, int] = {}
        """The message that answers a tool use, by id."""
        self._changed_from: int | None = 0
        self._unsubscribe = context.applied.listen(self._note)

    def close(self) -> None:
        """Follow the context no longer."""
        self._unsubscribe()

    @property
    def is_current(self) -> bool:
        """Whether nothing has changed since the last refresh."""
        return self._changed_from is None

    def index(self, block: str) -> int | None:
        """Return the number of the message that a block is part of; None if it is of none."""
        return self._index.get(block)

    def call_index(self, call_id: str) -> int | None:
        """Return the number of the message that holds a tool use; None if there is none."""
        block = self._callers.get(call_id)
        return self._index.get(block) if block is not None else None

    def answer_index(self, call_id: str) -> int | None:
        """Return the number of the message that answers a tool use; None if there is none."""
        return self._answers.get(call_id)

    def call_block(self, call_id: str) -> str | None:
        """Return the block of a tool use."""
        return self._callers.get(call_id)

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
            if MESSAGE in document.header(last.blocks[-1]).metadata and self._end() < stop:
                return last.reach
        answered: list[int] = []
        for place in range(self._end(), stop):
            header = document.header(document.order.at(place))
            known = None
            if header.kind == BlockKind.TOOL_RESULT:
                known = self._answers.get(self._answered_call(header) or "")
            elif is_attached_file(header) and header.parent is not None:
                known = self._index.get(header.parent)
            if known is not None:
                answered.append(self.messages[known].reach)
        return min(answered, default=None)

    def _answered_call(self, header: BlockHeader) -> str | None:
        """The id of the tool use that a result answers."""
        if header.parent in self._calls:
            return self._calls[header.parent]
        return header.tool_call_id if header.tool_call_id in self._callers else None

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
            self._answers.pop(one.message.tool_call_id, None)
        for block in one.blocks:
            self._index.pop(block, None)
            call_id = self._calls.pop(block, None)
            if call_id is not None:
                self._callers.pop(call_id, None)

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
            if role is MessageRole.TOOL:
                self._read_result(block, header, place, first, entries)
                continue
            content = None if self._belongs_to_draft(header) else self._content(block, header)
            if content is None:
                continue
            last = entries[-1] if entries else None
            if last is not None and _continues(last, role, header):
                last.blocks.append(block)
                last.content.append(content)
                last.end = place
            else:
                group = header.metadata.get(MESSAGE)
                entries.append(_Entry(role, [block], [content], place, place, header.author, group))
            self._index[block] = first + len(entries) - 1
        self._finish(entries)

    def _read_result(
        self, block: str, header: BlockHeader, place: int, first: int, entries: list[_Entry]
    ) -> None:
        call_id = self._answered_call(header)
        if call_id is None:
            return
        known = self._answers.get(call_id)
        text = _text(self.context.document, block)
        content = stored_content(header) or _stored_file(header, text) or TextBlock(text)
        if known is not None:
            entry = entries[known - first]
            entry.blocks.append(block)
            entry.content.append(content)
            entry.end = place
            entry.is_error = entry.is_error or header.is_error
        else:
            entry = _Entry(MessageRole.TOOL, [block], [content], place, place, call_id=call_id)
            entry.is_error = header.is_error
            entries.append(entry)
            known = self._answers[call_id] = first + len(entries) - 1
        self._index[block] = known

    def _content(self, block: str, header: BlockHeader) -> ContentBlock | None:
        document = self.context.document
        if header.kind == BlockKind.TOOL_CALL:
            return self._call(block, header)
        text = _text(document, block)
        stored = stored_content(header) or _stored_file(header, text)
        if stored is not None:
            return stored
        if header.kind == BlockKind.THINKING:
            signature = valid_signature(text, header.metadata)
            return Thinking(text, signature) if text.strip() or signature is not None else None
        return TextBlock(text) if text.strip() else None

    def _belongs_to_draft(self, header: BlockHeader) -> bool:
        document, parent = self.context.document, header.parent
        if not is_attached_file(header) or parent is None or parent not in document:
            return False
        return not _is_finished(document.header(parent))

    def _call(self, block: str, header: BlockHeader) -> ToolUse:
        call_id = header.tool_call_id
        if not call_id or call_id.isspace() or call_id in self._callers:
            # What stands behind the context's id is the same in every fork.
            call_id = block.partition(".")[2]
            while call_id in self._callers:
                call_id += "+"
        self._calls[block], self._callers[call_id] = call_id, block
        name = header.tool_name
        if not name or name.isspace():
            name = header.tool_kind or "tool"
        parameters = _parameters(header, _text(self.context.document, block))
        return ToolUse(call_id, name, parameters, call_signature(header.metadata))

    def _finish(self, entries: Sequence[_Entry]) -> None:
        reach = self.messages[-1].reach if self.messages else -1
        for one in entries:
            reach = max(reach, one.end)
            message = _message(one)
            digest = message_digest(comparison_form(message) or message)
            self.messages.append(PathMessage(message, tuple(one.blocks), digest, one.start, reach))


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
    is_changed = is_text_type(kind) and digest not in map(_sha256, (data, BOM_UTF8 + data))
    return None if is_changed else DocumentBlock(kind, digest)


def _sha256(data: bytes) -> str:
    return sha256(data).hexdigest()


def _continues(last: _Entry, role: MessageRole, header: BlockHeader) -> bool:
    """Whether a block is part of the message before it: nobody adds to another's message."""
    if (last.role, last.author) != (role, header.author):
        return False
    group = header.metadata.get(MESSAGE)
    if group is not None and last.group == group:
        return True
    return is_attached_file(header) and header.parent in last.blocks


def _role(header: BlockHeader) -> MessageRole | None:
    """The role of the message that a block is part of; None if it is none whatever it says."""
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
    text = document.plain_text(block)
    return text if text is not None else render(document, block)


def _parameters(header: BlockHeader, text: str) -> JsonObject:
    if header.input is None:
        return JsonObject({"text": text}) if text.strip() else JsonObject()
    try:
        return parse_arguments("call", "tool", header.input)
    except MessageError:
        return JsonObject({"input": header.input})


def _message(entry: _Entry) -> AnyMessage:
    content = tuple(entry.content)
    if entry.role is MessageRole.ASSISTANT:
        return AssistantMessage(content)
    if entry.role is MessageRole.USER:
        return UserMessage(content)  # type: ignore[arg-type]
    kept = tuple(one for one in content if not _is_blank(one)) or (TextBlock(NO_OUTPUT),)
    return ToolMessage(kept, entry.call_id, entry.is_error)  # type: ignore[arg-type]


def _is_blank(block: ContentBlock) -> bool:
    return isinstance(block, TextBlock) and not block.text.strip()
