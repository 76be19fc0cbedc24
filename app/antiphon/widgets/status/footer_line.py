"""The mode and the keys that work now."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.reactive import reactive

from antiphon.actions import ActionContext, shown_key
from antiphon.keymap import KeyMap
from antiphon.widgets.status.line import StatusLine, StatusSpan


class FooterLine(StatusLine):
    """` EDIT  Esc leave  Ctrl+Z undo mine  F1 help`; what does not fit is dropped at the right."""

    situation: reactive[ActionContext] = reactive(ActionContext())
    """Decides the keys named."""

    def __init__(self, keymap: KeyMap) -> None:
        super().__init__()
        self._keymap = keymap

    def pieces(self, width: int) -> tuple[Sequence[StatusSpan], Sequence[StatusSpan]]:
        theme, situation = self.cell_theme, self.situation
        pieces = [StatusSpan(situation.mode_word, theme.mode(situation.mode_word))]
        room = width - 2 - cell_len(situation.mode_word)
        for action in self._keymap.footer_actions(situation):
            key = shown_key(action.keys[0])
            words = action.label(situation)
            needed = cell_len(key) + cell_len(words) + 3
            if needed > room:
                break
            room -= needed
            pieces += [
                StatusSpan("  ", theme.dim),
                StatusSpan(key, theme.text),
                StatusSpan(f" {words}", theme.dim),
            ]
        return pieces, ()
