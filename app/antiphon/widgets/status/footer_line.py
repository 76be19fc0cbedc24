"""The mode and the keys that work now."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from antiphon.action import shown_key
from antiphon.action_context import Situation
from antiphon.keymap import footer_actions
from antiphon.render.cell_theme import CellTheme
from antiphon.widgets.status.line import Piece, StatusLine


class FooterLine(StatusLine):
    """` EDIT  Esc leave  Ctrl+Z undo mine  F1 help`; what does not fit is dropped at the right."""

    def __init__(self, theme: CellTheme) -> None:
        super().__init__(theme)
        self._situation = Situation()

    def show(self, situation: Situation) -> None:
        """Which keys are named from now on."""
        self._situation = situation
        self.say(situation)

    def pieces(self, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        theme, situation = self.theme, self._situation
        pieces = [Piece(situation.mode_word, theme.focus)]
        room = width - 2 - cell_len(situation.mode_word)
        for action in footer_actions(situation):
            key = shown_key(action.keys[0])
            words = action.label(situation)
            needed = cell_len(key) + cell_len(words) + 3
            if needed > room:
                break
            room -= needed
            pieces += [
                Piece("  ", theme.dim),
                Piece(key, theme.text),
                Piece(f" {words}", theme.dim),
            ]
        return pieces, ()
