"""Contexts: how each is opened, written to, kept on disk, forked and searched."""

from antiphon_kernel.contexts.announcing import read_announcement
from antiphon_kernel.contexts.block_info import BlockInfo, header_fields, header_values
from antiphon_kernel.contexts.block_owners import BlockOwners
from antiphon_kernel.contexts.commit_types import Applied, Broadcast, CommitHandle
from antiphon_kernel.contexts.context import Context, PartialContextError, Submission
from antiphon_kernel.contexts.context_layout import ContextLayout, copied_names
from antiphon_kernel.contexts.context_registry import ContextRegistry, First, InitialContent
from antiphon_kernel.contexts.context_users import UseScope
from antiphon_kernel.contexts.forking import (
    FORK,
    Fork,
    InitialChange,
    read_now,
    read_version,
    split_surrogates,
    start_fork,
)
from antiphon_kernel.contexts.loader import open_document
from antiphon_kernel.contexts.message_blocks import (
    CONVERSATION,
    IMPORTED,
    ConversationEnd,
    MessageWriter,
    NewFile,
    NewMessage,
    check_message,
    count_kept,
    group_of,
    message_headers,
    role_of,
)
from antiphon_kernel.contexts.message_path import (
    MessagePath,
    PathMessage,
    PlacedInstructions,
    read_instructions,
)
from antiphon_kernel.contexts.new_conversation import MessageChain, NewConversation
from antiphon_kernel.contexts.open_contexts import OpenContexts
from antiphon_kernel.contexts.ordering import (
    order_after,
    order_at_end,
    order_before,
    orders_after,
    orders_at_end,
)
from antiphon_kernel.contexts.page import ContextPage, has_page, read_page
from antiphon_kernel.contexts.pool_block import read_sources, shown_sources
from antiphon_kernel.contexts.presence import Presence
from antiphon_kernel.contexts.quarantine import Quarantine
from antiphon_kernel.contexts.recent_blocks import RecentBlocks, RecentState
from antiphon_kernel.contexts.search_index import SearchIndex
from antiphon_kernel.contexts.sources_pool import add_sources
from antiphon_kernel.contexts.tree import (
    BRANCH_SUFFIX,
    Branch,
    ConversationTrees,
    TreeNode,
)
from antiphon_kernel.contexts.undo_stack import UndoKind
from antiphon_kernel.contexts.usage_sums import UsageSum, UsageSums
from antiphon_kernel.contexts.writer_presence import WriterPresence
