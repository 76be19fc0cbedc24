"""Writing messages as blocks: one block for each content block, in one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final

from antiphon_kernel.contexts.message_path import CONTENT_BLOCK, MESSAGE, stored_content
from antiphon_kernel.contexts.ordering import order_after, order_at_end
from antiphon_kernel.document.document import Document
from antiphon_kernel.layout import SIGNATURE, SIGNED_TEXT, signature_metadata
from antiphon_kernel.limits import Limits
from antiphon_kernel.messages import (
    ContentBlock,
    Message,
    MessageRole,
    SystemMessage,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UserMessage,
    dump_block,
)
from antiphon_kernel.text.graphemes import common_ends
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.frozen_json import thaw
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.validation import check_value, reject_long_text

_ROLES: Final = {
    MessageRole.USER: Role.USER,
    MessageRole.ASSISTANT: Role.MODEL,
    MessageRole.TOOL: Role.TOOL,
}


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to write, with what stands around it and is no message."""

    message: Message
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Further metadata of its first block."""
    before: tuple[SystemMessage, ...] = ()
    """Instructions in front of it."""
    behind: tuple[SystemMessage, ...] = ()
    """Instructions behind it."""


@dataclass(frozen=True, slots=True)
class MessageWriter:
    """Writer of messages into one document, on behalf of one principal; inside a transaction."""

    document: Document
    next_id: Callable[[], str]
    author: str
    created: str

    def append(
        self, messages: Iterable[NewMessage], prompt: str | None, calls: dict[str, str]
    ) -> None:
        """Write messages at the end.

        Args:
            prompt: the block that the next answer of a model answers.
            calls: the block of each tool use that is not answered, by id.
        """
        calls = dict(calls)
        for new in messages:
            message = new.message
            parent = prompt if message.role is MessageRole.ASSISTANT else None
            if isinstance(message, ToolMessage):
                parent = calls.get(message.tool_call_id)
            self._instruct(new.before)
            ids = self.write(message, parent, None, new.metadata)
            self._instruct(new.behind)
            if message.role is MessageRole.USER:
                prompt = ids[0]
            for block, content in zip(ids, message.content, strict=True):
                if isinstance(content, ToolUse):
                    calls[content.id] = block

    def _instruct(self, messages: Iterable[SystemMessage]) -> None:
        for content in chain.from_iterable(one.content for one in messages):
            header = replace(
                _header(UserMessage((content,)), content),
                id=self.next_id(),
                role=Role.SYSTEM,
                order=order_at_end(self.document),
                created=self.created,
                author=self.author,
            )
            self.document.create_block(header, content_text(content))

    def write(
        self,
        message: Message,
        parent: str | None,
        after: str | None,
        stated: Mapping[str, Any] | None = None,
    ) -> list[str]:
        """Write one message at the end, or behind a block; return its blocks.

        Args:
            stated: what the metadata of the first block says besides.
        """
        ids = [self.next_id() for _ in message.content]
        for at, (block, header) in enumerate(zip(ids, message_headers(message), strict=True)):
            metadata = {**header.metadata, **((stated or {}) if at == 0 else {})}
            if len(ids) > 1 and message.role is not MessageRole.TOOL:
                metadata[MESSAGE] = group_of(ids[0])
            if message.role is MessageRole.TOOL and at < len(ids) - 1:
                metadata["more"] = True
            order = order_after(self.document, after) if after else order_at_end(self.document)
            made = replace(
                header,
                id=block,
                order=order,
                created=self.created,
                author=self.author,
                parent=parent,
                metadata=metadata,
            )
            self.document.create_block(made, content_text(message.content[at]))
            after = block if after else None
        return ids

    def change(self, blocks: Sequence[str], message: Message) -> None:
        """Give a message another content: texts keep what they have in common with it.

        Blocks that it has no content for any more are excluded.
        """
        document = self.document
        headers, kept = message_headers(message), count_kept(document, blocks, message)
        for block, header, content in zip(blocks[:kept], headers, message.content, strict=False):
            self._change(block, header, content)
        for block in blocks[kept:]:
            document.set_fields(block, excluded=True)
        parent, last = document.header(blocks[0]).parent, blocks[max(kept - 1, 0)]
        made = list(blocks[:kept])
        if kept < len(headers):
            rest = replace(message, content=message.content[kept:])  # type: ignore[arg-type]
            made += self.write(rest, parent, last)
        if len(made) > 1 and message.role is not MessageRole.TOOL:
            group = group_of(made[0])
            for block in made:
                metadata = document.header(block).metadata
                if metadata.get(MESSAGE) != group:
                    document.set_fields(block, metadata={**metadata, MESSAGE: group})

    def _change(self, block: str, header: BlockHeader, content: ContentBlock) -> None:
        document = self.document
        before = document.header(block)
        old, new = document.text(block), content_text(content)
        metadata = {
            name: value
            for name, value in before.metadata.items()
            if name not in (CONTENT_BLOCK, SIGNATURE, SIGNED_TEXT)
        }
        fields: dict[str, Any] = {
            "tool_name": header.tool_name,
            "tool_call_id": header.tool_call_id,
            "input": header.input,
            "metadata": metadata | header.metadata,
        }
        stated = {name: value for name, value in fields.items() if value != getattr(before, name)}
        if stated:
            document.set_fields(block, **stated)
        if old != new:
            start, end = common_ends(old, new)
            removed, inserted = len(old) - start - end, new[start : len(new) - end]
            document.splice(block, start, removed, inserted)


def count_kept(document: Document, blocks: Sequence[str], message: Message) -> int:
    """Return how many blocks a message keeps, from its first on, if it gets another content."""
    kept = 0
    for block, header in zip(blocks, message_headers(message), strict=False):
        if _content_kind(document.header(block)) != _content_kind(header):
            break
        kept += 1
    return kept


def _content_kind(header: BlockHeader) -> BlockKind | str:
    """The kind of a block; of a file that is read as its text, that of a text."""
    is_text_file = header.kind == BlockKind.FILE and stored_content(header) is None
    return BlockKind.TEXT if is_text_file else header.kind


def group_of(block: str) -> str:
    """Return what blocks of one message have in common: the same in every fork."""
    return block.partition(".")[2]


def role_of(message: Message) -> Role:
    """Return the role of the blocks of a message."""
    return _ROLES[message.role]


def message_headers(message: Message) -> list[BlockHeader]:
    """Return the header of each block of a message, without id, place and author."""
    return [_header(message, content) for content in message.content]


def content_text(content: ContentBlock) -> str:
    """Return the text of the block that holds a content block."""
    match content:
        case TextBlock(text) | Thinking(text, _):
            return text
        case ToolUse(_, _, parameters):
            return json.dumps(thaw(parameters), ensure_ascii=False) if parameters else ""
    return ""


def check_message(new: NewMessage, limits: Limits) -> None:
    """Refuse content that is too large for a block.

    Raises:
        AntiphonError: too_large or invalid_params.
    """
    message = new.message
    check_value("metadata", dict(new.metadata), limits)
    around = chain.from_iterable(one.content for one in (*new.before, *new.behind))
    for content in (*message.content, *around):
        reject_long_text(limits, len(content_text(content)))
        header = _header(message, content)
        for name in ("tool_name", "tool_call_id", "input", "metadata"):
            value = getattr(header, name)
            if value:
                check_value(name, value, limits)


def _header(message: Message, content: ContentBlock) -> BlockHeader:
    header = BlockHeader("", BlockKind.TEXT, role_of(message), Status.DONE, "", "", "")
    match content:
        case ToolUse(call_id, name, parameters):
            header = replace(
                header,
                kind=BlockKind.TOOL_CALL,
                tool_name=name,
                tool_call_id=call_id,
                input=json.dumps(thaw(parameters), ensure_ascii=False),
            )
        case Thinking():
            signed = signature_metadata(content)
            header = replace(header, kind=BlockKind.THINKING, metadata=signed)
        case TextBlock():
            pass
        case _:
            stored = {CONTENT_BLOCK: dump_block(content)}
            header = replace(header, kind=BlockKind.FILE, metadata=stored)
    if isinstance(message, ToolMessage):
        header = replace(
            header,
            kind=BlockKind.TOOL_RESULT,
            tool_call_id=message.tool_call_id,
            is_error=message.is_error,
        )
    return header
