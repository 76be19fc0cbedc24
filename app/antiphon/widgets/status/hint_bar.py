"""The rule above the composer: a hint about what has just happened, and what to try."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.reactive import reactive
from textual.strip import Strip
from textual.timer import Timer

from antiphon.render.display import sanitize_for_display
from antiphon.time_format import format_absolute
from antiphon.widgets.status.line import StatusLine, StatusSpan, fit, wrap_words

HINT_SECONDS: Final = 6.0

MAX_ROWS: Final = 3

WEIGHTY_SECONDS: Final = 12.0
"""How long it takes to read what must not be missed."""


REMEMBERED: Final = 200
"""Past hints that can be read again."""


class PastHint(NamedTuple):
    """A hint as it was said, and when."""

    time: str
    """Of the day here: `10:05:30`."""
    text: str


class HintLog:
    """The hints of all screens of an app so far, the latest last."""

    def __init__(self) -> None:
        self._hints: deque[PastHint] = deque(maxlen=REMEMBERED)

    def add(self, text: str) -> None:
        self._hints.append(PastHint(time.strftime("%H:%M:%S"), text))

    def __iter__(self) -> Iterator[PastHint]:
        return iter(tuple(self._hints))


class HintBar(StatusLine):
    """A rule in the colour of the mode, and words on it; more rows for a long hint only."""

    DEFAULT_CSS = """
    HintBar { height: auto; }
    """

    mode: reactive[str] = reactive("")
    """Word of the mode, whose colour the rule has."""
    indent: reactive[int] = reactive(3)
    """Columns before the words: in line with the text of the cells."""

    def __init__(self, log: HintLog | None = None) -> None:
        """`log` takes every hint, also those that another one keeps from the screen."""
        super().__init__()
        self._log = log or HintLog()
        self._hint: str | None = None
        self._attempt: str | None = None
        self._label = ""
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
        text = sanitize_for_display(format_absolute(" ".join(text.split())))
        self._log.add(text)
        self._show(text, weighty)

    def _show(self, text: str, weighty: bool) -> None:
        if self._is_weighty:
            if weighty:
                self._weighty.append(text)
            return
        if self._timer is not None:
            self._timer.stop()
        self._is_weighty = weighty
        self._timer = self.set_timer(WEIGHTY_SECONDS if weighty else HINT_SECONDS, self.clear_hint)
        self._hint = text
        self._say()

    def clear_hint(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._hint = None
        self._is_weighty = False
        self._say()
        if self._weighty:
            self._show(self._weighty.popleft(), weighty=True)

    def suggest(self, text: str | None, *, label: str = "TRY") -> None:
        """Set the suggestion, shown below a hint if there is one, and the word before it."""
        self._attempt = text
        self._label = label
        self._say()

    def _say(self) -> None:
        self.update_spans((self._hint, self._label, self._attempt))
        if self.is_attached and self.get_content_height(Size(), Size(), self.size.width) != (
            self.size.height
        ):
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._rows(width)) + (self._attempt is not None) or 1

    def _rows(self, width: int) -> list[str]:
        rows = wrap_words(self._hint or "", max(width - self.indent - 1, 1))
        return [*rows[: MAX_ROWS - 1], " ".join(rows[MAX_ROWS - 1 :])] if rows[MAX_ROWS:] else rows

    def render_line(self, y: int) -> Strip:
        width, theme = self.size.width, self.cell_theme
        rule = Style(color=theme.mode(self.mode).color)
        words = self._words(y)
        if not words:
            return Strip([Segment("─" * width, theme.background + rule)])
        lead = "─" * (self.indent - 1) if y == 0 else " " * (self.indent - 1)
        strip = fit([StatusSpan(f"{lead} ", rule), *words], (), width, theme.background, margin=0)
        end = cell_len(strip.text.rstrip()) + 1
        if y == 0 and end < width:
            strip = Strip.join(
                [strip.crop(0, end), Strip([Segment("─" * (width - end), theme.background + rule)])]
            )
        return strip

    def _words(self, y: int) -> Sequence[StatusSpan]:
        theme, rows = self.cell_theme, self._rows(self.size.width)
        if y < len(rows):
            return [StatusSpan(rows[y], Style(color=theme.unread.color))]
        if self._attempt is not None:
            return [
                StatusSpan(f"{self._label} ", theme.focus),
                StatusSpan(self._attempt, theme.text),
            ]
        return ()
