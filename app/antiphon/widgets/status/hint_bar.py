"""The row above the composer: a hint about what has just happened, else what to try."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len, chop_cells
from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip
from textual.timer import Timer

from antiphon.render.display import sanitize_for_display
from antiphon.time_format import format_absolute
from antiphon.widgets.status.line import StatusLine, StatusSpan, fit

HINT_SECONDS: Final = 6.0

MAX_ROWS: Final = 3

WEIGHTY_SECONDS: Final = 12.0
"""How long it takes to read what must not be missed."""


class HintBar(StatusLine):
    """Blank most of the time; always has a row, so that nothing moves when it says little."""

    DEFAULT_CSS = """
    HintBar { height: auto; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._hint: str | None = None
        self._attempt: str | None = None
        self._timer: Timer | None = None
        self._is_weighty = False
        self._weighty: deque[str] = deque()

    @property
    def hint(self) -> str | None:
        return self._hint

    def show_hint(self, text: str, *, weighty: bool = False) -> None:
        """Say one sentence for a few seconds.

        What is weighty is said for longer, one after the other, and nothing else meanwhile.
        """
        if self._is_weighty:
            if weighty:
                self._weighty.append(text)
            return
        if self._timer is not None:
            self._timer.stop()
        self._is_weighty = weighty
        self._timer = self.set_timer(WEIGHTY_SECONDS if weighty else HINT_SECONDS, self.clear_hint)
        self._hint = sanitize_for_display(format_absolute(" ".join(text.split())))
        self._say()

    def clear_hint(self) -> None:
        """The hint has been read."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._hint = None
        self._is_weighty = False
        self._say()
        if self._weighty:
            self.show_hint(self._weighty.popleft(), weighty=True)

    def suggest(self, text: str | None) -> None:
        """Set the text after `TRY:` while there is no hint."""
        self._attempt = text
        self._say()

    def _say(self) -> None:
        self.update_spans((self._hint, self._attempt))
        if self.is_attached and self.get_content_height(Size(), Size(), self.size.width) != (
            self.size.height
        ):
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._rows(width)) or 1

    def _rows(self, width: int) -> list[str]:
        rows = _wrap(self._hint or "", max(width - self.margin - 1, 1))
        return [*rows[: MAX_ROWS - 1], " ".join(rows[MAX_ROWS - 1 :])] if rows[MAX_ROWS:] else rows

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        rows = self._rows(width)
        if self._hint is None or y >= len(rows):
            return super().render_line(y)
        accent = Style(color=self.cell_theme.unread.color)
        page = self.cell_theme.background
        return fit([StatusSpan(rows[y], accent)], (), width, page, margin=self.margin)

    def pieces(self, width: int) -> tuple[Sequence[StatusSpan], Sequence[StatusSpan]]:
        if self._attempt is not None:
            return [
                StatusSpan("TRY ", self.cell_theme.focus),
                StatusSpan(self._attempt, self.cell_theme.text),
            ], ()
        return (), ()


def _wrap(text: str, width: int) -> list[str]:
    """Break a sentence between words, and words that are longer than a row anywhere."""
    rows: list[str] = []
    for word in text.split():
        for part in chop_cells(word, width):
            if rows and cell_len(rows[-1]) + 1 + cell_len(part) <= width:
                rows[-1] += f" {part}"
            else:
                rows.append(part)
    return rows
