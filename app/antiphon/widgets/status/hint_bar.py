"""The rule above the composer: a hint about what has just happened, and what to try."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.timer import Timer

from antiphon.widgets.status.line import StatusLine, StatusSpan, fit, in_one_line, wrap_words

HINT_SECONDS: Final = 6.0

MAX_ROWS: Final = 3

_RULE_END: Final = 2
"""Columns of the rule at the right of what is new."""

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
    """A rule in the colour of the mode, and words on it; more rows for a long hint only.

    What is new below the view stands at its right end: `── ▼ 14 new lines · Ctrl+End ──`.
    """

    class CountClicked(Message):
        """The person wants to see what is new."""

    DEFAULT_CSS = """
    HintBar { height: auto; }
    """

    mode: reactive[str] = reactive("")
    """Word of the mode, whose colour the rule has."""
    indent: reactive[int] = reactive(3)
    """Columns before the words: in line with the text of the cells."""

    unread: reactive[int] = reactive(0)
    """Lines that have come below the view since the tail was left."""

    def __init__(self, log: HintLog | None = None, *, tail_key: str = "") -> None:
        """`log` takes every hint, also those that another one keeps from the screen.

        `tail_key` leads to what is new; empty if no key does.
        """
        super().__init__()
        self._log = log or HintLog()
        self._tail_key = tail_key
        self.hint: str | None = None
        self._attempt: str | None = None
        self._label = ""
        self._timer: Timer | None = None
        self._is_weighty = False
        self._weighty: deque[str] = deque()

    def show_hint(self, text: str, *, weighty: bool = False) -> None:
        """Say one sentence for a few seconds.

        What is weighty is said for longer, one after the other, and nothing else meanwhile.
        """
        text = in_one_line(text)
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
        self.hint = text
        self._say()

    def clear_hint(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self.hint = None
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
        self.update_spans((self.hint, self._label, self._attempt))
        if self.is_attached and self.get_content_height(Size(), Size(), self.size.width) != (
            self.size.height
        ):
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._rows(width)) + (self._attempt is not None) or 1

    def _rows(self, width: int) -> list[str]:
        rows = wrap_words(self.hint or "", max(width - self.indent - 1, 1))
        return [*rows[: MAX_ROWS - 1], " ".join(rows[MAX_ROWS - 1 :])] if rows[MAX_ROWS:] else rows

    def render_line(self, y: int) -> Strip:
        width, theme = self.size.width, self.cell_theme
        ground = theme.background
        rule = Style(color=theme.mode(self.mode).color)
        words, strip, end = self._words(y), Strip([]), 0
        if words:
            lead = "─" * (self.indent - 1) if y == 0 else " " * (self.indent - 1)
            strip = fit([StatusSpan(f"{lead} ", rule), *words], (), width, ground, margin=0)
            end = cell_len(strip.text.rstrip()) + 1
        if y > 0 or end >= width:
            return strip
        new = self._unread_words(width - end - 2 * _RULE_END)
        after = "─" * _RULE_END if new else ""
        right = [
            Segment("─" * (width - end - cell_len(new + after)), ground + rule),
            Segment(new, ground + theme.unread),
            Segment(after, ground + rule),
        ]
        return Strip.join([strip.crop(0, end), Strip(right)])

    def _unread_words(self, room: int) -> str:
        """Return how much is new, in as many words as there is room for."""
        if not self.unread:
            return ""
        count = f" ▼ {self.unread:,} "
        noun = "line" if self.unread == 1 else "lines"
        whole = f"{count}new {noun} {f'· {self._tail_key} ' if self._tail_key else ''}"
        return next((one for one in (whole, count) if cell_len(one) <= room), "")

    def on_click(self, event: Click) -> None:
        if self.unread:
            event.stop()
            self.post_message(self.CountClicked())

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
