"""Texts that others are writing out of sight: unsent drafts, and the end of what is streamed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from antiphon.render.display import sanitize_for_display
from antiphon.render.markdown_source import MarkdownSource
from antiphon.render.wrap import line_ranges
from antiphon.widgets.block_list import Draft
from antiphon.widgets.status.line import StatusSpan, cut_to, end_of, fit
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


class LiveStrip(ThemedWidget):
    """`aria  …and rests on it.▌  ▼ 14`, in one or two rows; not there while nobody writes."""

    class StripClicked(Message):
        """The person wants to go where somebody is writing."""

    DEFAULT_CSS = """
    LiveStrip { height: auto; width: 1fr; }
    """

    margin: reactive[int] = reactive(1)
    """Blank columns at the left."""
    indent: reactive[int] = reactive(0)
    """Columns of the cells' gutter, in which names stand: the text stands behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.live: LiveText | None = None

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
        side = self._side(y)
        if y == last:
            spans.append(StatusSpan("▌", Style(color=author.color)))
            left = room - cell_len(rows[y]) - 1
            behind = cut_to(sanitize_for_display(live.behind.expandtabs(_TAB)), left)
            spans.append(StatusSpan(behind, theme.dim))
        return fit(spans, side, width, ground, margin=self.margin)

    def _side(self, y: int) -> list[StatusSpan]:
        live, theme = self.live, self.cell_theme
        assert live is not None
        if y == 0 and live.unread:
            return [StatusSpan(f"▼ {live.unread}", theme.unread)]
        if y == self._row_count - 1 and live.others:
            return [StatusSpan(f"+{live.others}", theme.dim)]
        return []
