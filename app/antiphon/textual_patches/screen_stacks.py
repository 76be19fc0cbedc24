"""Screens of Textual's modes: what stands over one that is replaced stays open over the next."""

from __future__ import annotations

from textual import events
from textual.app import App


def move_covers(app: App[None], mode: str) -> None:
    """Put what stands over the first screen of a mode over the one that is shown now."""
    former, shown = app._screen_stacks[mode], app._screen_stack  # noqa: SLF001
    covers = former[1:]
    if covers:
        del former[1:]
        app.screen.post_message(events.ScreenSuspend())
        shown.extend(covers)
        app.screen.post_message(events.ScreenResume())
