"""Textual's command palette, without its failures at keys and clicks that it does not expect."""

from __future__ import annotations

from textual.await_complete import AwaitComplete
from textual.command import CommandList, CommandPalette
from textual.widgets import Button, Input

from antiphon.textual_patches.dismissal import DismissOnceMixin


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
