"""When typing that goes on is one step of undo with what was typed before it."""

from __future__ import annotations

from typing import Final

TYPING_PAUSE_MS: Final = 1_000
"""A pause as long as this ends a typing run."""

TYPING_MS: Final = 3_000
"""A typing run ends when it has lasted this long."""

TYPING_UNITS: Final = 30
"""Characters typed or deleted after which a typing run ends."""

KEYSTROKE_UNITS: Final = 3
"""Characters that one keystroke brings at most; more is a paste, a cut or a kill."""


def may_go_on(*, begun: int, last: int, now: int, size: int) -> bool:
    """Return whether a run of `size` characters, with its times in milliseconds, is still open."""
    return now - last < TYPING_PAUSE_MS and now - begun < TYPING_MS and size < TYPING_UNITS
