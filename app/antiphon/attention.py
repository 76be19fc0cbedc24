"""Calling a person who looks elsewhere back to the terminal."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import monotonic
from typing import Final

from antiphon.render.display import displayable_in_a_row

AWAY_SECONDS: Final = 15.0
"""Without a key for so long nobody looks, in a terminal that does not report its focus."""


class Attention:
    """Notes whether somebody looks at the terminal, and makes what calls them back."""

    def __init__(
        self, *, clock: Callable[[], float] = monotonic, in_tmux: bool | None = None
    ) -> None:
        """`in_tmux`: whether tmux is between here and the terminal; found out if absent."""
        self._clock = clock
        self._in_tmux = "TMUX" in os.environ if in_tmux is None else in_tmux
        self._has_focus: bool | None = None
        self._key_at = clock()

    def focus(self, has_focus: bool) -> None:
        """Note that the terminal has reported its focus."""
        self._has_focus = has_focus

    def key(self) -> None:
        """Note that a key was pressed here."""
        self._key_at = self._clock()

    @property
    def is_here(self) -> bool:
        """Return whether somebody looks at the terminal, as far as it can be known."""
        if self._has_focus is not None:
            return self._has_focus
        return self._clock() - self._key_at < AWAY_SECONDS

    def call(self, text: str) -> str:
        """Return what the terminal is sent to tell of something; empty if somebody looks.

        A notification (OSC 9) where the terminal gets it, a bell in tmux, which marks the window.
        """
        if self.is_here:
            return ""
        return "\a" if self._in_tmux else f"\x1b]9;{displayable_in_a_row(text)}\x1b\\"
