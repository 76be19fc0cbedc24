"""References of Textual's app to widgets that have gone; a whole screen hangs on each."""

from __future__ import annotations

from textual.app import App
from textual.widget import Widget


def remove_watchers(app: App[None], widget: Widget) -> None:
    """Remove what a widget watches of the app: Textual does so only when that changes."""
    for watchers in getattr(app, "__watchers", {}).values():
        watchers[:] = [watcher for watcher in watchers if watcher[0] is not widget]


def forget_first_screen(app: App[None]) -> None:
    """Let the app take the screen that is shown for its default one, not the first for ever."""
    app._compose_screen = None  # noqa: SLF001
