"""Subscriptions to blocks, and the events that they get: one for each block that a commit changes.

A subscription is a bounded queue of events, read by an async iterator. A reader that does not keep
up loses events, never the truth: in their place it gets each block that they were about as it is by
then.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from pydantic import Field

from antiphon_kernel.contexts import Applied, BlockInfo, Broadcast, Context, header_values
from antiphon_kernel.document.content import read_value
from antiphon_kernel.document.schema import is_text
from antiphon_kernel.limits import Limits
from antiphon_kernel.registry import Result
from antiphon_kernel.text.splice_diff import plan_difference
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.ids import IdSource, SessionId
from antiphon_kernel.types.quoting import quote, truncate
from antiphon_kernel.types.records import Actor, TextSplice
from antiphon_kernel.types.signal import News


def attribution(principal: str, kind: PrincipalKind | str, operation: str) -> str:
    """`agent:{id}:{operation}`, `source:{id}:update` or `system:{operation}`.

    People, models and the shell are agents. What a source does is always an update.

    Args:
        principal: id of whoever made the change.
        kind: its kind; one that is unknown to this version counts as an agent.
        operation: as the journal names it.
    """
    if kind == PrincipalKind.SYSTEM:
        return f"system:{operation}"
    if kind == PrincipalKind.SOURCE:
        return f"source:{principal}:update"
    return f"agent:{principal}:{operation}"


class BlockEventKind(StrEnum):
    """Kind of block event."""

    CREATED = "created"
    """It is new: header and content are all of it."""
    EDITED = "edited"
    """Its content changed, and what else `header` says."""
    HEADER = "header"
    """Only its header changed."""
    RESYNC = "resync"
    """Events were left out: header and content are all of it as it is now."""


class Origin(StrEnum):
    """Origin of a change, as seen by the session that subscribed."""

    OWN = "own"
    OTHER = "other"


class SplicePatch(Result):
    """At code point `offset`, `delete_count` code points went and `insert` came.

    Splices are to be carried out in order: each counts in the text as the earlier ones left it.
    """

    offset: int
    """Code points from the start of the text."""
    delete_count: int
    """Code points that went."""
    insert: str
    """Text that came."""
    section: str | None = None
    """The path of the section; absent for a content that is one text."""


class PartValue(Result):
    """A part of a content as it is after the change."""

    path: str | None = None
    """The path of the part; absent if it is the whole content."""
    value: Any = None
    """Its JSON."""


class BlockEvent(Result):
    """One change of one block."""

    context_id: str
    context_version: int
    block_id: str
    name: str
    version: int
    from_version: int | None = None
    """The version that the patch starts from; absent if the event says all there is."""
    kind: BlockEventKind
    """Kind of the event."""
    splices: list[SplicePatch] = Field(default_factory=list)
    """How its texts changed."""
    parts: list[PartValue] = Field(default_factory=list)
    """Further changes of its content."""
    header: BlockInfo | None = None
    """The whole header, if something in it changed."""
    content: Any = None
    """The whole content, or of the part that is followed, if `kind` is created or resync: the text,
    or JSON of another schema."""
    operation: str | None = None
    """Operation; absent if the event stands for several changes."""
    attribution: str | None = None
    """`agent:{id}:{operation}`, `source:{id}:update` or `system:{operation}`."""
    principal: str | None = None
    username: str | None = None
    time: str | None = None
    origin: Origin = Origin.OTHER
    """`own` if the session that subscribed did it."""

    def subject(self, section: str) -> BlockEvent | None:
        """Return the event for one part of the content; None if nothing is left."""

        def within(path: str | None) -> bool:
            return path is None or path == section or path.startswith(section + "/")

        splices = [one for one in self.splices if within(one.section)]
        parts = [one for one in self.parts if within(one.path)]
        if not splices and not parts:
            return None
        return self.model_copy(update={"splices": splices, "parts": parts})

    @property
    def size(self) -> int:
        """Roughly, in code points."""
        parts = sum(len(str(one.value)) for one in self.parts)
        inserted = sum(len(one.insert) for one in self.splices)
        return inserted + parts + len(self.content if isinstance(self.content, str) else "")


def events_of(context: Context, applied: Applied) -> Iterator[BlockEvent]:
    """The events of one change; to be called before anything else is applied."""
    principal = applied.actor.principal
    for block, version in applied.versions.items():
        made = any(block in change.added for change in applied.changes)
        splices, parts = ([], []) if made else _patch(context, block, applied)
        fields = {one.block for change in applied.changes for one in change.headers}
        kind = BlockEventKind.EDITED if splices or parts else BlockEventKind.HEADER
        yield _event_now(
            context,
            block,
            BlockEventKind.CREATED if made else kind,
            has_header=made or block in fields,
            from_version=None if made else version - 1,
            splices=splices,
            parts=parts,
            content=read_value(context.document, block) if made else None,
            operation=applied.operation,
            attribution=attribution(principal.id, principal.kind, applied.operation),
            principal=principal.id,
            username=principal.username,
            time=iso_time(applied.time),
        )


def _patch(
    context: Context, block: str, applied: Applied
) -> tuple[list[SplicePatch], list[PartValue]]:
    splices: list[SplicePatch] = []
    paths: dict[str | None, None] = {}
    for change in applied.changes:
        for text in change.texts:
            if text.block == block and text.splices:
                splices += _splices(text.splices, text.section)
            elif text.block == block:
                paths[text.section] = None  # nobody has read it yet, so nobody knows the offsets
        paths.update((one.path, None) for one in change.contents if one.block == block)
    document = context.document
    parts = [PartValue(path=path, value=read_value(document, block, path)) for path in paths]
    return [one for one in splices if one.section not in paths], parts


def _splices(splices: tuple[TextSplice, ...], section: str | None) -> Iterator[SplicePatch]:
    for one in splices:
        yield SplicePatch(
            offset=one.offset, delete_count=one.deleted, insert=one.inserted, section=section
        )


def _event_now(
    context: Context, block: str, kind: BlockEventKind, *, has_header: bool = True, **fields: Any
) -> BlockEvent:
    """Return an event that tells a block as it is now."""
    return BlockEvent(
        context_id=context.id,
        context_version=context.seq,
        block_id=block,
        name=context.block_name(block),
        version=context.blocks.version(block),
        kind=kind,
        header=BlockInfo(**header_values(context, block)) if has_header else None,
        **fields,
    )


async def whole_block(
    context: Context, block: str, kind: BlockEventKind, section: str | None = None
) -> BlockEvent:
    """A block as it is; what it says is on disk.

    Args:
        section: the part of its content that is told; None for all of it.
    """
    content = read_value(context.document, block, section)
    return await context.persisted(_event_now(context, block, kind, content=content))


async def block_since(context: Context, block: str, version: int) -> BlockEvent | None:
    """Return the change of a block since one of its versions; None if there is none.

    Text is told as splices; a block of another schema, or a version that never was, as a resync.
    """
    if version == context.blocks.version(block):
        return await context.persisted(None)
    known = 1 <= version < context.blocks.version(block)
    if not known or not is_text(context.document.schema(block)):
        return await whole_block(context, block, BlockEventKind.RESYNC)
    before = (await context.history(block)).text(None, version)
    difference = tuple(plan_difference(before, context.document.text(block)))
    kind = BlockEventKind.EDITED if difference else BlockEventKind.HEADER
    splices = list(_splices(difference, None))
    event = _event_now(context, block, kind, from_version=version, splices=splices)
    return await context.persisted(event)


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
        self._wake = News()
        self.ended = False
        """Whether nothing comes in any more; what is queued can still be read."""
        self._error: AntiphonError | None = None

    def follows(self, block: str) -> bool:
        """Return whether events of a block belong here."""
        return self._blocks is None or block in self._blocks

    def resume(self, block: str, version: int | None) -> None:
        """The reader has this version of a block, or has never seen it (None)."""
        self._missed[block] = version
        self._wake.announce()

    def take(self, event: BlockEvent, session: SessionId) -> None:
        """An event that is on disk; never waits."""
        block = event.block_id
        if self.ended or not self.follows(block) or block in self._missed:
            return
        about = event if self._section is None else event.subject(self._section)
        if about is None or event.version <= self._told.get(block, 0):
            return
        self._queue.append((about, session))
        self._size += about.size
        if self._is_full:
            self._missed.update((one.block_id, None) for one, _ in self._queue)
            self._queue.clear()
            self._size = 0
        self._wake.announce()

    @property
    def _is_full(self) -> bool:
        limits = self._limits
        too_many = len(self._queue) > limits.subscription_events
        return too_many or self._size > limits.subscription_code_points

    def skip(self) -> None:
        """Leave out what is queued, for a reader that only wants to know of changes."""
        self._queue.clear()
        self._missed.clear()
        self._size = 0

    def end(self, error: AntiphonError | None = None) -> None:
        """Nothing more comes in; the reader gets what is queued, then `error` if there is one."""
        if not self.ended:
            self.ended, self._error = True, error
            self._wake.announce()

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
            elif self.ended:
                raise StopAsyncIteration
            else:
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


class ForwardedSubscription(Subscription):
    """Subscription at another kernel, which makes its events and says what it has left out."""

    async def pass_on(self, event: BlockEvent) -> None:
        """Take an event as soon as the reader has room for it."""
        while self._is_full and not self.ended:
            await self._wake.wait()
        if not self.ended:
            self._queue.append((event, SessionId("")))
            self._size += event.size
            self._wake.announce()

    async def __anext__(self) -> BlockEvent:
        self._wake.announce()
        return await super().__anext__()


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
        if len(self.of(actor.session)) >= limit:
            raise AntiphonError(
                ErrorCode.TOO_LARGE,
                f"A session may have {limit} subscriptions: end one with block.unsubscribe.",
                limit=limit,
                limit_name="subscriptions_per_session",
            )
        by_id: Mapping[str, Context] = {context.id: context for context in contexts}
        made = Subscription(self._ids.uuid7(), actor, by_id, blocks, section, self._limits)
        for context in contexts:
            document = context.document
            # A text that has been read once says what changes in it, not just what it is then.
            for count, block in enumerate(document.block_ids() if blocks is None else blocks, 1):
                if block in document:
                    read_value(document, block)
                if count % _READ_A_TURN == 0:
                    await asyncio.sleep(0)
            await context.wait_persisted()  # one that has failed meanwhile says nothing any more
        for context in contexts:
            feed = self._feeds.get(context.id)
            if feed is None or feed.context is not context:
                feed = self._feeds[context.id] = Feed(context, self.end)
            feed.subscriptions[made.id] = made
        self._add(made)
        return made

    def forwarded(self, actor: Actor, identity: str) -> ForwardedSubscription:
        """Begin to tell of what a subscription of this session at another kernel says."""
        made = ForwardedSubscription(identity, actor, {}, None, None, self._limits)
        self._add(made)
        return made

    def _add(self, made: Subscription) -> None:
        self._all[made.id] = made
        self._unclaimed.setdefault(made.session, []).append(made)

    def of(self, session: SessionId) -> list[Subscription]:
        """Return a session's."""
        return [one for one in self._all.values() if one.session == session]

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
        for one in self.of(session):
            self.end(one)

    def close(self, error: AntiphonError) -> None:
        """End everything."""
        for one in list(self._all.values()):
            self.end(one, error)
