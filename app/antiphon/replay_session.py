"""The app's session in a replay: there is no kernel, and time is the replay's."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from antiphon.local_user import REPLAY, LocalUser
from antiphon.options import AppOptions
from antiphon.replay.player import Player
from antiphon.session import ConnectionStatus, Session, SessionStatus
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.presence import PresenceState


class ReplaySession(Session):
    """A replay in the place of a context of a kernel, for somebody who reads."""

    player: Player

    def __init__(self, options: AppOptions) -> None:
        super().__init__(options)
        assert options.replay is not None
        self.player = Player(options.replay)
        self.user = LocalUser(lambda: REPLAY)
        self.replica.begin_with(self.player.document)
        self.replica.stop_following()  # nothing is written here that somebody waits for

    @property
    def status(self) -> SessionStatus:
        return SessionStatus(ConnectionStatus.REPLAY, self._failure)

    def presence(self) -> Mapping[int, PresenceState]:
        return self.player.presence()

    def start(self, around: str | None = None, *, has_preview: bool = True) -> None:
        """Play, and go on until `close`."""
        self._running = asyncio.create_task(self.player.run(), name="replay")
        self._running.add_done_callback(self._ended)
        if self.options.speed is not None:
            self.player.set_speed(self.options.speed)
            self.player.play()

    def find_left_behind(self) -> None:
        """Leave it to a session of a kernel."""

    async def call(self, tool: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Refuse it."""
        raise AntiphonError(ErrorCode.NO_KERNEL, REPLAY.words)

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
        await super().close()
