"""Column of headings and prompts, and of the prompt that is being answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from antiphon.render.wrap import WrapPiece, wrap
from antiphon.widgets.status import StatusSpan, fit
from antiphon.widgets.themed import ThemedWidget

LEAST_WIDTH: Final = 28
MOST_WIDTH: Final = 40

_PROMPT_ROWS: Final = 4
"""Rows of the prompt that is being answered."""

_FOOT: Final = _PROMPT_ROWS + 2
"""Rows at the bottom: a blank one, the title, the prompt."""

_MARK: Final = "┃ "
_MOST_INDENTED: Final = 3
"""Levels of headings that are told apart."""


class OutlineEntry(NamedTuple):
    """A place in the document that the outline leads to."""

    block: str
    offset: int
    level: int
    """Of a heading; 0 is a prompt."""
    title: str
    colour: int = 0
    """Slot of the author of a prompt."""


class Prompt(NamedTuple):
    """A message that is being answered."""

    name: str
    colour: int
    text: str


class _OutlineState(NamedTuple):
    """All that the column shows."""

    entries: tuple[OutlineEntry, ...] = ()
    seen: frozenset[int] = frozenset()
    """Indexes of the entries on the screen."""
    current: int | None = None
    prompt: Prompt | None = None


Row = tuple[tuple[StatusSpan, ...], OutlineEntry | None]
"""The spans of a row, and where it leads."""


class Outline(ThemedWidget):
    """Entries around the one in view, and at the bottom the prompt that is being answered.

    Only rows that say something else are redrawn.
    """

    DEFAULT_CSS = """
    Outline { height: 100%; display: none; }
    Outline.-open { display: block; }
    """

    @dataclass
    class Clicked(Message):
        """An entry was clicked."""

        entry: OutlineEntry

    def __init__(self) -> None:
        super().__init__()
        self._state = _OutlineState()
        self._rows: list[Row] = []
        self.rows_drawn = 0
        """Rows that were redrawn so far; for measuring."""

    @property
    def room(self) -> int:
        """Rows for entries."""
        return max(0, self.size.height - 1 - _FOOT)

    def show(
        self,
        entries: Sequence[OutlineEntry],
        seen: frozenset[int],
        current: int | None,
        prompt: Prompt | None,
    ) -> None:
        """Show entries, of which some are on the screen, and one is where the person reads."""
        state = _OutlineState(tuple(entries), seen, current, prompt)
        if state != self._state:
            self._state = state
            self._layout_rows()

    def theme_changed(self) -> None:
        self._rows = self._new_rows()
        self.refresh()

    def on_resize(self) -> None:
        self._rows = self._new_rows()
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        entry = self._rows[event.y][1] if event.y < len(self._rows) else None
        if entry is not None:
            self.post_message(self.Clicked(entry))

    def _layout_rows(self) -> None:
        before, self._rows = self._rows, self._new_rows()
        changed = [y for y in range(len(self._rows)) if before[y : y + 1] != self._rows[y : y + 1]]
        self.rows_drawn += len(changed)
        if changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def render_line(self, y: int) -> Strip:
        width, page = self.size.width, self.cell_theme.background
        left = self._rows[y][0] if y < len(self._rows) else ()
        return fit(left, (), width, page).adjust_cell_length(width, page)

    def _new_rows(self) -> list[Row]:
        theme, state = self.cell_theme, self._state
        rows: list[Row] = [((StatusSpan("outline", theme.dim),), None)]
        rows += [(self._spans(index), entry) for index, entry in enumerate(state.entries)]
        height = self.size.height
        rows = [*rows[: max(0, height - _FOOT)]]
        rows += [((), None)] * (height - _FOOT - len(rows))
        return (rows + self._prompt_rows(theme.text, theme.dim))[:height]

    def _spans(self, index: int) -> tuple[StatusSpan, ...]:
        theme, state = self.cell_theme, self._state
        entry = state.entries[index]
        bar = StatusSpan(_MARK if index == state.current else "  ", theme.focus)
        indent = StatusSpan("  " * min(entry.level, _MOST_INDENTED), theme.dim)
        is_bright = index in state.seen or index == state.current
        style = theme.text if is_bright else theme.dim
        if entry.level == 0:
            style = theme.author(entry.colour)
        return bar, indent, StatusSpan(entry.title, style)

    def _prompt_rows(self, text: Style, dim: Style) -> list[Row]:
        rows: list[Row] = [((), None)]
        prompt, room = self._state.prompt, max(1, self.size.width - 2)
        if prompt is not None:
            name = StatusSpan(prompt.name, self.cell_theme.author(prompt.colour))
            rows.append(((StatusSpan("answers ", dim), name), None))
            lines = list(wrap([WrapPiece(prompt.text, text)], room))
            shown = ["".join(piece.text for piece in line) for line in lines[:_PROMPT_ROWS]]
            if len(lines) > _PROMPT_ROWS:
                shown[-1] = shown[-1][: room - 1].rstrip() + "…"
            rows += [((StatusSpan(line, text),), None) for line in shown]
        return rows + [((), None)] * (_FOOT - len(rows))
