"""List of messages that one model is given of a layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from itertools import chain
from typing import Final

from antiphon_kernel.layout.arrange import ItemType, LayoutBlock, LayoutItem
from antiphon_kernel.layout.text_forms import LayoutReader, item_text, shortened, tool_name
from antiphon_kernel.messages import (
    AssistantMessage,
    DocumentBlock,
    FileSize,
    ImageBlock,
    InputBlock,
    Message,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UserMessage,
    estimate_block,
    stated_size,
)
from antiphon_kernel.types.block_metadata import CALL_SIGNATURE
from antiphon_kernel.types.constants import INTERRUPTED
from antiphon_kernel.types.media_types import is_text_type

SIGNATURE: Final = "signature"
"""Key of `metadata` of a thinking block: what the provider signed it with."""

SIGNED_TEXT: Final = "signed_sha256"
"""Key of `metadata` of a thinking block: the SHA-256 of the text that was signed."""

ROUND: Final = "round"
"""Key of `metadata` of a call: in which round of its turn the model made it, with others or not."""

STILL_RUNNING: Final = "(still running)"
CANCELLED: Final = "(cancelled)"
NO_OUTPUT: Final = "(no output)"


@dataclass(frozen=True, slots=True)
class BlockPosition:
    """Position of a content block in a list of messages."""

    message: int
    """Index of the message."""
    block: int
    """Index in its content."""


_position: Final = lru_cache(1_024)(BlockPosition)
"""Most turns have the same few positions: as one object, each."""


@dataclass(frozen=True, slots=True)
class ModelView:
    """Messages that a model is given, valid by construction."""

    messages: tuple[Message, ...]
    ends: tuple[BlockPosition | None, ...]
    """For each item, the last content block up to its end that may be marked for the cache."""


def model_view(items: Sequence[LayoutItem], reader: LayoutReader) -> ModelView:
    """Return the messages for a model, the same for the same items.

    Its own blocks are messages of the assistant. Calls that it made in one round are one message,
    directly followed by one message for the results of each. Everything else is a message of the
    user, in the form of the text stream.

    Args:
        items: of a layout that parts no call from its results (see `visible`).
    """
    building = _Messages()
    ends: list[BlockPosition | None] = []
    results: dict[str, list[LayoutItem]] = {}
    for item in items:
        if item.type is ItemType.TOOL_RESULT and item.round is not None:
            results.setdefault(item.round, []).append(item)
    for item in items:
        match item.type:
            case ItemType.NOTES | ItemType.ASSISTANT_COMPLETION if reader.wrote(item.block):
                building.say(TextBlock(item.block.text))
            case ItemType.THINKING if reader.wrote(item.block):
                text = item.block.text
                if (signature := valid_signature(text, item.block.metadata)) is not None:
                    building.say(Thinking(text, signature))
            case ItemType.THINKING if not item.block.text.strip():
                pass
            case ItemType.TOOL_CALL if reader.wrote(item.block) and item.round is not None:
                building.call(item, results.get(item.round, ()))
            case ItemType.TOOL_RESULT if item.round in building.answers:
                building.end = building.answers[item.round]
            case _:
                if text := item_text(item, reader):
                    building.hear(TextBlock(text))
                if (file := attached_file(item.block)) is not None:
                    building.hear(file)
        ends.append(building.end)
    building.close()
    return ModelView(tuple(building.messages), tuple(ends))


def join_views(
    views: Iterable[ModelView],
) -> tuple[tuple[Message, ...], tuple[tuple[int, int], ...]]:
    """Return the messages of the turns of a layout as one list, and where each turn begins in it.

    That is the index of a message and of a block in it: the last message of a turn and the first
    one of the next are one if they are of one side.
    """
    messages: list[Message] = []
    starts: list[tuple[int, int]] = []
    last: list[Message] = []
    """The last message, in the pieces that the turns have of it."""
    blocks = 0
    for view in views:
        first = view.messages[0] if view.messages else None
        if first is not None and last and type(first) is not type(last[0]):
            messages.append(last[0] if len(last) == 1 else _joined(last))
            last, blocks = [], 0
        starts.append((len(messages), blocks))
        if first is None:
            continue
        last.append(first)
        blocks += len(first.content)
        if len(view.messages) > 1:
            messages.append(first if len(last) == 1 else _joined(last))
            messages.extend(view.messages[1:-1])
            last, blocks = [view.messages[-1]], len(view.messages[-1].content)
    if last:
        messages.append(_joined(last))
    return tuple(messages), tuple(starts)


def _joined(pieces: Sequence[Message]) -> Message:
    """Return messages of people, or of the model, as one."""
    if len(pieces) == 1:
        return pieces[0]
    content = chain.from_iterable(one.content for one in pieces)
    if isinstance(pieces[0], AssistantMessage):
        return AssistantMessage(tuple(content))
    return UserMessage(tuple(block for block in content if isinstance(block, InputBlock)))


def signature_metadata(thinking: Thinking) -> dict[str, object]:
    """Return what the metadata of a thinking block says about its signature."""
    if thinking.signature is None:
        return {}
    return {SIGNATURE: thinking.signature, SIGNED_TEXT: _digest(thinking.text)}


def valid_signature(text: str, metadata: Mapping[str, object]) -> str | None:
    """Return the signature of a thinking block; None if there is none of this very text."""
    signature = metadata.get(SIGNATURE)
    is_unchanged = _digest(text) == metadata.get(SIGNED_TEXT)
    return signature if isinstance(signature, str) and is_unchanged else None


def call_signature(metadata: Mapping[str, object]) -> str | None:
    """Return the signature of a call."""
    signature = metadata.get(CALL_SIGNATURE)
    return signature if isinstance(signature, str) else None


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def attached_file(block: LayoutBlock) -> ImageBlock | DocumentBlock | None:
    """Return the image or document that was attached with a block; None of a text."""
    kind, digest = block.media_type, block.blob
    if kind is None or digest is None or is_text_type(kind):
        return None
    content = ImageBlock if kind.startswith("image/") else DocumentBlock
    return content(kind, digest)


def file_tokens(item: LayoutItem) -> int:
    """Estimate the tokens of the image or document of an item."""
    file = attached_file(item.block) if item.is_block else None
    return estimate_block(file, file_sizes((item,))) if file is not None else 0


def file_sizes(items: Iterable[LayoutItem]) -> dict[str, FileSize]:
    """Return the sizes of images and documents, by hash."""
    blocks = (item.block for item in items)
    return {block.blob: stated_size(block.metadata) for block in blocks if block.blob is not None}


@dataclass(slots=True)
class _Messages:
    """Messages while they are put together; those of one side in a row are one."""

    messages: list[Message] = field(default_factory=list)
    answers: dict[str, BlockPosition] = field(default_factory=dict)
    """End of the results of each call."""
    end: BlockPosition | None = None
    _said: list[TextBlock | Thinking | ToolUse] = field(default_factory=list)
    _results: list[ToolMessage] = field(default_factory=list)
    """Of the calls that are the last of what was said."""
    _round: tuple[str, object] | None = None
    """Turn and round of these calls."""
    _heard: list[InputBlock] = field(default_factory=list)

    def say(self, block: TextBlock | Thinking | ToolUse) -> None:
        if self._heard or self._results:
            self.close()
        self._append(block)

    def hear(self, block: InputBlock) -> None:
        if self._said:
            self.close()
        self._heard.append(block)
        self.end = _position(len(self.messages), len(self._heard) - 1)

    def call(self, item: LayoutItem, results: Sequence[LayoutItem]) -> None:
        call, made_in = item.block, (item.turn, item.block.metadata.get(ROUND))
        signature = call_signature(call.metadata)
        use = ToolUse(item.round or "", tool_name(item), call.parameters, signature)
        if self._heard or (self._results and (made_in != self._round or made_in[1] is None)):
            self.close()
        self._append(use)
        self._round = made_in
        content: list[InputBlock] = []
        for one in results:
            file = attached_file(one.block)
            if file is None or one.block.text.strip():
                content.append(TextBlock(result_text(one)))
            if file is not None:
                content.append(file)
        failed = call.is_error or any(one.block.is_error for one in results)
        answer = tuple(content) or (TextBlock(_without_output(call)),)
        self._results.append(ToolMessage(answer, use.id, failed))
        index = len(self.messages) + len(self._results)
        self.answers[use.id] = _position(index, len(answer) - 1)
        if not results:
            self.end = self.answers[use.id]

    def _append(self, block: TextBlock | Thinking | ToolUse) -> None:
        self._said.append(block)
        if not isinstance(block, Thinking):
            self.end = _position(len(self.messages), len(self._said) - 1)

    def close(self) -> None:
        if self._said:
            self.messages.append(AssistantMessage(tuple(self._said)))
        if self._heard:
            self.messages.append(UserMessage(tuple(self._heard)))
        self.messages += self._results
        self._said.clear()
        self._heard.clear()
        self._results.clear()


def result_text(item: LayoutItem) -> str:
    """Return a result as the model that made the call is given it."""
    block = item.block
    text = shortened(block.text, item.path)
    lines = [text if text.strip() else _without_output(block)]
    if block.exit_code:
        lines.append(f"(exit code {block.exit_code})")
    if block.truncated:
        lines.append("(the output was longer than what is kept)")
    return lines[0] if len(lines) == 1 else "\n".join([lines[0].rstrip("\n"), *lines[1:]])


def _without_output(block: LayoutBlock) -> str:
    if not block.is_finished:
        return STILL_RUNNING
    return CANCELLED if block.stop_reason == INTERRUPTED else NO_OUTPUT
