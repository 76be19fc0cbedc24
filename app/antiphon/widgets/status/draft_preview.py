"""Drafts that others are writing and have not sent: a dim line each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from antiphon.render.display import sanitize_for_display
from antiphon.widgets.block_list import Draft
from antiphon.widgets.status.line import StatusSpan, end_of, fit
from antiphon.widgets.themed import ThemedWidget

MAX_LINES: Final = 3

NAME_COLUMNS: Final = 6
"""The least width of a name in the gutter, with the space after it."""


class DraftPreview(ThemedWidget):
    """`guest › I wonder whether…`, above the composer."""

    @dataclass
    class DraftClicked(Message):
        """Somebody else's draft was clicked."""

        block: str

    DEFAULT_CSS = """
    DraftPreview { height: auto; width: 1fr; }
    """

    margin: reactive[int] = reactive(1)
    """Blank columns at the left."""

    def __init__(self) -> None:
        super().__init__()
        self._drafts: tuple[Draft, ...] = ()

    def show(self, drafts: Sequence[Draft]) -> None:
        """The drafts with something in them, the latest ones if there are many."""
        shown = tuple(draft for draft in drafts if draft.text.strip())[-MAX_LINES:]
        if shown != self._drafts:
            grown = len(shown) != len(self._drafts)
            self._drafts = shown
            self.refresh(layout=grown)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._drafts)

    def on_click(self, event: events.Click) -> None:
        if event.y < len(self._drafts):
            self.post_message(self.DraftClicked(self._drafts[event.y].block))

    def render_line(self, y: int) -> Strip:
        width, theme = self.size.width, self.cell_theme
        if y >= len(self._drafts):
            return Strip.blank(width, theme.background)
        draft = self._drafts[y]
        # What is being typed is at the end: the end is what is shown.
        text = " ".join(sanitize_for_display(draft.text[-4 * width :]).split())
        name = f"{draft.username} ".ljust(NAME_COLUMNS if not self.margin else 0)
        text = end_of(text, max(8, width - cell_len(name) - 4))
        return fit(
            [
                StatusSpan(name, theme.author(draft.colour)),
                StatusSpan("› ", theme.dim),
                StatusSpan(text, theme.dim),
            ],
            (),
            width,
            theme.background,
            margin=self.margin,
        )
