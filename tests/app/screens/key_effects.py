"""Whether a key has done anything that a person can see."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from textual.binding import Binding, BindingsMap

from tests.app.opened import Opened
from tests.waiting import PATIENCE

LONGEST_PAUSE: Final = 0.1
"""Seconds between two looks for an effect, at most: a look costs as much as a key."""


def appearance(there: Opened) -> tuple[object, ...]:
    """Everything by which a person notices that something has happened."""
    return (*situation(there), tuple(there.rows))


def situation(there: Opened) -> tuple[object, ...]:
    """Everything but the rows of the terminal, which cost most."""
    app, screen = there.app, there.screen
    editor = screen.area.editor
    return (
        len(app.screen_stack),
        screen,
        screen.mode,
        screen.composer.draft.text,
        None if editor is None else (editor.cursor_offset, editor.text),
        app.clipboard,
        [id(one) for one in screen.controllers.hints],
        [id(one) for one in getattr(app.screen, "hints", ())],
        screen.frame.notice.hint,
    )


async def noticed(there: Opened, key: str, seconds: float = PATIENCE) -> bool:
    """Press a key; return whether anything is different afterwards."""
    before = appearance(there)
    there.burst(key)
    deadline, pause = time.monotonic() + seconds, 0.01
    while time.monotonic() < deadline:
        await asyncio.sleep(pause)
        if situation(there) != before[:-1] or appearance(there) != before:
            return True
        pause = min(1.5 * pause, LONGEST_PAUSE)
    return False


def own_keys(node: object) -> set[str]:
    """Return the keys that the app binds for a widget or a screen."""
    own = [one for one in type(node).__mro__ if one.__module__.startswith("antiphon.")]
    tables = (vars(one).get("BINDINGS", ()) for one in own)
    found = [one for table in tables for one in table if isinstance(one, Binding)]
    return set(BindingsMap(found).key_to_bindings)
