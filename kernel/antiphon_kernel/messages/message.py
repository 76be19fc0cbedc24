"""Messages of a conversation: immutable values that are valid by construction."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final, TypeAlias, TypeGuard, get_args

from antiphon_kernel.messages.blocks import (
    ContentBlock,
    InputBlock,
    TextBlock,
    ToolUse,
    require_visible,
)
from antiphon_kernel.messages.errors import MessageError, MessageProblem
from antiphon_kernel.types.quoting import quote


class MessageRole(StrEnum):
    """Role of a message in what a model reads."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A message of a person, or of whoever is not this model."""

    role: ClassVar = MessageRole.USER
    content: tuple[InputBlock, ...]

    def __post_init__(self) -> None:
        _require_blocks(self.content, self.role)


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """A message of the model; may consist of tool uses alone."""

    role: ClassVar = MessageRole.ASSISTANT
    content: tuple[ContentBlock, ...]

    def __post_init__(self) -> None:
        _require_blocks(self.content, self.role)


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """Result of one tool use."""

    role: ClassVar = MessageRole.TOOL
    content: tuple[InputBlock, ...]
    tool_call_id: str
    """Id of the tool use that it answers."""
    is_error: bool = False
    """Whether the call failed."""

    def __post_init__(self) -> None:
        _require_blocks(self.content, self.role)
        require_visible(self.tool_call_id, "tool_call_id", MessageProblem.BLANK_TOOL_CALL_ID)


_HEARD: Final = get_args(InputBlock)
_SAID: Final = get_args(ContentBlock)

Message: TypeAlias = UserMessage | AssistantMessage | ToolMessage


def is_text_only(blocks: tuple[ContentBlock, ...]) -> TypeGuard[tuple[TextBlock, ...]]:
    """Whether every block of a message's content is text."""
    return all(isinstance(one, TextBlock) for one in blocks)


def tool_uses(message: Message) -> tuple[ToolUse, ...]:
    """Return the tool uses of a message, in order."""
    return tuple([block for block in message.content if isinstance(block, ToolUse)])


def _require_blocks(content: object, role: MessageRole) -> None:
    if not isinstance(content, tuple):
        raise MessageError(
            MessageProblem.WRONG_SHAPE,
            f"expected a tuple of content blocks, found {quote(content)}",
            path="content",
        )
    if not content:
        raise MessageError(
            MessageProblem.NO_CONTENT,
            f"a message of role {role} has at least one content block",
            path="content",
        )
    allowed = _SAID if role is MessageRole.ASSISTANT else _HEARD
    for at, block in enumerate(content):
        if not isinstance(block, allowed):
            raise MessageError(
                MessageProblem.BLOCK_NOT_ALLOWED,
                f"a message of role {role} holds no {quote(block)}",
                path=f"content[{at}]",
            )
