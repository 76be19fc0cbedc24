"""Messages that models read and write: content blocks, their rules, their size in tokens."""

from antiphon_kernel.messages.foreign_conversations import (
    ImportedConversation,
    ImportedMessage,
    read_conversations,
    read_loom,
    without,
)
from antiphon_kernel.messages.foreign_writing import (
    MessageShape,
    split_runs,
    write_run,
    write_system,
)
from antiphon_kernel.messages.message import (
    JOIN,
    AssistantMessage,
    ContentBlock,
    CorrelationError,
    DocumentBlock,
    ImageBlock,
    InputBlock,
    Message,
    MessageError,
    MessageProblem,
    MessageRole,
    SystemMessage,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UnknownBlock,
    UserMessage,
    coalesce,
    is_text_only,
    message_digest,
    open_tool_uses,
    tool_uses,
)
from antiphon_kernel.messages.normal_form import (
    dump_block,
    dump_message,
    normalize_message,
    normalize_messages,
    parse_arguments,
    parse_block,
)
from antiphon_kernel.messages.tokens import (
    MESSAGE_COST,
    Calibration,
    ModelWindow,
    clamp_max_tokens,
    estimate_block,
    estimate_message,
    estimate_text,
    estimate_tools,
    pages_metadata,
    stated_pages,
)
