"""Column of headings and prompts, and of the prompt that is being answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from rich.style import Style
from textual import events
from textual.message import Message

from antiphon.render.wrap import WrapPiece, wrap
from antiphon.widgets.status import Row, StatusRows, StatusSpan

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


class OutlineState(NamedTuple):
    """All that the column shows."""

    entries: tuple[OutlineEntry, ...] = ()
    seen: frozenset[int] = frozenset()
    """Indexes of the entries on the screen."""
    current: int | None = None
    """The entry where the person reads."""
    prompt: Prompt | None = None


class Outline(StatusRows):
    """Entries around the one in view, and at the bottom the prompt that is being answered."""

    DEFAULT_CSS = """
    Outline { height: 100%; display: none; }
    Outline.-open { display: block; }
    """

    @dataclass
    class EntryClicked(Message):
        """An entry was clicked."""

        entry: OutlineEntry

    _state = OutlineState()

    @property
    def room(self) -> int:
        return max(0, self.size.height - 1 - _FOOT)

    def show(self, state: OutlineState) -> None:
        if state != self._state:
            self._state = state
            self._layout_rows()

    def on_click(self, event: events.Click) -> None:
        entries = self._state.entries[: self.room]
        if 0 < event.y <= len(entries):
            self.post_message(self.EntryClicked(entries[event.y - 1]))

    def _new_rows(self) -> list[Row]:
        theme, state = self.cell_theme, self._state
        rows: list[Row] = [((StatusSpan("outline", theme.dim),), ())]
        rows += [(self._spans(index), ()) for index in range(len(state.entries))]
        height = self.size.height
        rows = [*rows[: max(0, height - _FOOT)]]
        rows += [((), ())] * (height - _FOOT - len(rows))
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
        rows: list[Row] = [((), ())]
        prompt, room = self._state.prompt, max(1, self.size.width - 2)
        if prompt is not None:
            name = StatusSpan(prompt.name, self.cell_theme.author(prompt.colour))
            rows.append(((StatusSpan("answers ", dim), name), ()))
            lines = list(wrap([WrapPiece(prompt.text, text)], room))
            shown = ["".join(piece.text for piece in line) for line in lines[:_PROMPT_ROWS]]
            if len(lines) > _PROMPT_ROWS:
                shown[-1] = shown[-1][: room - 1].rstrip() + "…"
            rows += [((StatusSpan(line, text),), ()) for line in shown]
        return rows + [((), ())] * (_FOOT - len(rows))
