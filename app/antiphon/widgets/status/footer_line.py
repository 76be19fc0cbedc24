"""The mode and the keys that work now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from textual import events
from textual.reactive import reactive

from antiphon.actions import ActionContext, shown_key
from antiphon.keymap import KeyMap
from antiphon.widgets.status.line import StatusLine, StatusSpan


class FooterLine(StatusLine):
    """` EDIT  Esc leave  Ctrl+Z undo mine  F1 help`; what does not fit is dropped at the right.

    A click on a key presses it.
    """

    situation: reactive[ActionContext] = reactive(ActionContext())
    """State of the app, from which the keys that are shown follow."""

    def __init__(self, keymap: KeyMap) -> None:
        super().__init__()
        self._keymap = keymap

    def pieces(self, width: int) -> tuple[Sequence[StatusSpan], Sequence[StatusSpan]]:
        theme, word = self.cell_theme, self.situation.mode_word
        pieces = [StatusSpan(word, theme.mode(word))]
        for key, words, _ in self._keys(width):
            pieces += [
                StatusSpan("  ", theme.dim),
                StatusSpan(shown_key(key), theme.text),
                StatusSpan(f" {words}", theme.dim),
            ]
        return pieces, ()

    def on_click(self, event: events.Click) -> None:
        """Press the key that was clicked."""
        for key, _, columns in self._keys(self.size.width):
            if event.x - self.margin in columns:
                shown = shown_key(key)
                is_text = len(shown) == 1 and shown.isascii()
                self.app.post_message(events.Key(key, shown if is_text else None))

    def _keys(self, width: int) -> Iterator[tuple[str, str, range]]:
        """Yield each key for which there is room, what it does, and its columns."""
        at = cell_len(self.situation.mode_word)
        for action in self._keymap.footer_actions(self.situation):
            key, words = action.keys[0], action.label(self.situation)
            end = at + 3 + cell_len(shown_key(key)) + cell_len(words)
            if end > width - 2:
                break
            yield key, words, range(at + 2, end)
            at = end
