"""Rows that are drawn again only when they change: keys with what they do, a text to be found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, Protocol

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widgets import Input

from antiphon.actions import ActionContext, Owner, shown_key
from antiphon.keymap import KeyMap, bindings
from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import sanitize_for_display
from antiphon.render.wrap import line_ranges
from antiphon.time_format import format_absolute
from antiphon.widgets.themed import ThemedWidget


class StatusSpan(NamedTuple):
    """Some text in one style."""

    text: str
    style: Style


def cut_to(text: str, width: int) -> str:
    """`text` in at most `width` columns, `…` where something is missing."""
    if cell_len(text) <= width:
        return text
    if width <= 0:
        return ""
    return set_cell_size(text, width - 1).rstrip() + "…"


def end_of(text: str, width: int) -> str:
    """The end of `text` in at most `width` columns, `…` where something is missing before it."""
    if cell_len(text) <= width:
        return text
    kept = text[-width:]
    while kept and cell_len(kept) >= width:
        kept = kept[1:]
    return "…" + kept


def wrap_words(text: str, width: int) -> list[str]:
    """Break a sentence between words, and words that are longer than a row anywhere."""
    text = " ".join(text.split())
    return [text[start:end] for start, end in line_ranges(text, width)] if text else []


def in_one_line(text: str) -> str:
    """Return a sentence as a row can show it, with the times in it as they are here."""
    return sanitize_for_display(format_absolute(" ".join(text.split())))


def fit(
    left: Sequence[StatusSpan],
    right: Sequence[StatusSpan],
    width: int,
    base: Style,
    *,
    margin: int = 1,
) -> Strip:
    """`left` and, at the other end, `right` in exactly `width` columns; `left` is cut first.

    `margin` columns at the left, and one at the right, stay blank.
    """
    right_width = sum(cell_len(piece.text) for piece in right)
    room = width - margin - 1 - right_width - (2 if right else 0)
    segments = [Segment(" " * margin, base)]
    used = 0
    for piece in left:
        text = cut_to(piece.text, room - used)
        if text:
            segments.append(Segment(text, base + piece.style))
            used += cell_len(text)
        if text != piece.text:
            break
    gap = width - margin - 1 - right_width - used
    segments.append(Segment(" " * max(0, gap), base))
    segments.extend(Segment(piece.text, base + piece.style) for piece in right)
    segments.append(Segment(" ", base))
    return Strip(segments).adjust_cell_length(width, base)


class StatusLine(ThemedWidget):
    """One row; a subclass makes its pieces.

    It is drawn by hand: a `Static` takes more than three times as long for the same row, and cannot
    cut the left end while it keeps the right one whole.
    """

    ALLOW_SELECT = False
    DEFAULT_CLASSES = "-textual-system"  # as of scrollbars: a click keeps what is selected
    DEFAULT_CSS = """
    StatusLine { height: 1; width: 1fr; }
    """

    margin: reactive[int] = reactive(1)
    """Blank columns at the left."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: object = None

    def update_spans(self, content: object) -> None:
        """Redraw if `content`, whatever the pieces are made from, has changed."""
        if content != self._shown:
            self._shown = content
            self.refresh()

    def pieces(self, width: int) -> tuple[Sequence[StatusSpan], Sequence[StatusSpan]]:
        """Return the spans at the left and at the right."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        page = self.cell_theme.background
        if y:
            return Strip.blank(width, page)
        left, right = self.pieces(width)
        return fit(left, right, width, page, margin=self.margin)


Row = tuple[Sequence[StatusSpan], Sequence[StatusSpan]]
"""The left and the right side of a row."""


class StatusRows(ThemedWidget):
    """Rows of which only those that say something else are redrawn."""

    blank_columns: ClassVar[int] = 0
    """At the right, besides the one that each row ends with."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[Row] = []
        self.rows_drawn = 0
        """Rows that were redrawn so far; for measuring."""

    def _new_rows(self) -> list[Row]:
        """Return the rows as they are to be shown now."""
        raise NotImplementedError

    def _layout_rows(self) -> None:
        before, self._rows = self._rows, self._new_rows()
        count = max(len(before), len(self._rows))
        changed = [y for y in range(count) if before[y : y + 1] != self._rows[y : y + 1]]
        self.rows_drawn += len(changed)
        if changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def on_resize(self) -> None:
        self._layout_rows()

    def theme_changed(self) -> None:
        self._layout_rows()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width, page = self.size.width, self.cell_theme.background
        left, right = self._rows[y] if y < len(self._rows) else ((), ())
        return fit(left, right, width - self.blank_columns, page).adjust_cell_length(width, page)


Keys = Sequence[tuple[str, str]]
"""Keys as they are shown, each with what it does."""

_GAP: Final = "  "
_MARGINS: Final = 2


def key_rows(keys: Keys, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
    """Return rows with the keys; a key and its words stand in one row."""
    rows: list[list[StatusSpan]] = [[]]
    for key, words in keys:
        taken = sum(cell_len(one.text) for one in rows[-1])
        if taken and taken + cell_len(f"{_GAP}{key} {words}") > width:
            rows.append([])
        if rows[-1]:
            rows[-1].append(StatusSpan(_GAP, theme.dim))
        rows[-1] += [StatusSpan(key, theme.focus), StatusSpan(f" {words}", theme.dim)]
    return rows


class KeyLines(ThemedWidget):
    """The keys of a page, at its end."""

    DEFAULT_CSS = """
    KeyLines { height: auto; width: 1fr; dock: bottom; }
    """

    keys: reactive[Keys] = reactive((), layout=True)

    def __init__(self, keys: Keys = ()) -> None:
        super().__init__()
        self.set_reactive(KeyLines.keys, keys)

    def rows(self, width: int) -> list[list[StatusSpan]]:
        return key_rows(self.keys, width, self.cell_theme)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.rows(width - _MARGINS))

    def render_line(self, y: int) -> Strip:
        width, page = self.size.width, self.cell_theme.background
        rows = self.rows(width - _MARGINS)
        return fit(rows[y], (), width, page) if y < len(rows) else Strip.blank(width, page)


class FooterLine(StatusLine):
    """` EDIT  Esc leave  Ctrl+Z undo mine  F1 help`; what does not fit is dropped at the right.

    A click on a key presses it.
    """

    situation: reactive[ActionContext] = reactive(ActionContext())
    """State of the app, from which the keys that are shown follow."""

    def __init__(self, keymap: KeyMap) -> None:
        super().__init__()
        self._keymap = keymap

    def pieces(self, width: int) -> tuple[Sequence[StatusSpan], Sequence[StatusSpan]]:
        theme, word = self.cell_theme, self.situation.mode_word
        pieces = [StatusSpan(word, theme.mode(word))]
        for key, words, _ in self._keys(width):
            pieces += [
                StatusSpan("  ", theme.dim),
                StatusSpan(shown_key(key), theme.text),
                StatusSpan(f" {words}", theme.dim),
            ]
        return pieces, ()

    def on_click(self, event: events.Click) -> None:
        """Press the key that was clicked."""
        for key, _, columns in self._keys(self.size.width):
            if event.x - self.margin in columns:
                shown = shown_key(key)
                is_text = len(shown) == 1 and shown.isascii()
                self.app.post_message(events.Key(key, shown if is_text else None))

    def _keys(self, width: int) -> Iterator[tuple[str, str, range]]:
        """Yield each key for which there is room, what it does, and its columns."""
        at = cell_len(self.situation.mode_word)
        for action in self._keymap.footer_actions(self.situation):
            key, words = action.keys[0], self.situation.fill(action.words)
            end = at + 3 + cell_len(shown_key(key)) + cell_len(words)
            if end > width - 2:
                break
            yield key, words, range(at + 2, end)
            at = end


LONGEST_QUERY = 1_000
"""Characters that can be looked for."""


class _FindSign(StatusLine):
    DEFAULT_CSS = """
    _FindSign { width: 3; }
    """

    def pieces(self, width: int) -> tuple[Sequence[StatusSpan], Sequence[StatusSpan]]:
        return [StatusSpan("/", self.cell_theme.focus)], ()


class FindCount(StatusLine):
    """Number of the hit that was gone to, and of all hits."""

    DEFAULT_CSS = """
    FindCount { width: 24; }
    """

    words: reactive[str] = reactive("")

    def pieces(self, width: int) -> tuple[Sequence[StatusSpan], Sequence[StatusSpan]]:
        return (), [StatusSpan(self.words, self.cell_theme.dim)]


class HitSearch(Protocol):
    """The search whose text is typed."""

    def stay(self) -> None: ...

    def leave(self) -> None: ...

    def step(self, direction: int) -> None: ...


class FindBar(Horizontal):
    """Not there until it is opened."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Owner.FIND)]

    search: HitSearch

    DEFAULT_CSS = """
    FindBar { height: 1; display: none; }
    FindBar.-open { display: block; }
    FindBar Input, FindBar Input:focus {
        width: 1fr; height: 1; border: none; padding: 0; background: transparent;
    }
    """

    @dataclass
    class QueryChanged(Message):
        """Another text is to be found."""

        query: str

    def __init__(self) -> None:
        super().__init__()
        self.input = Input(compact=True, max_length=LONGEST_QUERY)
        self.input.cursor_blink = False
        self._sign = _FindSign()
        self.count = FindCount()

    def compose(self) -> ComposeResult:
        yield self._sign
        yield self.input
        yield self.count

    def open(self, where: str) -> None:
        """Show the row and give it the focus; what is typed replaces the text found last."""
        self.input.placeholder = f"Find in {where}"
        self.add_class("-open")
        self.input.focus(scroll_visible=False)
        self.input.action_select_all()

    def set_query(self, query: str) -> None:
        """Show a text that is to be found already."""
        with self.input.prevent(Input.Changed):
            self.input.value = query
            self.input.cursor_position = len(query)

    def hide(self) -> None:
        """Take the row away; the text to find stays in it for the next time."""
        self.remove_class("-open")

    def set_margin(self, margin: int) -> None:
        """Stand in line with what is above or below."""
        self._sign.margin = margin
        self._sign.styles.width = margin + 2

    @on(Input.Changed)
    def _query_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.QueryChanged(event.value))

    def action_keep_hit(self) -> None:
        self.search.stay()

    def action_leave_find(self) -> None:
        self.search.leave()

    def action_hit_below(self) -> None:
        self.search.step(1)

    def action_hit_above(self) -> None:
        self.search.step(-1)
