"""Screens that are dismissed once: Textual takes the next one away for a second dismissal."""

from __future__ import annotations

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.command import CommandList, CommandPalette
from textual.screen import Screen
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
    """Command palette that moves in its list only once that is laid out, and runs one command."""

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
