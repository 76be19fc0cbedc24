"""Signs of the terminal for a person who looks elsewhere: its title, a bell, a notification."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Final

from antiphon.render.display import displayable_in_a_row
from antiphon.render.view import ASKS
from antiphon.widgets.status import Participant, cut_to

PROGRAM: Final = "antiphon"

ASKING_SIGN: Final = "●"
WRITING_SIGN: Final = "◐"

MOST_COLUMNS: Final = 80
"""Columns behind which a title is cut."""

_MOST_LABEL: Final = 40

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


def terminal_title(label: str, people: Iterable[Participant], unread: int) -> str:
    """Return the title: `● antiphon: LABEL · aria asks · 2 unread elsewhere`.

    Signs and words of models come first from those that ask for a decision, else from those that
    write. Titles are cut at their right in most places, so the sign stands at the left.

    Args:
        unread: blocks of other contexts that have changed since the person was there.
    """
    models = [one for one in people if one.is_model]
    sign, parts = "", [f"{PROGRAM}: {cut_to(displayable_in_a_row(label), _MOST_LABEL)}"]
    if asking := [one.name for one in models if one.doing == ASKS]:
        sign = f"{ASKING_SIGN} "
        parts.append(_doing(asking, "asks", "ask"))
    elif writing := [one.name for one in models if one.streaming]:
        sign = f"{WRITING_SIGN} "
        parts.append(_doing(writing, "writes", "write"))
    if unread:
        parts.append(f"{unread} unread elsewhere")
    return cut_to(sign + " · ".join(parts), MOST_COLUMNS)


def _doing(names: list[str], one: str, several: str) -> str:
    if len(names) > 1:
        return f"{len(names)} models {several}"
    return f"{displayable_in_a_row(names[0])} {one}"
