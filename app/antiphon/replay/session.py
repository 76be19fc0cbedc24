"""The app's session in a replay: there is no kernel."""

from __future__ import annotations

from antiphon.options import AppOptions
from antiphon.replay.player import Player
from antiphon.session import Session


class ReplaySession(Session):
    """A replay in the place of a context of a kernel, for somebody who reads."""

    def __init__(self, options: AppOptions) -> None:
        super().__init__(options)
        assert options.replay is not None
        self.player = Player(options.replay)
