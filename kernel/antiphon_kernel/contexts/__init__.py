"""Open contexts: commits, appends, undo stacks, rules of headers, presence."""

from antiphon_kernel.contexts.block_info import BlockInfo, header_fields, header_values
from antiphon_kernel.contexts.block_owners import BlockOwners
from antiphon_kernel.contexts.commit_types import Applied, Broadcast, CommitHandle
from antiphon_kernel.contexts.context import Context, Submission
from antiphon_kernel.contexts.context_users import UseScope
from antiphon_kernel.contexts.ordering import (
    order_after,
    order_at_end,
    order_before,
    orders_at,
)
from antiphon_kernel.contexts.presence import Presence
from antiphon_kernel.contexts.presence_recorder import PresenceRecorder
from antiphon_kernel.contexts.raw_updates import (
    PartialContextError,
    apply_large_update,
    apply_update,
)
from antiphon_kernel.contexts.undo_stack import UndoKind
from antiphon_kernel.contexts.writer_presence import WriterPresence
