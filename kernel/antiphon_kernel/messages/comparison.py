"""Comparison of messages: whether two say the same, white space at the ends aside.

Messages are equal (`==`) if role and content are: key order ignored, list order kept, ids and
names exact. The comparison form ignores more; it is never stored and never sent.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from antiphon_kernel.messages.message import (
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    Message,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UnknownBlock,
)


def comparison_form(message: Message) -> Message | None:
    """Trim every text of a message and drop those that are empty then; None if nothing is left."""
    content = tuple(kept for block in message.content if (kept := _trimmed(block)) is not None)
    if content == message.content:
        return message
    return replace(message, content=content) if content else None  # type: ignore[arg-type]


def message_digest(message: Message) -> bytes:
    """Return a digest that equal messages have in common, and no others."""
    call = [message.tool_call_id, message.is_error] if isinstance(message, ToolMessage) else []
    parts = [message.role, *call, *(_parts(block) for block in message.content)]
    return hashlib.sha256(json.dumps(parts).encode()).digest()


def _parts(block: ContentBlock) -> list[str | None]:
    """The kind of a block and its fields as strings."""
    match block:
        case TextBlock(text):
            return ["text", text]
        case ToolUse(call_id, name, parameters, signature):
            signed = [] if signature is None else [signature]
            return ["tool-use", call_id, name, parameters.canonical(), *signed]
        case Thinking(text, signature):
            return ["thinking", text, signature]
        case ImageBlock(media_type, digest):
            return ["image", media_type, digest]
        case DocumentBlock(media_type, digest):
            return ["document", media_type, digest]
        case UnknownBlock(raw):
            return ["unknown", raw.canonical()]


def _trimmed(block: ContentBlock) -> ContentBlock | None:
    if not isinstance(block, TextBlock):
        return block
    text = block.text.strip()
    if text == block.text:
        return block if text else None
    return TextBlock(text) if text else None
