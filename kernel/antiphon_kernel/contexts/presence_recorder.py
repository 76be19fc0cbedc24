"""Presence in contexts, recorded so that a replay shows who was where."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from antiphon_kernel.contexts.context import Context
from antiphon_kernel.storage import Journal
from antiphon_kernel.types.clock import Clock
from antiphon_kernel.types.enums import Activity
from antiphon_kernel.types.presence import PresenceState

_SECONDS: Final = 1.0
"""How long changes wait to be written together."""

_APART_MS: Final = 100
"""Of what a session does within this time, the last is recorded."""


class PresenceRecorder:
    """Recorder of what changes in the presence of open contexts."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self.is_on = True
        self._journal = journal
        self._clock = clock
        self._last: dict[tuple[int, int], PresenceState] = {}
        """By number of the context and awareness client."""
        self._waiting: dict[tuple[int, str, int], tuple[object, ...]] = {}
        """Rows of the journal by number of the context, session and time."""

    def follow(self, context: Context) -> None:
        """Record who is in a context from now on."""
        context.presence.changed.listen(partial(self._changed, context))

    def flush(self) -> None:
        """Hand to the journal what has changed."""
        self._journal.add_presences(self._waiting.values())
        self._waiting.clear()

    def _changed(self, context: Context, client: int, state: PresenceState | None) -> None:
        if not self.is_on:
            return
        key = context.row.number, client
        before = self._last.pop(key, None)
        if before is not None and (state is None or state.session != before.session):
            self._put(context, before.session, None, None, None, None)
        if state is not None:
            self._last[key] = state
            # A client may say anything.
            activity = state.activity if state.activity in tuple(Activity) else Activity.IDLE
            block = state.block if state.block in context.document else None
            most = context.document.length(block) if block is not None else 0
            ends = [at and min(at, most) for at in (state.cursor, state.anchor)]
            self._put(context, state.session, activity, block, *ends)

    def _put(self, context: Context, session: str, *place: str | int | None) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_later(_SECONDS, self.flush)
        now, number = self._clock.now_ms(), context.row.number
        row = number, context.seq, now, session, *place
        self._waiting[number, session, now // _APART_MS] = row
