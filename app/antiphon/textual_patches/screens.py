"""Screens of Textual: dismissed once, replaced under others, and gone for good.

Textual takes the next screen away for a second dismissal of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from textual import events
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.command import CommandList, CommandPalette
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Button, Input

Result = TypeVar("Result")


class DismissOnceMixin(Screen[Result]):
    """Screen that stays dismissed when a second click, sent before it was gone, comes to it."""

    @property
    def is_dismissed(self) -> bool:
        return self not in self.app.screen_stack

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        return AwaitComplete() if self.is_dismissed else super().dismiss(result)


class LaidOutPalette(CommandPalette, DismissOnceMixin[None]):
    """Command palette that moves in its list only once that is laid out, and runs one command.

    A sign that is typed first may lead elsewhere.
    """

    def __init__(self, leads: Mapping[str, Callable[[], object]], *, id: str) -> None:
        """`leads` are what signs do in the place of the palette."""
        super().__init__(id=id)
        self._leads = leads

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.value in self._leads and not self.is_dismissed:
            event.prevent_default()
            event.stop()
            self.dismiss()
            self._leads[event.value]()

    def dismiss(self, result: None = None) -> AwaitComplete:
        # Whoever takes the palette away, a search would look for its list and end the app.
        self._cancel_gather_commands()
        return super().dismiss(result)

    def _action_command_list(self, action: str) -> None:
        # Textual looks for the row of an entry that has none yet, and the app would end.
        if self.query_one(CommandList).scrollable_content_region:
            super()._action_command_list(action)

    def _select_or_command(self, event: Input.Submitted | Button.Pressed | None = None) -> None:
        if not self.is_dismissed:  # by the first click of two
            super()._select_or_command(event)


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
