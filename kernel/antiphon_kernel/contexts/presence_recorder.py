"""Presence in contexts, recorded so that a replay shows who was where."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from antiphon_kernel.contexts.context import Context
from antiphon_kernel.storage import Journal, PresenceRow
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
        self._last: dict[tuple[int, int], PresenceRow] = {}
        """By number of the context and awareness client."""
        self._waiting: dict[tuple[int, str, int], PresenceRow] = {}
        """By number of the context, session and time."""

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
        number, document = context.row.number, context.document
        now, before = self._clock.now_ms(), self._last.pop((number, client), None)
        if before is not None and (state is None or state.session != before.session):
            self._put(PresenceRow(number, context.seq, now, before.session))
        if state is not None:
            # A client may say anything.
            activity = state.activity if state.activity in tuple(Activity) else Activity.IDLE
            row = PresenceRow(number, context.seq, now, state.session, activity)
            if state.block is not None and state.block in document:
                most = document.length(state.block)
                cursor, anchor = (
                    None if at is None else min(at, most) for at in (state.cursor, state.anchor)
                )
                row = row._replace(block=state.block, cursor=cursor, anchor=anchor)
            self._last[number, client] = row
            if before is None or row[3:] != before[3:]:
                self._put(row)

    def _put(self, row: PresenceRow) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_later(_SECONDS, self.flush)
        self._waiting[row.context, row.session, row.time // _APART_MS] = row
