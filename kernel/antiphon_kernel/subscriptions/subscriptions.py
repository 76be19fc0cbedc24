"""All subscriptions of a kernel, and the way from a commit to each of them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from antiphon_kernel.contexts import Applied, Broadcast, Context
from antiphon_kernel.document.content import read_value
from antiphon_kernel.document.document import Document
from antiphon_kernel.limits import Limits
from antiphon_kernel.subscriptions.block_events import BlockEvent, events_of
from antiphon_kernel.subscriptions.subscription import Subscription
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.ids import IdSource, SessionId
from antiphon_kernel.types.quoting import quote, truncate
from antiphon_kernel.types.records import Actor

_READ_A_TURN: Final = 200
"""Blocks read before others get their turn."""


class Feed:
    """The events of one open context, made when a change is applied, told when it is on disk."""

    def __init__(
        self, context: Context, end: Callable[[Subscription, AntiphonError], None]
    ) -> None:
        """`end`: ends a subscription."""
        self.context = context
        self._end = end
        self.subscriptions: dict[str, Subscription] = {}
        self._waiting: deque[tuple[int, SessionId, list[BlockEvent]]] = deque()
        self._stops = (
            context.applied.listen(self._applied),
            context.committed.listen(self._committed),
            context.failed.listen(self._failed),
            context.users.add(),
        )

    def close(self) -> None:
        """Follow the context no longer."""
        for stop in self._stops:
            stop()

    def _applied(self, applied: Applied) -> None:
        events = list(events_of(self.context, applied))
        self._waiting.append((applied.seq, applied.actor.session, events))

    def _committed(self, broadcast: Broadcast) -> None:
        while self._waiting and self._waiting[0][0] <= broadcast.seq:
            _, session, events = self._waiting.popleft()
            for subscription in tuple(self.subscriptions.values()):
                for event in events:
                    subscription.take(event, session)

    def _failed(self, error: AntiphonError) -> None:
        for subscription in tuple(self.subscriptions.values()):
            self._end(subscription, error)


class Subscriptions:
    """Open subscriptions. A subscription lives as long as its session."""

    def __init__(self, ids: IdSource, limits: Limits) -> None:
        self._ids = ids
        self._limits = limits
        self._all: dict[str, Subscription] = {}
        self._unclaimed: dict[SessionId, list[Subscription]] = {}
        self._feeds: dict[str, Feed] = {}

    async def open(
        self,
        actor: Actor,
        contexts: Sequence[Context],
        blocks: frozenset[str] | None,
        section: str | None = None,
    ) -> Subscription:
        """Begin to follow blocks of these contexts; None for all of them.

        Args:
            section: the part of their content to follow; None for all there is.

        Raises:
            AntiphonError: too_large, if the session has too many; storage_failed.
        """
        limit = self._limits.subscriptions_per_session
        held = [one for one in self._all.values() if one.session == actor.session]
        if len(held) >= limit:
            raise AntiphonError(
                ErrorCode.TOO_LARGE,
                f"A session may have {limit} subscriptions: end one with block.unsubscribe.",
                limit=limit,
                limit_name="subscriptions_per_session",
            )
        by_id: Mapping[str, Context] = {context.id: context for context in contexts}
        made = Subscription(self._ids.uuid7(), actor, by_id, blocks, section, self._limits)
        for context in contexts:
            await _read_once(context.document, blocks)
            await context.wait_persisted()  # one that has failed meanwhile says nothing any more
        for context in contexts:
            feed = self._feeds.get(context.id)
            if feed is None or feed.context is not context:
                feed = self._feeds[context.id] = Feed(context, self.end)
            feed.subscriptions[made.id] = made
        self._all[made.id] = made
        self._unclaimed.setdefault(actor.session, []).append(made)
        return made

    def find(self, actor: Actor, identity: str) -> Subscription:
        """A subscription of this session.

        Raises:
            AntiphonError: invalid_params.
        """
        found = self._all.get(identity)
        if found is None or found.session != actor.session:
            raise invalid_params(
                f"This session has no subscription {quote(identity)}: block.subscribe returns one.",
                field="subscription",
                found=truncate(identity),
            )
        return found

    def claim(self, session: SessionId) -> list[Subscription]:
        """The session's new subscriptions, for whoever passes their events on."""
        return self._unclaimed.pop(session, [])

    def end(self, subscription: Subscription, error: AntiphonError | None = None) -> None:
        """Nothing more comes in."""
        subscription.end(error)
        self._all.pop(subscription.id, None)
        for context, feed in list(self._feeds.items()):
            if feed.subscriptions.pop(subscription.id, None) and not feed.subscriptions:
                feed.close()
                del self._feeds[context]

    def end_session(self, session: SessionId) -> None:
        """End all of a session's."""
        self._unclaimed.pop(session, None)
        for one in [one for one in self._all.values() if one.session == session]:
            self.end(one)

    def close(self, error: AntiphonError) -> None:
        """End everything."""
        for one in list(self._all.values()):
            self.end(one, error)


async def _read_once(document: Document, blocks: frozenset[str] | None) -> None:
    """A text that has been read once says what changes in it, not just what it is then."""
    for count, block in enumerate(document.block_ids() if blocks is None else blocks):
        if block in document:
            read_value(document, block)
        if count % _READ_A_TURN == _READ_A_TURN - 1:
            await asyncio.sleep(0)
