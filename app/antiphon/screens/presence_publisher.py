"""Publication of the local user's presence to the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from textual.timer import Timer

from antiphon.session import Session
from antiphon_kernel.types.enums import Activity

TYPING_SECONDS: Final = 3.0
"""How long after the last key somebody still counts as typing."""


class PresencePublisher:
    """Block, cursor and activity; said again only when they change."""

    def __init__(
        self, session: Session, set_timer: Callable[[float, Callable[[], None]], Timer]
    ) -> None:
        self._session = session
        self._set_timer = set_timer
        self._timer: Timer | None = None
        self._block: str | None = None
        self._cursor: int | None = None
        self._anchor: int | None = None
        self._typing = False

    @property
    def block(self) -> str | None:
        return self._block

    def set_cursor(
        self, block: str | None, cursor: int | None = None, anchor: int | None = None
    ) -> None:
        """The person is in this block, perhaps with a cursor."""
        self._block, self._cursor, self._anchor = block, cursor, anchor
        self._publish()

    def typed(self) -> None:
        """A key changed some text."""
        self._typing = True
        if self._timer is None:
            self._timer = self._set_timer(TYPING_SECONDS, self._idle_timeout)
        else:
            self._timer.reset()
        self._publish()

    def _idle_timeout(self) -> None:
        self._timer = None
        self._typing = False
        self._publish()

    def _publish(self) -> None:
        activity = Activity.TYPING if self._typing else Activity.IDLE
        self._session.set_presence(self._block, self._cursor, self._anchor, activity)
