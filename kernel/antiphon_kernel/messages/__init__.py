"""Messages that models read and write: content blocks, their rules, their size in tokens."""

from antiphon_kernel.messages.blocks import (
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    InputBlock,
    TextBlock,
    Thinking,
    ToolUse,
    UnknownBlock,
)
from antiphon_kernel.messages.errors import (
    CorrelationError,
    MessageError,
    MessageProblem,
    ToolArgumentParseError,
)
from antiphon_kernel.messages.message import (
    AssistantMessage,
    Message,
    MessageRole,
    ToolMessage,
    UserMessage,
    is_text_only,
    tool_uses,
)

__all__ = [
    "AssistantMessage",
    "ContentBlock",
    "CorrelationError",
    "DocumentBlock",
    "ImageBlock",
    "InputBlock",
    "Message",
    "MessageError",
    "MessageProblem",
    "MessageRole",
    "TextBlock",
    "Thinking",
    "ToolArgumentParseError",
    "ToolMessage",
    "ToolUse",
    "UnknownBlock",
    "UserMessage",
    "is_text_only",
    "tool_uses",
]
