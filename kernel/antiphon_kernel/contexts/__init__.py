"""Contexts: how each is opened, written to, kept on disk, forked and searched."""

from antiphon_kernel.contexts.block_info import BlockInfo, header_fields, header_values
from antiphon_kernel.contexts.block_owners import BlockOwners
from antiphon_kernel.contexts.commit_types import Applied, Broadcast, CommitHandle
from antiphon_kernel.contexts.context import Context, Submission
from antiphon_kernel.contexts.context_layout import ContextLayout, layout_of
from antiphon_kernel.contexts.context_registry import ContextRegistry, First, InitialContent
from antiphon_kernel.contexts.forking import (
    Fork,
    ForkChange,
    read_now,
    read_version,
    split_surrogates,
    start_fork,
)
from antiphon_kernel.contexts.loader import open_document
from antiphon_kernel.contexts.message_blocks import (
    MessageWriter,
    check_message,
    count_kept,
    group_of,
    role_of,
)
from antiphon_kernel.contexts.message_path import MessagePath, PathMessage
from antiphon_kernel.contexts.open_contexts import OpenContexts
from antiphon_kernel.contexts.ordering import order_after, order_at_end, order_before
from antiphon_kernel.contexts.presence import Presence
from antiphon_kernel.contexts.quarantine import Quarantine
from antiphon_kernel.contexts.search_index import SearchIndex
from antiphon_kernel.contexts.tree import Branch, ConversationTrees, TreeNode
from antiphon_kernel.contexts.undo_stack import UndoKind

__all__ = [
    "Applied",
    "BlockInfo",
    "BlockOwners",
    "Branch",
    "Broadcast",
    "CommitHandle",
    "Context",
    "ContextLayout",
    "ContextRegistry",
    "ConversationTrees",
    "First",
    "Fork",
    "ForkChange",
    "InitialContent",
    "MessagePath",
    "MessageWriter",
    "OpenContexts",
    "PathMessage",
    "Presence",
    "Quarantine",
    "SearchIndex",
    "Submission",
    "TreeNode",
    "UndoKind",
    "check_message",
    "count_kept",
    "group_of",
    "header_fields",
    "header_values",
    "layout_of",
    "open_document",
    "order_after",
    "order_at_end",
    "order_before",
    "read_now",
    "read_version",
    "role_of",
    "split_surrogates",
    "start_fork",
]
