"""Screens of Textual: what stands over one that is replaced, what refers to one that is gone."""

from __future__ import annotations

from textual import events
from textual.app import App
from textual.widget import Widget


def move_covers(app: App[None], mode: str) -> None:
    """Put what stands over the first screen of a mode over the one that is shown now."""
    former, shown = app._screen_stacks[mode], app._screen_stack  # noqa: SLF001
    covers = former[1:]
    if covers:
        del former[1:]
        app.screen.post_message(events.ScreenSuspend())
        shown.extend(covers)
        app.screen.post_message(events.ScreenResume())


def remove_watchers(app: App[None], widget: Widget) -> None:
    """Remove what a widget watches of the app: Textual does so only when that changes."""
    for watchers in getattr(app, "__watchers", {}).values():
        watchers[:] = [watcher for watcher in watchers if watcher[0] is not widget]


def forget_first_screen(app: App[None]) -> None:
    """Let the app take the screen that is shown for its default one, not the first for ever."""
    app._compose_screen = None  # noqa: SLF001
