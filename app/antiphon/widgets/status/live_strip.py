"""The rows above the composer: what others write out of sight, what has happened, what to try."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.timer import Timer

from antiphon.render.display import sanitize_for_display
from antiphon.render.markdown_source import MarkdownSource
from antiphon.render.wrap import line_ranges
from antiphon.widgets.block_list import Draft
from antiphon.widgets.status.line import (
    StatusLine,
    StatusSpan,
    cut_to,
    end_of,
    fit,
    in_one_line,
    wrap_words,
)

MAX_LINES: Final = 3

NAME_COLUMNS: Final = 6
"""The least width of a name in the gutter, with the space after it."""


class DraftPreview(StatusLine):
    """`guest › I wonder whether…`, above the composer."""

    DEFAULT_CSS = """
    DraftPreview { height: auto; }
    """

    _drafts: tuple[Draft, ...] = ()

    def show(self, drafts: Sequence[Draft]) -> None:
        """The drafts with something in them, the latest ones if there are many."""
        shown = tuple(draft for draft in drafts if draft.text.strip())[-MAX_LINES:]
        if shown != self._drafts:
            grown = len(shown) != len(self._drafts)
            self._drafts = shown
            self.refresh(layout=grown)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._drafts)

    def render_line(self, y: int) -> Strip:
        width, theme = self.size.width, self.cell_theme
        if y >= len(self._drafts):
            return Strip.blank(width, theme.background)
        draft = self._drafts[y]
        # What is being typed is at the end: the end is what is shown.
        text = " ".join(sanitize_for_display(draft.text[-4 * width :]).split())
        name = f"{draft.username} ".ljust(NAME_COLUMNS if not self.margin else 0)
        text = end_of(text, max(8, width - cell_len(name) - 4))
        spans = [StatusSpan(name, theme.author(draft.colour)), StatusSpan(f"› {text}", theme.dim)]
        return fit(spans, (), width, theme.background, margin=self.margin)


TAIL: Final = 1000
"""Characters of a text that are wrapped at least to find its last rows, if it has so many."""

TALL: Final = 20
"""Rows of a terminal from which on two rows of the text are shown."""

_NAME_COLUMNS: Final = 16
_SIDE_COLUMNS: Final = 8
_TAB: Final = 4
_FENCE: Final = "```"


@dataclass(frozen=True, slots=True)
class LiveText:
    """The surroundings of a place where somebody is writing."""

    name: str
    colour: int
    before: str
    """The text in front of it, or the end of that."""
    behind: str = ""
    """The rest of the line."""
    others: int = 0
    """How many more are writing out of sight."""
    unread: int = 0
    """Lines below the view that have not been seen."""
    is_markdown: bool = False
    """The text is shown without its marks."""


def surroundings(text: str, offset: int, *, is_markdown: bool = False) -> tuple[str, str]:
    """Return the end of a text before an offset, and the rest of the line behind it."""
    # A start that stays where it is for a while: rows break where they did before.
    start = max(0, offset // TAIL - 1) * TAIL
    before = text[start:offset]
    if is_markdown and f"\n{text[:start]}".count(f"\n{_FENCE}") % 2:
        before = f"{_FENCE}\n{before}"
    return before, text[offset : offset + TAIL].partition("\n")[0]


def last_rows(text: str, width: int, count: int, *, is_markdown: bool = False) -> list[str]:
    """Return the last rows of a text that is wrapped at `width`; blank ones are left out."""
    rows: list[str] = []
    lines = text.split("\n")
    source = MarkdownSource(lines)
    for at in reversed(range(len(lines))):
        plain = source.without_marks(at) if is_markdown else lines[at]
        shown = sanitize_for_display(plain.expandtabs(_TAB))
        if not shown.strip():
            continue
        broken = [shown[start:end].rstrip() for start, end in line_ranges(shown, width)]
        rows = [*broken, *rows]
        if len(rows) >= count:
            break
    return rows[-count:]


class LiveStrip(StatusLine):
    """`aria  …and rests on it.▌  ▼ 14`, in one or two rows; not there while nobody writes."""

    class StripClicked(Message):
        """The person wants to go where somebody is writing."""

    DEFAULT_CSS = """
    LiveStrip { height: auto; }
    """

    indent: reactive[int] = reactive(0)
    """Columns of the cells' gutter, in which names stand: the text stands behind it."""

    live: LiveText | None = None

    def show(self, live: LiveText | None) -> None:
        if live == self.live:
            return
        appears = (live is None) != (self.live is None)
        self.live = live
        self.refresh(layout=appears)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return 0 if self.live is None else self._row_count

    @property
    def _row_count(self) -> int:
        return 2 if self.app.size.height >= TALL else 1

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.post_message(self.StripClicked())

    def render_line(self, y: int) -> Strip:
        width, theme, live = self.size.width, self.cell_theme, self.live
        ground = theme.background + theme.strip
        if live is None or y >= self._row_count:
            return Strip.blank(width, ground)
        name = cut_to(live.name, _NAME_COLUMNS)
        lead = max(cell_len(name) + 2, 0 if self.margin else self.indent)
        room = max(8, width - self.margin - lead - _SIDE_COLUMNS - 1)
        # A column is left for the cursor behind a full row.
        rows = last_rows(live.before, room - 1, self._row_count, is_markdown=live.is_markdown)
        last = max(0, len(rows) - 1)
        rows += [""] * (self._row_count - len(rows))
        author = theme.author(live.colour)
        spans = [StatusSpan(name if y == 0 else "", author)]
        spans.append(StatusSpan(" " * (lead - cell_len(spans[0].text)), ground))
        spans.append(StatusSpan(rows[y], theme.text))
        side: list[StatusSpan] = []
        if y == 0 and live.unread:
            side = [StatusSpan(f"▼ {live.unread}", theme.unread)]
        elif y == self._row_count - 1 and live.others:
            side = [StatusSpan(f"+{live.others}", theme.dim)]
        if y == last:
            spans.append(StatusSpan("▌", Style(color=author.color)))
            left = room - cell_len(rows[y]) - 1
            behind = cut_to(sanitize_for_display(live.behind.expandtabs(_TAB)), left)
            spans.append(StatusSpan(behind, theme.dim))
        return fit(spans, side, width, ground, margin=self.margin)


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
