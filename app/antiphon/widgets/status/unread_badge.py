"""Over the last row of the document: how much has come since the tail was left."""

from __future__ import annotations

from collections.abc import Sequence

from textual.events import Click
from textual.message import Message

from antiphon.widgets.status.line import StatusLine, StatusSpan


class UnreadBadge(StatusLine):
    """`▼ 14 new lines · Ctrl+End`, at the right; not there while nothing is new."""

    DEFAULT_CSS = """
    UnreadBadge { layer: above; width: auto; display: none; }
    UnreadBadge.-new { display: block; }
    """

    class Clicked(Message):
        """The person wants to see what is new."""

    def __init__(self, key: str) -> None:
        """`key` leads to the end; empty if none does."""
        super().__init__()
        self._key = key
        self._lines = 0

    def show(self, lines: int) -> None:
        if lines != self._lines:
            self._lines = lines
            self.set_class(lines > 0, "-new")
            self.refresh(layout=True)

    def label(self) -> str:
        noun = "line" if self._lines == 1 else "lines"
        return f"▼ {self._lines} new {noun}{self._key and ' · '}{self._key}"

    def get_content_width(self, container: object, viewport: object) -> int:
        return len(self.label()) + 2

    def pieces(self, width: int) -> tuple[Sequence[StatusSpan], Sequence[StatusSpan]]:
        return [StatusSpan(self.label(), self.cell_theme.unread)], ()

    def on_click(self, event: Click) -> None:
        event.stop()
        self.post_message(self.Clicked())
