"""A client with a CRDT document of its own that knows nothing of the kernel's classes."""

from __future__ import annotations

import random
from typing import Any, Final

from pycrdt import Doc, Map, Text, merge_updates

from antiphon_kernel.contexts import Broadcast, Context, apply_update
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.invariants.causal import deliver
from tests.kernel.invariants.oracle import Violation

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
