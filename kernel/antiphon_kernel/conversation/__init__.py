"""Conversations in contexts: messages, their tree, what models read of them, sources, usage."""

from antiphon_kernel.conversation.context_layout import (
    ContextLayout,
    current_layout,
    layout_of,
    read_announcement,
)
from antiphon_kernel.conversation.message_blocks import (
    CONVERSATION,
    IMPORTED,
    MESSAGE,
    ConversationEnd,
    MessagePath,
    MessageWriter,
    NewFile,
    NewMessage,
    PathMessage,
    PlacedInstructions,
    check_message,
    count_kept,
    group_of,
    message_headers,
    read_instructions,
    role_of,
)
from antiphon_kernel.conversation.sources_pool import add_sources, read_sources, shown_sources
from antiphon_kernel.conversation.tree import BRANCH_SUFFIX, Branch, ConversationTrees, TreeNode
from antiphon_kernel.conversation.usage_sums import UsageSum, UsageSums
