"""Keys and what they do: of a page in as many rows as they take, of the footer in one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len
from textual import events
from textual.geometry import Size
from textual.reactive import reactive
from textual.strip import Strip

from antiphon.actions import ActionContext, shown_key
from antiphon.keymap import KeyMap
from antiphon.render.cell_theme import CellTheme
from antiphon.widgets.status.line import Keys, StatusLine, StatusSpan, fit
from antiphon.widgets.themed import ThemedWidget

_GAP: Final = "  "
_MARGINS: Final = 2


def key_rows(keys: Keys, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
    """Return rows with the keys; a key and its words stand in one row."""
    rows: list[list[StatusSpan]] = [[]]
    for key, words in keys:
        taken = sum(cell_len(one.text) for one in rows[-1])
        if taken and taken + cell_len(f"{_GAP}{key} {words}") > width:
            rows.append([])
        if rows[-1]:
            rows[-1].append(StatusSpan(_GAP, theme.dim))
        rows[-1] += [StatusSpan(key, theme.focus), StatusSpan(f" {words}", theme.dim)]
    return rows


class KeyLines(ThemedWidget):
    """The keys of a page, at its end."""

    DEFAULT_CSS = """
    KeyLines { height: auto; width: 1fr; dock: bottom; }
    """

    keys: reactive[Keys] = reactive((), layout=True)

    def __init__(self, keys: Keys = ()) -> None:
        super().__init__()
        self.set_reactive(KeyLines.keys, keys)

    def rows(self, width: int) -> list[list[StatusSpan]]:
        return key_rows(self.keys, width, self.cell_theme)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.rows(width - _MARGINS))

    def render_line(self, y: int) -> Strip:
        width, page = self.size.width, self.cell_theme.background
        rows = self.rows(width - _MARGINS)
        return fit(rows[y], (), width, page) if y < len(rows) else Strip.blank(width, page)


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
            key, words = action.keys[0], self.situation.fill(action.words)
            end = at + 3 + cell_len(shown_key(key)) + cell_len(words)
            if end > width - 2:
                break
            yield key, words, range(at + 2, end)
            at = end
