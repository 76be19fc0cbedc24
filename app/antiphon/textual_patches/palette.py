"""Textual's command palette, without its failure at keys that come before its list has a size."""

from __future__ import annotations

from textual.command import CommandList, CommandPalette


class LaidOutPalette(CommandPalette):
    """Command palette that moves in its list only once that is laid out."""

    def _action_command_list(self, action: str) -> None:
        # Textual looks for the row of an entry that has none yet, and the app would end.
        if self.query_one(CommandList).scrollable_content_region:
            super()._action_command_list(action)
