"""The choices for what is being typed, over the end of the document."""

from __future__ import annotations

from rich.cells import cell_len
from textual.geometry import Size
from textual.strip import Strip

from antiphon.actions import shown_key
from antiphon.completion import Completion, CompletionChoice
from antiphon.render.display import displayable_in_a_row
from antiphon.widgets.status import StatusSpan, cut_to
from antiphon.widgets.status.line import fit
from antiphon.widgets.themed import ThemedWidget

MOST_ROWS = 8

_DETAIL_COLUMN = 24


class CompletionList(ThemedWidget):
    """A few rows; not there while nothing can be completed."""

    DEFAULT_CSS = """
    CompletionList { layer: above; dock: bottom; width: 100%; height: auto; display: none; }
    CompletionList.-open { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.completion: Completion | None = None
        self.has_moved = False
        """Whether the person has chosen a line; else the first is only the likely one."""
        self._at = 0
        self.margin = 1
        """The column in which it begins."""

    @property
    def is_open(self) -> bool:
        return self.completion is not None

    @property
    def chosen(self) -> CompletionChoice | None:
        """The choice that Tab takes."""
        return None if self.completion is None else self.completion.choices[self._at]

    def show(self, completion: Completion | None) -> None:
        if completion == self.completion:
            return
        self.completion, self._at, self.has_moved = completion, 0, False
        self.set_class(completion is not None, "-open")
        self.refresh(layout=True)

    @property
    def taken_by(self) -> str:
        """The key that takes the choice."""
        is_command = self.completion is not None and self.completion.is_command
        return "enter" if self.has_moved or is_command else "tab"

    def move(self, step: int) -> bool:
        """Choose the next line, around the ends; False if that changes nothing."""
        if self.completion is None:
            return False
        before = self._at, self.taken_by
        self._at = (self._at + step) % len(self.completion.choices)
        self.has_moved = True
        self.refresh()
        return (self._at, self.taken_by) != before

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        count = 0 if self.completion is None else len(self.completion.choices)
        return max(1, min(MOST_ROWS, count, container.height - 1))

    def render_line(self, y: int) -> Strip:
        width, theme = self.size.width, self.cell_theme
        ground = theme.background + theme.panel
        choices = () if self.completion is None else self.completion.choices
        top = max(0, min(self._at - self.size.height // 2, len(choices) - self.size.height))
        if top + y >= len(choices):
            return Strip.blank(width, ground)
        choice = choices[top + y]
        is_chosen = top + y == self._at
        text = displayable_in_a_row(choice.text.rstrip())
        gap = " " * max(2, _DETAIL_COLUMN - cell_len(text))
        mark = "▸ " if is_chosen else "  "
        room = width - self.margin - 1
        left = [
            StatusSpan(mark, theme.focus),
            StatusSpan(cut_to(text, room - 2), theme.focus if is_chosen else theme.text),
            StatusSpan(gap + displayable_in_a_row(choice.detail), theme.dim),
        ]
        more = len(choices) - self.size.height
        is_last = y == self.size.height - 1 and more > 0
        notes = [shown_key(self.taken_by)] if is_chosen else []
        notes += [f"{self._at + 1}/{len(choices)}"] if is_last else []
        right = [StatusSpan(" · ".join(notes), theme.dim)] if notes else []
        return fit(left, right, width, ground, margin=self.margin)
