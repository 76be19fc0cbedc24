"""The row above the composer: a hint about what has just happened, else what to try."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from rich.style import Style
from textual.timer import Timer

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import sanitize_for_display
from antiphon.time_format import format_absolute
from antiphon.widgets.status.line import StatusLine, StatusSpan

HINT_SECONDS: Final = 6.0

WEIGHTY_SECONDS: Final = 12.0
"""How long it takes to read what must not be missed."""


class HintBar(StatusLine):
    """Blank most of the time; it always has its row, so that nothing moves when it speaks."""

    def __init__(self, theme: CellTheme) -> None:
        super().__init__(theme)
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

    def pieces(self, width: int) -> tuple[Sequence[StatusSpan], Sequence[StatusSpan]]:
        if self._hint is not None:
            accent = Style(color=self.theme.unread.color)
            return [StatusSpan(self._hint, accent)], ()
        if self._attempt is not None:
            return [
                StatusSpan("TRY ", self.theme.focus),
                StatusSpan(self._attempt, self.theme.text),
            ], ()
        return (), ()
