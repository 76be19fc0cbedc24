"""Subscriptions to the blocks of a context."""

from antiphon_kernel.subscriptions.block_events import (
    BlockEvent,
    BlockEventKind,
    block_since,
    whole_block,
)
from antiphon_kernel.subscriptions.subscriptions import Subscription, Subscriptions
