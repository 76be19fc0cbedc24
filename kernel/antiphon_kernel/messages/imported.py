"""Conversations of other tools, as they are read: messages in a tree, and the files in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from antiphon_kernel.messages.message import InputBlock, Message
from antiphon_kernel.types.frozen_json import JsonObject


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
