"""A client with a CRDT document of its own that knows nothing of the kernel's classes.

It hears updates in any order that is possible: what one builds on comes before it. The engine
itself loses text when it is shown an update too early (the last test of test_document_machine.py
proves it), so nobody may: the kernel refuses what comes too early, connections keep the order, and
a replica that has lost some of it asks for what it lacks.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from pycrdt import Doc, Map, Text, merge_updates

from antiphon_kernel.contexts import Broadcast, Context, apply_update
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.yjs.id_set import decode_state_vector
from antiphon_kernel.yjs.update import ContentKind, ItemId, decode_update
from tests.kernel.invariants.oracle import Violation


def builds_on_known(update: bytes, state_vector: bytes) -> bool:
    """Whether a replica in this state has everything that an update builds on."""
    reached = decode_state_vector(state_vector)
    decoded = decode_update(update)
    for one in sorted(decoded.structs, key=lambda one: one.clock):
        if one.kind is ContentKind.SKIP:
            continue
        if one.clock > reached.get(one.client, 0):
            return False
        reached[one.client] = max(reached.get(one.client, 0), one.clock + one.length)
    for one in decoded.structs:
        for origin in (one.origin, one.right_origin, one.parent):
            if isinstance(origin, ItemId) and origin.clock >= reached.get(origin.client, 0):
                return False
    return all(item.end <= reached.get(item.client, 0) for item in decoded.deletions)


def deliver(
    updates: Sequence[bytes],
    rng: random.Random,
    apply: Callable[[bytes], object],
    state_vector: Callable[[], bytes],
) -> list[bytes]:
    """Apply updates in a random order, some of them twice; returns those that are too early."""
    waiting = list(updates)
    waiting += [rng.choice(waiting) for _ in range(rng.randint(0, 3)) if waiting]
    rng.shuffle(waiting)
    while True:
        left = []
        for update in waiting:
            if builds_on_known(update, state_vector()):
                apply(update)
            else:
                left.append(update)
        if len(left) == len(waiting):
            return left
        waiting = left


STATE_PART: Final = 500
"""Bytes of a part of the state that a replica gets when it comes back: it has to get several."""


class Client:
    """One replica: types, goes offline, comes back; hears updates late, twice and out of order."""

    def __init__(self, actor: Actor, client_id: int, *, keeps_deleted: bool) -> None:
        self.actor = actor
        self.doc: Doc[Any] = Doc(client_id=client_id, skip_gc=keeps_deleted)
        self.blocks: Map[Any] = self.doc.get("blocks", type=Map)
        self.doc.get("meta", type=Map)
        self.doc.get("members", type=Map)
        self.online = False
        self._outbox: list[bytes] = []
        self._inbox: list[bytes] = []
        self._typing = False
        self._ends: list[Any] = []
        self._subscription = self.doc.observe(self._observe)

    def _observe(self, event: Any) -> None:
        if self._typing:
            self._outbox.append(event.update)

    # Editing

    def texts(self) -> list[str]:
        """Blocks whose text this replica can edit: texts that are nobody else's drafts."""
        return [
            block
            for block in sorted(self.blocks.keys())
            if isinstance(self.blocks[block].get("content"), Text)
            and not self._is_draft_of_another(self.blocks[block])
        ]

    def _is_draft_of_another(self, header: Map[Any]) -> bool:
        is_draft = header.get("role") == "user" and header.get("status") in ("pending", "running")
        return is_draft and header.get("author") != self.actor.principal.id

    def text(self, block: str) -> str:
        return str(self.blocks[block]["content"])

    def splice(self, block: str, offset: int, deleted: int, inserted: str) -> None:
        """Type: offsets count code points."""
        content: Text = self.blocks[block]["content"]
        text = str(content)
        start = len(text[:offset].encode())
        end = len(text[: offset + deleted].encode())
        self._typing = True
        try:
            with self.doc.transaction():
                if end > start:
                    del content[start:end]
                if inserted:
                    content.insert(start, inserted)
        finally:
            self._typing = False

    def draft(self, block: str, fields: dict[str, str], content: str) -> None:
        """Create a block of one's own."""
        self._typing = True
        try:
            with self.doc.transaction():
                self.blocks[block] = Map({**fields, "content": Text(content)})
        finally:
            self._typing = False

    # Syncing

    async def connect(self, context: Context) -> None:
        """Come back: only what is missing travels, both ways."""
        self._inbox.clear()
        self._outbox.clear()
        self._ends = [context.committed.listen(self._hear)]
        async for part in context.committed_state(self.doc.get_state(), STATE_PART):
            self.doc.apply_update(part)
        missing = self.doc.get_update(context.document.state_vector())
        self.online = True
        await apply_update(context, self.actor, missing, self)

    def disconnect(self) -> None:
        for end in self._ends:
            end()
        self._ends = []
        self._inbox.clear()
        self.online = False

    def _hear(self, broadcast: Broadcast) -> None:
        if broadcast.source is not self:
            self._inbox.append(broadcast.update)

    def listen(self, rng: random.Random, *, everything: bool) -> None:
        """Take in some of what has come, in any order, some of it twice."""
        count = len(self._inbox) if everything else rng.randint(0, len(self._inbox))
        if not everything:
            rng.shuffle(self._inbox)
        heard, self._inbox = self._inbox[:count], self._inbox[count:]
        early = deliver(heard, rng, self.doc.apply_update, self.doc.get_state)
        self._inbox[:0] = early

    async def send(self, context: Context, rng: random.Random) -> None:
        """Hand in what has been typed: at once or piece by piece, some of it twice, or first in
        the wrong order, which is refused."""
        updates, self._outbox = self._outbox, []
        if not updates:
            return
        if len(updates) > 1 and rng.random() < 0.2:
            await self._too_early(context, updates[-1])
        if rng.random() < 0.5:
            updates = [merge_updates(*updates)] if len(updates) > 1 else updates
        for update in updates:
            for _ in range(rng.choice((1, 1, 1, 2))):
                await apply_update(context, self.actor, update, self)

    async def _too_early(self, context: Context, update: bytes) -> None:
        before = context.document.state_vector()
        try:
            await apply_update(context, self.actor, update, self)
        except AntiphonError as error:
            if error.code is not ErrorCode.GAP:
                raise
            if context.document.state_vector() != before:
                raise Violation("a refused update left something") from error

    def close(self) -> None:
        self.disconnect()
        self.doc.unobserve(self._subscription)
