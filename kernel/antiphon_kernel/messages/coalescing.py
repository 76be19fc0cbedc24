"""Coalescing: neighbours of one role that are all text become one message with one text.

What a model sees does not depend on whether a neighbour was merged: texts of one message are
joined in the same way as those of two. Messages with anything but text, and all results of
tools, stay as they are and apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, groupby
from typing import Final

from antiphon_kernel.messages.message import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolMessage,
    UserMessage,
    is_text_only,
)

JOIN: Final = " "
"""Between two texts that become one."""


def coalesce(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Merge neighbours of one role whose blocks are all text."""
    merged: list[Message] = []
    for kind, group in groupby(messages, _kind_of_text_message):
        neighbours = list(group)
        if kind is None or (len(neighbours) == 1 and len(neighbours[0].content) == 1):
            merged.extend(neighbours)
            continue
        blocks = chain.from_iterable(one.content for one in neighbours)
        texts = [block.text for block in blocks if isinstance(block, TextBlock)]
        merged.append(kind((TextBlock(JOIN.join(texts)),)))
    return tuple(merged)


def _kind_of_text_message(message: Message) -> type[UserMessage] | type[AssistantMessage] | None:
    """The class of a message that may be merged; None for the others."""
    if isinstance(message, ToolMessage) or not is_text_only(message.content):
        return None
    return type(message)
