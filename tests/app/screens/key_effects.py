"""Whether a key has done anything that a person can see."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from tests.app.opened import Opened
from tests.app.rows import terminal_rows

PATIENCE: Final = 5.0
"""Seconds in which an effect has to be there."""


def appearance(there: Opened) -> tuple[object, ...]:
    """Everything by which a person notices that something has happened."""
    app, screen = there.app, there.screen
    editor = screen.area.editor
    return (
        tuple(tuple(row) for row in terminal_rows(app)),
        len(app.screen_stack),
        screen,
        screen.mode,
        screen.composer.draft.text,
        None if editor is None else (editor.cursor_offset, editor.text),
        app.clipboard,
        [id(one) for one in screen._hints],  # noqa: SLF001  of equal ones, too
        screen.hint_shown,
    )


async def noticed(there: Opened, key: str, patience: float = PATIENCE) -> bool:
    """Press a key; return whether anything is different afterwards."""
    before = appearance(there)
    there.burst(key)
    deadline = time.monotonic() + patience
    while appearance(there) == before:
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.01)
    return True
