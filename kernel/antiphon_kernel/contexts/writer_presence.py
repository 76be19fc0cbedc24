"""Models and programs show where they write, as people do."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from antiphon_kernel.contexts.commit_types import Applied, Broadcast
from antiphon_kernel.contexts.context import Context
from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.text.transform import shift_offset
from antiphon_kernel.types.enums import Activity
from antiphon_kernel.types.presence import PresenceState
from antiphon_kernel.types.records import Actor

CURSOR_SECONDS = 0.1
"""The cursor of a program is shown anew no more often than this."""


class WriterPresence:
    """The presence of a turn, or of a program that writes a block: its cursor follows the end."""

    def __init__(self, context: Context, actor: Actor, client: int) -> None:
        self._context = context
        self._client = client
        self._timer: asyncio.TimerHandle | None = None
        self._shown_at = float("-inf")
        self._state = _present(context, actor)
        self.username = self._state.username
        self._unwatch = context.document.watch(self._changed)

    def wait_at(self, block: str | None) -> None:
        """The turn is queued; `block` is what it will answer."""
        self._state = replace(self._state, block=block, activity=Activity.WAITING)
        self._show()

    def write_in(self, block: str | None) -> None:
        """It is at work, from now on in `block`; None: it has not begun to write."""
        self._state = replace(self._state, block=block, cursor=None, activity=Activity.STREAMING)
        self._show()

    def leave(self) -> None:
        """It has nothing more to write."""
        self._unwatch()
        self._stop_timer()
        self._context.presence.remove(self._client)

    def _changed(self, change: DocumentChange) -> None:
        here = self._state.block
        if self._timer is None and any(text.block == here for text in change.texts):
            loop = asyncio.get_running_loop()
            wait = self._shown_at + CURSOR_SECONDS - loop.time()
            self._timer = loop.call_later(max(wait, 0), self._show)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _show(self) -> None:
        self._stop_timer()
        self._shown_at = asyncio.get_running_loop().time()
        block = self._state.block
        if block is not None and self._state.activity is Activity.STREAMING:
            end = len(self._context.document.text(block))
            self._state = replace(self._state, cursor=end)
        self._context.presence.put(self._client, self._state)


class EditorPresence:
    """The presence of a turn or a program in a text: its cursor is where it has edited last."""

    def __init__(self, context: Context, actor: Actor, client: int, activity: Activity) -> None:
        self._context, self._actor, self._client = context, actor, client
        self._state = replace(_present(context, actor), activity=activity)
        self._stops = [context.applied.listen(self.follow), context.committed.listen(self._show)]

    def follow(self, applied: Applied) -> None:
        """Go to what the turn has changed, or on with the text that others change."""
        is_own = applied.actor is self._actor
        for block in (one for change in applied.changes for one in change.added if is_own):
            cursor = len(self._context.document.text(block))
            self._state = replace(self._state, block=block, cursor=cursor)
        for text in (one for change in applied.changes for one in change.texts):
            for splice in text.splices:
                if is_own:
                    cursor = splice.offset + len(splice.inserted)
                elif text.block == self._state.block:
                    cursor = shift_offset(self._state.cursor or 0, splice, stick="right")
                else:
                    continue
                self._state = replace(self._state, block=text.block, cursor=cursor)

    def leave(self) -> None:
        """Its turn has ended."""
        while self._stops:
            self._stops.pop()()
        self._context.presence.remove(self._client)

    def _show(self, _: Broadcast) -> None:
        # Others carry the cursor along with each change: they get it behind what is sent now.
        asyncio.get_running_loop().call_soon(self._put)

    def _put(self) -> None:
        if self._stops:  # else it has left
            self._context.presence.put(self._client, self._state)


def _present(context: Context, actor: Actor) -> PresenceState:
    member = context.ensure_member(actor)
    return PresenceState(
        principal=member.principal,
        username=member.username,
        kind=member.kind,
        colour=member.colour,
        session=actor.session,
        role=actor.role,
    )
