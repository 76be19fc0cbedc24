"""Writing messages as blocks: one block for each content block, in one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from antiphon_kernel.contexts.ordering import order_after, order_at_end
from antiphon_kernel.conversation.message_path import (
    CONTENT_BLOCK,
    MESSAGE,
    is_attached_file,
    stored_content,
)
from antiphon_kernel.document.document import Document
from antiphon_kernel.layout import SIGNATURE, SIGNED_TEXT, signature_metadata
from antiphon_kernel.limits import Limits
from antiphon_kernel.messages import (
    AssistantMessage,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    Message,
    MessageRole,
    SystemMessage,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UnknownBlock,
    UserMessage,
    dump_block,
    read_size,
    size_metadata,
)
from antiphon_kernel.text.graphemes import common_ends
from antiphon_kernel.types.block_metadata import CALL_SIGNATURE
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.frozen_json import thaw
from antiphon_kernel.types.media_types import PDF, PLAIN_TEXT, media_type_of
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.validation import check_value, reject_long_text

_ROLES: Final = {
    MessageRole.USER: Role.USER,
    MessageRole.ASSISTANT: Role.MODEL,
    MessageRole.TOOL: Role.TOOL,
}

IMPORTED: Final = "imported"
"""Key of `metadata` of a message's first block: fields of another tool without a place in it."""

CONVERSATION: Final = "imported_conversation"
"""The same of a conversation's first block: fields of the conversation itself."""

_SUFFIXES: Final = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    PDF: ".pdf",
}


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
        text = data.decode("utf-8-sig") if is_text else ""
        return cls(len(data), text, size_metadata(read_size(data)))


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
            written.append(self.write(message, parent, None, stated=new))
            end.pass_on(message, written[-1])
        return written

    def write(
        self,
        message: Message | SystemMessage,
        parent: str | None,
        after: str | None,
        *,
        stated: NewMessage | None = None,
        author: str | None = None,
    ) -> list[str]:
        """Write one message at the end, or behind a block; return its blocks.

        Args:
            stated: what is said of it besides.
            author: whose message it is; the writer's if absent.
        """
        ids = [self.next_id() for _ in message.content]
        headers = message_headers(message, self.files)
        said = (one for one, header in zip(ids, headers, strict=True) if _is_spoken(header))
        prompt = next(said, None)
        for at, (block, header) in enumerate(zip(ids, headers, strict=True)):
            metadata = dict(header.metadata)
            if stated is not None:
                header = header._replace(path=stated.names.get(at, header.path))
                metadata |= stated.metadata if at == 0 else {}
            if len(ids) > 1 and not isinstance(message, ToolMessage):
                metadata[MESSAGE] = group_of(ids[0])
            if isinstance(message, ToolMessage) and at < len(ids) - 1:
                metadata["more"] = True
            order = order_after(self.document, after) if after else order_at_end(self.document)
            made = header._replace(
                id=block,
                order=order,
                created=self.created,
                author=author or self.author,
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
            made += self.write(rest, first.parent, last, author=first.author)
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
        fields: dict[str, Any] = {
            "tool_name": header.tool_name,
            "tool_call_id": header.tool_call_id,
            "input": header.input,
            "metadata": {**metadata, **header.metadata},
        }
        if header.blob is not None:
            fields |= {"media_type": header.media_type, "blob": header.blob}
            fields |= {"blob_bytes": header.blob_bytes}
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


def _is_spoken(header: BlockHeader) -> bool:
    return header.kind == BlockKind.TEXT and header.role == Role.USER


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
                path=name + _SUFFIXES.get(media_type, ".txt"),
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
