"""One subscription: a bounded queue of events, read by an async iterator.

A reader that does not keep up loses events, never the truth: in their place it gets each block that
they were about as it is by then.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Mapping

from antiphon_kernel.contexts import Context
from antiphon_kernel.limits import Limits
from antiphon_kernel.subscriptions.block_events import (
    BlockEvent,
    BlockEventKind,
    Origin,
    block_since,
    whole_block,
)
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.ids import SessionId
from antiphon_kernel.types.records import Actor


class Subscription:
    """Subscription of one session. Belongs to one event loop and has one reader."""

    def __init__(
        self,
        identity: str,
        actor: Actor,
        contexts: Mapping[str, Context],
        blocks: frozenset[str] | None,
        section: str | None,
        limits: Limits,
    ) -> None:
        """
        Args:
            contexts: by id, those that the blocks are in.
            blocks: which to follow; None for all, also those that come.
            section: the part of their content to follow; None for all of it and the header.
        """
        self.id = identity
        self.session: SessionId = actor.session
        self._contexts = contexts
        self._blocks = blocks
        self._section = section
        self._limits = limits
        self._queue: deque[tuple[BlockEvent, SessionId]] = deque()
        self._size = 0
        self._missed: OrderedDict[str, int | None] = OrderedDict()
        """Blocks whose events are not in the queue, and the version the reader has, if known."""
        self._told: dict[str, int] = {}
        self._wake = asyncio.Event()
        self._ended = False
        self._error: AntiphonError | None = None

    @property
    def ended(self) -> bool:
        """Return whether nothing comes in any more; what is queued can still be read."""
        return self._ended

    def follows(self, block: str) -> bool:
        """Return whether events of a block belong here."""
        return self._blocks is None or block in self._blocks

    def resume(self, block: str, version: int | None) -> None:
        """The reader has this version of a block, or has never seen it (None)."""
        self._missed[block] = version
        self._wake.set()

    def take(self, event: BlockEvent, session: SessionId) -> None:
        """An event that is on disk; never waits."""
        block = event.block_id
        if self._ended or not self.follows(block) or block in self._missed:
            return
        about = event if self._section is None else event.subject(self._section)
        if about is None or event.version <= self._told.get(block, 0):
            return
        self._queue.append((about, session))
        self._size += about.size
        limits = self._limits
        too_many = len(self._queue) > limits.subscription_events
        if too_many or self._size > limits.subscription_code_points:
            self._missed.update((one.block_id, None) for one, _ in self._queue)
            self._queue.clear()
            self._size = 0
        self._wake.set()

    def end(self, error: AntiphonError | None = None) -> None:
        """Nothing more comes in; the reader gets what is queued, then `error` if there is one."""
        if not self._ended:
            self._ended, self._error = True, error
            self._wake.set()

    def __aiter__(self) -> AsyncIterator[BlockEvent]:
        return self

    async def __anext__(self) -> BlockEvent:
        """The next event.

        Raises:
            AntiphonError: why the subscription was ended, if not by the reader.
        """
        while True:
            if self._missed and self._error is None:
                made_up = await self._resync()
                if made_up is not None:
                    return made_up
            elif self._queue:
                event, session = self._queue.popleft()
                self._size -= event.size
                if event.version > self._told.get(event.block_id, 0):
                    own = session == self.session
                    return event.model_copy(update={"origin": Origin.OWN}) if own else event
            elif self._error is not None:
                raise self._error
            elif self._ended:
                raise StopAsyncIteration
            else:
                self._wake.clear()
                await self._wake.wait()

    async def _resync(self) -> BlockEvent | None:
        """One block that the reader has missed something of; None if it has not after all."""
        block, version = self._missed.popitem(last=False)
        context = self._contexts[block.split(".", 1)[0]]
        # What comes in from here on is queued: some of it may be in what is read here.
        event: BlockEvent | None
        try:
            if version is None or self._section is not None:
                event = await whole_block(context, block, BlockEventKind.RESYNC, self._section)
            else:
                event = await block_since(context, block, version)
        except BaseException:
            # Whoever stops waiting is told of it the next time.
            self._missed.setdefault(block, version)
            self._missed.move_to_end(block, last=False)
            raise
        if event is not None:
            self._told[block] = event.version
        elif version is not None:
            self._told[block] = version
        return event
