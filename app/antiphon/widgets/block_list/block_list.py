"""The one scrolling widget of the document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollDown, ScrollTo, ScrollUp
from textual.selection import Selection
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from antiphon.render.lines import RenderedCell
from antiphon.widgets.block_list.anchor import Anchor, LineRef
from antiphon.widgets.block_list.cell_model import BULK, CellChange, CellModel
from antiphon.widgets.block_list.cell_presenter import CellPresenter
from antiphon.widgets.block_list.frame_buffer import FrameBuffer, with_selection
from antiphon.widgets.block_list.frame_scheduler import FrameScheduler
from antiphon.widgets.block_list.gutter import Columns
from antiphon.widgets.block_list.height_estimator import GUESSED_ROWS, HeightEstimator
from antiphon.widgets.block_list.height_index import HeightIndex
from antiphon.widgets.block_list.highlights import AuthorRange
from antiphon.widgets.block_list.scroll_anchor import ScrollAnchor
from antiphon.widgets.block_list.scroll_map import MAP_SECONDS, MapRender, ScrollMap
from antiphon.widgets.block_list.text_finder import HitPlace, TextFinder
from antiphon.widgets.block_list.unread import Unread
from antiphon.widgets.block_list.viewport import Viewport
from antiphon.widgets.editor import CellEditor
from antiphon.widgets.themed import ThemedWidget
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.presence import TextPlace
from antiphon_kernel.types.signal import Signal

WHEEL_ROWS: Final = 3

HELD_ROW: Final = 3
"""The row of the view that a held place stays in."""

STREAM_FRAME: Final = 1 / 30
"""Seconds between frames while one author writes; then of several, then of what is not seen."""
_CROWD_FRAME: Final = 1 / 15
_UNSEEN_FRAME: Final = 1 / 4

_TICK: Final = 0.4
"""Seconds between two pictures of a running tool call."""

_READ_AHEAD: Final = 1 / 50
"""Seconds between two bits of a long document that is searched for drafts."""


class BlockList(ScrollView, ThemedWidget, can_focus=True, inherit_bindings=False):
    """Cells on the line API. Has no keys of its own: every action is a method.

    A frame is laid out, drawn and compared with the one before in one go (`draw`); the widget then
    only hands out the rows of it that changed.
    """

    DEFAULT_CSS = """
    BlockList {
        overflow: hidden scroll;
        scrollbar-size: 0 1;
        width: 1fr;
        height: 1fr;
    }
    """

    focused_cell: reactive[str | None] = reactive(None, init=False, repaint=False)
    """The cell that NAVIGATE acts on; None before the first one is chosen."""
    following: reactive[bool] = reactive(True, init=False, repaint=False)
    """The view stays at the tail."""
    unread_lines: reactive[int] = reactive(0, init=False, repaint=False)
    """Lines below the view that came since the tail was left."""

    @dataclass
    class EditRequested(Message):
        """A cell was double-clicked at a place of its text."""

        block: str
        offset: int | None

    def __init__(self, source: CellModel) -> None:
        super().__init__()
        self.source = source
        self._heights = HeightIndex((block, GUESSED_ROWS) for block in source.ids())
        self._map = ScrollMap(source, self._heights)
        self._map_state: object = None
        """Values that the map was computed from."""
        self._mapping: Timer | None = None
        """Runs for a moment after each change of the map."""
        self._looks = CellPresenter(source, self._heights)
        self.viewport = Viewport(self._heights, self._looks.measure, self._looks.settle)
        self._anchoring = ScrollAnchor(source, self._looks, self.viewport)
        self._unread = Unread(self._heights, self.viewport)
        self._page = Size(80, 0)
        """The place for rows: the widget without its scroll bar."""
        self._rows = FrameBuffer()
        self._clock = FrameScheduler(self.draw, self.call_next, self.set_timer)
        self._editor_region: Region | None = None
        self._estimator = HeightEstimator(source, self._heights)
        self._streams: set[str] = set()
        """Cells that were written to since the last frame."""
        self._is_preloading = False
        self._thumb = (0, 0)
        self._fading: Timer | None = None
        """Runs while somebody's cursor has moved a moment ago."""
        self.clicked: LineRef | None = None
        """The line that was clicked last."""
        self._held: Anchor | None = None
        """A place that the view does not follow the tail away from."""
        self.drawn = Signal[()]()
        """A frame has been drawn."""
        self._ticking: Timer | None = None
        """Runs while a tool call on the screen is carried out."""
        self._stop_watching = source.changed.listen(self._cells_changed)

    def on_mount(self) -> None:
        # Textual's documented way to draw one bar differently, though its type says otherwise.
        bar: Any = self.vertical_scrollbar
        bar.renderer = partial(MapRender, self._map)
        self._looks.set_page(self._page.width, self.cell_theme)
        self._preload()

    def on_unmount(self) -> None:
        self._stop_watching()

    @property
    def frames(self) -> int:
        return self._clock.frames

    @property
    def renderings_drawn(self) -> int:
        """Cells drawn so far; a cell is drawn again when it changes."""
        return self._looks.pictures.drawn

    @property
    def lines_drawn(self) -> int:
        return self._looks.pictures.lines_drawn

    # The picture

    def on_focus(self) -> None:
        self._request_frame()

    def on_blur(self) -> None:
        self._request_frame()

    def theme_changed(self) -> None:
        self._looks.set_page(self._page.width, self.cell_theme)
        self._request_frame()

    def draw(self) -> None:
        """Lay out and draw a frame now, if there is a place for it."""
        width, height = self._page
        if not width or not height:
            return
        self._clock.drawn()
        self._streams.clear()
        self.viewport.height = height
        self._anchoring.resolve()
        self.viewport.layout()
        self._keep_held()
        if self._looks.editor is None:
            self.viewport.follow_if_same()
        unread = self._unread.update()
        self._looks.unread = self._unread.start
        self._looks.shows_focus = self.has_focus
        self._move_scroll_bar(width, height)
        # The editor first: names that it has no room for stand in the row above it.
        self._place_editor(height)
        for run in self._rows.compose_frame(
            self.viewport.places, self._looks, self.viewport.head_rows
        ):
            self.refresh(Region(0, run.start, width, len(run)))
        self._anchoring.choose(self.focused_cell if self.has_focus else None)
        self.following = self.viewport.following
        self.unread_lines = unread
        self._fade_later()
        self._tick_later()
        self._update_map()
        self.drawn.notify()

    @property
    def is_map_current(self) -> bool:
        """Return whether the scroll bar shows all that the last frame knew."""
        return self._mapping is None

    def _update_map(self) -> None:
        """Follow with the marks of the scroll bar, now and then."""
        if self._mapping is not None or not self.show_vertical_scrollbar:
            return
        finder, rows = self._looks.finder, self._page.height
        count = 0 if finder is None else finder.count
        people = list(self.source.places())
        unread = list(self._unread.blocks)
        state = (rows, self._heights.total, len(unread), self._unread.start, count, people)
        if (state, self.cell_theme) == self._map_state:
            return
        self._map_state = (state, self.cell_theme)
        self._mapping = self.set_timer(MAP_SECONDS, self._map_again)
        if self._map.update(
            rows,
            self.cell_theme,
            unread=unread,
            start=self._unread.start,
            hits=() if finder is None else finder,
            hit_count=count,
        ):
            self.vertical_scrollbar.refresh()

    def _map_again(self) -> None:
        self._mapping = None
        self._update_map()

    def hold(self, block: str, offset: int) -> None:
        """Leave the tail rather than lose sight of a place, until the person goes to the tail."""
        self._held = Anchor(block, 0, HELD_ROW, offset)

    def _keep_held(self) -> None:
        held = self._held
        if held is None or held.offset is None or not self.viewport.following:
            return
        if not self.has_cell(held.block) or self.source.is_hidden(held.block):
            return
        line = self.place_of(held.block, held.offset).line
        row, wanted = self.viewport.row_of(held.block, line), min(held.row, self._page.height - 1)
        if row is None or row < wanted:
            self._held = None
            self.viewport.anchor_on(held.block, line, wanted, held.offset)
            self.viewport.layout()

    def _tick_later(self) -> None:
        """Let the signs of running calls move while one is on the screen."""
        if self._ticking is None and any(map(self.source.is_call_running, self._rows.shown())):
            self._ticking = self.set_timer(_TICK, self._tick)

    def _tick(self) -> None:
        self._ticking = None
        self.source.tick(filter(self.source.is_call_running, self._rows.shown()))

    def _fade_later(self) -> None:
        seconds = self.source.next_fade
        if self._fading is None and seconds is not None:
            self._fading = self.set_timer(seconds, self._fade)

    def _fade(self) -> None:
        self._fading = None
        self.source.fade()
        self._fade_later()

    def render_line(self, y: int) -> Strip:
        strip = self._rows.strip(y)
        if strip is None:
            return Strip.blank(self._page.width, self._looks.theme.background)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(y)) is not None:
            gutter = self._looks.columns.gutter
            strip = with_selection(strip, span, gutter, self._looks.theme.own_selection)
        return strip.apply_offsets(0, y)

    def _move_scroll_bar(self, width: int, height: int) -> None:
        """Show the position of a view of this size in the document.

        Scrolling by Textual's own means lays out the whole screen, and a new total draws the whole
        bar: here the bar is told only what makes it look different.
        """
        first = max(0, self.viewport.first_row)
        total = max(self._heights.total, first + height)
        self.set_reactive(Widget.virtual_size, Size(width, total))
        self.set_reactive(Widget.scroll_y, float(first))
        self.set_reactive(Widget.scroll_target_y, float(first))
        eighths = 8 * height
        thumb = (first * eighths // total, height * eighths // total)
        if self.show_vertical_scrollbar and thumb != self._thumb:
            self._thumb = thumb
            bar = self.vertical_scrollbar
            bar.window_virtual_size = total
            bar.window_size = height
            bar.position = first

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text that is selected on the screen, as it is drawn."""
        return self._rows.selected_text(selection, self._looks.gutters.columns.gutter), "\n"

    # When to draw

    def _request_frame(self) -> None:
        if self.is_mounted:
            self._clock.request()

    def on_resize(self) -> None:
        self._page = self.scrollable_content_region.size
        self._looks.set_page(self._page.width, self.cell_theme)
        self.draw()

    # Changes of cells

    def _cells_changed(self, change: CellChange) -> None:
        self._estimator.place((*change.added, *change.moved))
        for text in change.texts:
            if not self._rows.is_shown(text.block) and not self.source.is_folded(text.block):
                self._estimator.grow(text, self._looks.columns.prose)
        self._anchoring.follow_texts(change.texts)
        self._held = self._held and self._held.carried(change.texts)
        if len(change.added) <= BULK:
            self._mark_unread(change)
        if change.drafts or len(change.added) > BULK:
            self._start_preloading()
        self._request_frame_for(change)

    def _mark_unread(self, change: CellChange) -> None:
        # What a context is opened with is not new.
        is_opening = len(change.added) == len(self._heights)
        for block in change.changed:
            if self._rows.is_shown(block) or block not in self._heights:
                continue
            if self.source.is_hidden(block):
                self._heights.set(block, 0)
            elif (change.texts or change.added) and not is_opening:
                self._unread.blocks[block] = None

    def _request_frame_for(self, change: CellChange) -> None:
        """Draw what a person did at once, a stream at its rate, and what is not seen rarely."""
        if not self.is_mounted:
            return
        if not change.streamed:
            self._clock.request()
        elif self.viewport.following or any(map(self._rows.is_shown, change.changed)):
            self._streams.update(change.changed)
            crowd = len(self._streams) > 1
            self._clock.request_throttled(_CROWD_FRAME if crowd else STREAM_FRAME)
        else:
            self._clock.request_throttled(_UNSEEN_FRAME)

    def _start_preloading(self) -> None:
        if self.is_mounted and not self._is_preloading:
            self._preload()

    def _preload(self) -> None:
        self._is_preloading = self.source.preload()
        if self._is_preloading:
            self.set_timer(_READ_AHEAD, self._preload)

    # Moving

    def rendering(self, block: str) -> RenderedCell:
        """The picture of a cell as it is now. Raises KeyError."""
        return self._looks.pictures.rendering(block)

    def scroll_rows(self, rows: int) -> None:
        """Scroll down by so many rows, up if negative."""
        self.layout_now()
        self.viewport.scroll(rows)
        self._moved()
        self._focus_seen()

    def page(self, direction: int) -> None:
        """Scroll by the height of the view but two rows: one may be a running head."""
        self.scroll_rows(direction * max(1, self._page.height - 2))

    def half_page(self, direction: int) -> None:
        self.scroll_rows(direction * max(1, self._page.height // 2))

    def to_tail(self) -> None:
        self._held = None
        self.viewport.scroll_end()
        self._moved()
        self._focus_seen(at_end=True)

    def reveal(self, block: str, offset: int | None = None, *, around: int = 0) -> None:
        """Scroll as little as needed to see a cell, or a place of it and lines `around` that."""
        self.layout_now()
        if block not in self._heights or self.source.is_hidden(block):
            return
        line = None if offset is None else self.place_of(block, offset).line
        measured = self.viewport.measured(block)
        first, last = -measured.head, measured.body - 1
        if line is not None:
            first, last = max(line - around, first), min(line + around, last)
        self.viewport.reveal(block, first, last)
        self._moved()

    def go_to(self, place: TextPlace) -> None:
        """Show a place of a text and focus its cell; follow the tail if it is the last place."""
        if place.end >= self.source.document.length(place.block) and self.is_last(place.block):
            self.to_tail()
        else:
            self.reveal(place.block, place.start)
        self.focus_cell(place.block, reveal=False)

    def shows_place(self, block: str, offset: int) -> bool:
        """Return whether the last frame shows a place of a cell's text."""
        if not self._rows.is_shown(block):
            return False
        if (editor := self._looks.editor_over(block)) is not None:
            line = editor.row_of(offset)
        else:
            line = self.rendering(block).place_of(offset)[0]
        return self.viewport.row_of(block, line) is not None

    def first_place(self) -> TextPlace | None:
        """Return the first text below the running head; None while the tail is followed."""
        if self.viewport.following:
            return None
        for place in self.viewport.places[self.viewport.head_rows :]:
            if place is not None and place.line >= 0 and (text := self.text_of(place)) is not None:
                return text
        return None

    def text_of(self, line: LineRef) -> TextPlace | None:
        """Return the text that a line of a cell shows, if it shows any."""
        if (editor := self._looks.editor_over(line.block)) is not None:
            start = editor.offset_at_row(line.line)
            return TextPlace(line.block, start, start)
        picture = self.rendering(line.block)
        if not 0 <= line.line < picture.line_count:
            return None
        runs = [run for run in picture.line(line.line).runs if run.width]
        if not runs:
            return None
        ends = [run.offset + run.length for run in runs]
        return TextPlace(line.block, min(run.offset for run in runs), max(ends))

    def lines_seen(self, block: str) -> list[LineRef]:
        places = [self.viewport.places[row] for row in self.viewport.seen_rows(block)]
        return [place for place in places if place is not None and place.line >= 0]

    def has_cell(self, block: str) -> bool:
        """The block has a place in the list, be it a hidden one."""
        return block in self._heights

    def is_last(self, block: str) -> bool:
        """Return whether no shown cell is below this one."""
        return self.neighbour(block, 1) is None

    def view_state(self) -> Anchor | None:
        """Return the anchor of the view; None while it follows the tail."""
        return None if self.viewport.following else self.viewport.anchor

    def restore_view(self, anchor: Anchor) -> None:
        """Hold on to a place of an earlier view, if it is still there."""
        if anchor.block in self._heights and not self.source.is_hidden(anchor.block):
            self.viewport.anchor = anchor
            self.viewport.following = False
            self.draw()

    def layout_now(self) -> None:
        """Bring the layout up to date before moving in it."""
        self.viewport.height = self._page.height
        self._anchoring.resolve()
        self.viewport.layout()

    def _moved(self) -> None:
        """The person moved the view: the first row is what stays, and text selection is off."""
        if self._looks.editor is not None and self.viewport.following:
            self.viewport.following = False
        if self.text_selection is not None:
            self.screen.clear_selection()
        self._request_frame()

    # The focused cell

    def focus_cell(self, block: str | None, *, reveal: bool = True) -> None:
        """Give a cell the focus and scroll to it."""
        self.focused_cell = block
        self._looks.focused = block
        if block is not None and reveal:
            self.reveal(block)
        self._request_frame()

    def _focus_seen(self, *, at_end: bool = False) -> None:
        """Give the focus to the nearest (or last) cell on the screen if its own was left behind."""
        focused = self.focused_cell
        seen = [place for place in self.viewport.places if place is not None]
        if focused is None or not seen or self._looks.editor is not None:
            return
        if any(place.block == focused for place in seen):
            return
        is_below = focused in self._heights and (
            self._heights.index(focused) > self._heights.index(seen[-1].block)
        )
        if at_end or is_below:
            self.focus_cell(seen[-1].block, reveal=False)
        else:
            begun = (place for place in seen if place.line == 0)
            self.focus_cell(next(begun, seen[0]).block, reveal=False)

    # From cell to cell, passing over hidden ones

    def focus_neighbour(self, direction: int) -> bool:
        """Go to the cell below (1) or above (-1), or on in one that goes on beyond the view."""
        self.layout_now()
        viewport, block = self.viewport, self.focused_cell
        if block is None or not self.has_cell(block):
            seen = [place.block for place in viewport.places if place is not None]
            if seen:
                self.focus_cell(seen[0 if direction > 0 else -1])
            return bool(seen)
        end = viewport.measured(block).body - 1 if direction > 0 else 0
        if viewport.seen_rows(block) and viewport.row_of(block, end) is None:
            self.half_page(direction)
            return True
        following = self.neighbour(block, direction)
        if following is not None:
            self.focus_cell(following)
        return following is not None

    @property
    def cells_above(self) -> int:
        """Return the number of cells above the view."""
        seen = next((place for place in self.viewport.places if place is not None), None)
        return len(self._heights) if seen is None else self._heights.index(seen.block)

    def is_first(self, block: str | None) -> bool:
        """Return whether no shown cell is above this one."""
        return block is not None and self.neighbour(block, -1) is None

    def first_cell(self) -> None:
        self.viewport.scroll_home()
        self.focus_cell(self._shown(self._heights.first(), self._heights.next))

    def last_cell(self) -> None:
        """Go to the last cell and follow the tail."""
        last = self._shown(self._heights.last(), self._heights.previous)
        self.focus_cell(last, reveal=False)
        self.to_tail()

    def focus_unread(self, direction: int) -> bool:
        """Focus the next cell below (1) or above (-1) with something new; False without one."""
        found = self._nearest(self._unread.cells(), direction)
        if found is not None:
            self.focus_cell(found)
        return found is not None

    def _nearest(self, blocks: Iterable[str], direction: int) -> str | None:
        """The first of some cells below (1) or above (-1) the focus; from the end without one."""
        places = sorted(
            (self._heights.index(block), block)
            for block in blocks
            if block in self._heights and not self.source.is_hidden(block)
        )
        if self.focused_cell is not None and self.focused_cell in self._heights:
            at = self._heights.index(self.focused_cell)
            places = [place for place in places if (place[0] - at) * direction > 0]
        if not places:
            return None
        return places[0 if direction > 0 else -1][1]

    def neighbour(self, block: str, direction: int) -> str | None:
        """The shown cell below (1) or above (-1)."""
        step = self._heights.next if direction > 0 else self._heights.previous
        return self._shown(step(block), step)

    def _shown(self, block: str | None, step: Callable[[str], str | None]) -> str | None:
        while block is not None and self.source.is_hidden(block):
            block = step(block)
        return block

    def toggle_fold(self, block: str | None = None) -> None:
        """Fold or open a cell (the focused one), its first line staying where it is."""
        block = block or self.focused_cell
        if block is None or not self.has_cell(block):
            return
        self.layout_now()
        rows = self.viewport.seen_rows(block)
        row = self.viewport.row_of(block, 0)
        if rows:
            self.viewport.anchor_on(block, 0, rows[0] if row is None else row)
        self.source.set_folded([block], not self.source.is_folded(block))
        self._fill_view()

    def fold_all_thinking(self) -> bool:
        """Open all thinking if all of it is folded, else fold it; False if there is none."""
        source = self.source
        self.layout_now()
        thinking = [
            block for block in self._heights if source.header(block).kind == BlockKind.THINKING
        ]
        source.set_folded(thinking, not all(source.is_folded(block) for block in thinking))
        self._fill_view()
        return bool(thinking)

    def _fill_view(self) -> None:
        """Show what is above: the folded lines took the rest of the view with them."""
        self.layout_now()
        if self.viewport.places[-1:] == [None]:
            self.to_tail()

    # What can be done with cells

    def set_author_ranges(self, tints: Mapping[str, Sequence[AuthorRange]]) -> None:
        """Tint text by author (blame), by block, in order and apart; an empty mapping ends it."""
        self._looks.tints = {block: tuple(ranges) for block, ranges in tints.items()}
        self._request_frame()

    @property
    def columns(self) -> Columns:
        return self._looks.columns

    def show_hits(self, finder: TextFinder | None, hit: HitPlace | None = None) -> None:
        """Mark hits, one of them as the one that the person has gone to; None ends it."""
        self._looks.finder, self._looks.hit = finder, hit
        if self._looks.editor is not None:
            self._mark_hits(self._looks.editor)
        self._request_frame()

    def _mark_hits(self, editor: CellEditor) -> None:
        finder = self._looks.finder
        editor.mark(tuple if finder is None else partial(finder.of, editor.block))

    # The editor over a cell

    def attach_editor(self, editor: CellEditor | None) -> None:
        """Lay an editor over its cell, with every frame from now on; None ends it."""
        self._looks.editor = editor
        self._editor_region = None
        if editor is not None:
            editor.set_text_width(self._looks.editor_width(editor))
            self._mark_hits(editor)

    def _place_editor(self, height: int) -> None:
        """Put the editor over the rows of its cell that are seen in a view of so many rows."""
        editor = self._looks.editor
        if editor is None:
            return
        places = self.viewport.places
        rows = [
            row
            for row in self.viewport.seen_rows(editor.block)
            if (place := places[row]) is not None and 0 <= place.line < editor.row_count
        ]
        columns = self._looks.columns
        top = rows[0] if rows else height
        first = places[top] if rows else None
        room = len(rows)
        if rows and all(place is None for place in places[rows[-1] + 1 :]):
            # Room to grow below the last cell: a new row is then not a new layout.
            room = height - top
        region = Region(columns.gutter, top, columns.width - columns.gutter, max(1, room))
        if region != self._editor_region:
            self._editor_region, styles = region, editor.styles
            styles.offset = (region.x, region.y)
            styles.width, styles.height = region.width, region.height
            # A layout that only moves the editor is no event for it.
            self.call_after_refresh(editor.place_terminal_cursor)
        editor.ink = self.source.ink.of(editor.block)
        editor.show_rows(
            first.line if first is not None else 0,
            len(rows),
            width=region.width,
            has_row_above=bool(top),
        )

    def pin(self, block: str, offset: int, row: int) -> None:
        """Keep a place of a text on a row of the screen."""
        self._anchoring.pin(block, offset, row)
        self._request_frame()

    def place_of(self, block: str, offset: int) -> LineRef:
        """The line of a cell that shows a place of its text."""
        pictures = self._looks.pictures
        return LineRef(block, pictures.line_at(block, offset, self.viewport.margin))

    def editor_changed(self, editor: CellEditor, *, by_person: bool) -> None:
        if editor is not self._looks.editor:
            return
        self._anchoring.editor_changed(editor, by_person=by_person)
        if by_person:
            before = self._heights[editor.block]
            added = self.viewport.measured(editor.block).rows - before
            self._unread.grown_by_person(editor.block, added)
            self._request_frame()
        elif self.is_mounted:
            self._clock.request_throttled(STREAM_FRAME)

    # Mouse

    def on_click(self, event: events.Click) -> None:
        if self.text_selection is not None and event.chain == 1:
            return
        place = self.viewport.places[event.y] if event.y < len(self.viewport.places) else None
        if place is None:
            return
        self.focus_cell(place.block, reveal=False)
        if self._looks.editor_over(place.block) is not None:
            return  # beside the editor or below it, where a line is none of the rendering
        if self._rows.has_head and event.y == 0:
            self.viewport.anchor_on(place.block, -self.viewport.measured(place.block).head, 0)
            self._moved()
            return
        self.clicked = place
        if event.chain == 1 and place.line >= 0:
            if self.rendering(place.block).line(place.line).is_fold:
                self.toggle_fold()
        elif event.chain == 2:
            offset = None
            if place.line >= 0:
                column = event.x - self._looks.gutters.columns.gutter
                offset = self.rendering(place.block).offset_at(place.line, column)
            self.post_message(self.EditRequested(place.block, offset))

    def _on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        event.prevent_default()
        self.scroll_rows(WHEEL_ROWS)

    def _on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        event.prevent_default()
        self.scroll_rows(-WHEEL_ROWS)

    def _on_scroll_to(self, message: ScrollTo) -> None:
        message.stop()
        message.prevent_default()
        if message.y is not None:
            self.viewport.height = self._page.height
            self.viewport.jump(round(message.y))
            self._moved()
            self._focus_seen()

    def _on_scroll_up(self, event: ScrollUp) -> None:
        event.stop()
        event.prevent_default()
        self.page(-1)

    def _on_scroll_down(self, event: ScrollDown) -> None:
        event.stop()
        event.prevent_default()
        self.page(1)
