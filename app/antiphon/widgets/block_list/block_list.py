"""The one scrolling widget of the document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from textual import events, on
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollDown, ScrollTo, ScrollUp
from textual.selection import Selection
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from antiphon.widgets.block_list.cell_model import BULK, CellChange, CellModel
from antiphon.widgets.block_list.cell_painter import AuthorRange
from antiphon.widgets.block_list.cell_presenter import CellPresenter, FrameBuffer, with_selection
from antiphon.widgets.block_list.frame_scheduler import FrameScheduler
from antiphon.widgets.block_list.height_index import (
    GUESSED_ROWS,
    CellOrder,
    HeightEstimator,
    HeightIndex,
)
from antiphon.widgets.block_list.scroll_anchor import ScrollAnchor, ShownText
from antiphon.widgets.block_list.scroll_map import MAP_SECONDS, MapRender, ScrollMap
from antiphon.widgets.block_list.text_finder import HitPlace, TextFinder
from antiphon.widgets.block_list.viewport import Anchor, LineRef, Unread, Viewport, first_seen
from antiphon.widgets.editor import CellEditor
from antiphon.widgets.themed import ThemedWidget
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.presence import TextPlace
from antiphon_kernel.types.signal import Signal

STREAM_FRAME: Final = 1 / 30
"""Seconds between frames while one author writes; then of several, then of what is not seen."""
_CROWD_FRAME: Final = 1 / 15
_UNSEEN_FRAME: Final = 1 / 4

WHEEL_ROWS: Final = 3

_TICK: Final = 0.4
"""Seconds between two pictures of a running tool call."""

_READ_AHEAD: Final = 1 / 50
"""Seconds between two bits of a long document that is searched for drafts."""


class BlockList(ScrollView, ThemedWidget, can_focus=True, inherit_bindings=False):
    """Cells on the line API. Has no keys of its own: every action is a method.

    A frame is laid out, drawn and compared with the one before in one go (`draw`); the widget then
    only hands out the rows of it that changed. Scrolling by Textual's own means would lay out the
    whole screen.
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

    def __init__(self, source: CellModel) -> None:
        super().__init__()
        self.source = source
        self._heights = HeightIndex((block, GUESSED_ROWS) for block in source.document.block_ids())
        self._map = ScrollMap(source, self._heights)
        self.mapping: Timer | None = None
        """Runs for a moment after a frame; None if the map shows all that is known."""
        self._thumb = (0, 0)
        self.order = CellOrder(self._heights, source.is_hidden)
        self.looks = CellPresenter(source, self.order)
        self.viewport = Viewport(self._heights, self.looks.measure, self.looks.settle)
        self.shown = ShownText(self.looks, self.viewport)
        self.anchoring = ScrollAnchor(source, self.looks, self.viewport, self.shown)
        self._unread = Unread(self._heights, self.viewport)
        self._page = Size(80, 0)
        """The place for rows: the widget without its scroll bar."""
        self._rows = FrameBuffer()
        self._fading: Timer | None = None
        """Runs while somebody's cursor has moved a moment ago, or text is new."""
        self._ticking: Timer | None = None
        """Runs while a tool call on the screen is carried out."""
        self.clock = FrameScheduler(self.draw, self.call_next, self.set_timer)
        self._estimator = HeightEstimator(source, self._heights)
        self._streams: set[str] = set()
        """Cells that were written to since the last frame."""
        self._is_preloading = False
        self.is_laid_out = False
        """No cell changes until this is set back: moves lay out for themselves."""
        self.clicked: LineRef | None = None
        """The line that was clicked last."""
        self.drawn = Signal[()]()
        """A frame has been drawn."""
        self._stop_watching = source.changed.listen(self._cells_changed)

    def on_mount(self) -> None:
        # Textual's documented way to draw one bar differently, though its type says otherwise.
        bar: Any = self.vertical_scrollbar
        bar.renderer = partial(MapRender, self._map)
        self.looks.set_page(self._page.width, self.cell_theme)
        self._preload()

    def on_unmount(self) -> None:
        self._stop_watching()

    # The picture

    def theme_changed(self) -> None:
        self.looks.set_page(self._page.width, self.cell_theme)
        self._request_frame()

    def draw(self) -> None:
        """Lay out and draw a frame now, if there is a place for it."""
        width, height = self._page
        if not width or not height:
            return
        self.clock.drawn()
        self._streams.clear()
        self.looks.fit_numbers()
        self.viewport.height = height
        self.anchoring.resolve()
        self.viewport.layout()
        self.anchoring.keep_held()
        if self.looks.editor is None:
            self.viewport.follow_if_same()
        unread = 0 if self.source.is_file else self._unread.update()
        self.looks.unread = self._unread.start
        self.looks.focused = self.focused_cell
        self.looks.shows_focus = self.has_focus
        self._show_position(max(0, self.viewport.first_row), self._heights.total)
        # The editor first: names that it has no room for stand in the row above it.
        self.looks.place_editor(self.viewport)
        for run in self._rows.compose_frame(
            self.viewport.places, self.looks, self.viewport.head_rows
        ):
            self.refresh(Region(0, run.start, width, len(run)))
        self.anchoring.choose(self.focused_cell if self.has_focus else None)
        self.following = self.viewport.following
        self.unread_lines = unread
        self._start_timers()
        if self.mapping is None and self.show_vertical_scrollbar:
            self.mapping = self.set_timer(MAP_SECONDS, self._update_map)
        self.drawn.notify()

    def _show_position(self, first: int, total: int) -> None:
        """Show in the scroll bar that the view begins at a row of so many."""
        width, height = self._page
        total = max(total, first + height)
        self.set_reactive(Widget.virtual_size, Size(width, total))
        self.set_reactive(Widget.scroll_y, float(first))
        self.set_reactive(Widget.scroll_target_y, float(first))
        eighths = 8 * height
        thumb = (first * eighths // total, height * eighths // total)
        # A new total draws the whole bar: it is told only what makes it look different.
        if self.show_vertical_scrollbar and thumb != self._thumb:
            self._thumb = thumb
            bar = self.vertical_scrollbar
            bar.window_virtual_size = total
            bar.window_size = height
            bar.position = first

    def _update_map(self) -> None:
        """Follow with the marks of the scroll bar, now and then."""
        self.mapping = None
        finder = self.looks.finder
        if self._map.update(
            self._page.height,
            self.cell_theme,
            unread=list(self._unread.blocks),
            start=self._unread.start,
            hits=() if finder is None else finder,
        ):
            self.vertical_scrollbar.refresh()

    def render_line(self, y: int) -> Strip:
        strip = self._rows.strip(y)
        if strip is None:
            if self.scrollable_content_region.size != self._page:
                # Textual tells no size to a widget whose place was asked for before a layout.
                self.call_next(self.on_resize)
            return Strip.blank(self._page.width, self.looks.theme.background)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(y)) is not None:
            gutter = self.looks.columns.gutter
            strip = with_selection(strip, span, gutter, self.looks.theme.own_selection)
        return strip.apply_offsets(0, y)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text that is selected on the screen, as it is drawn."""
        return self._rows.selected_text(selection, self.looks.gutters.columns.gutter), "\n"

    # When to draw

    @on(events.Focus)
    @on(events.Blur)
    def _request_frame(self) -> None:
        if self.is_mounted:
            self.clock.request()

    def on_resize(self) -> None:
        if self._page == self.scrollable_content_region.size:
            return
        self._page = self.scrollable_content_region.size
        self.viewport.height = self._page.height
        self.looks.set_page(self._page.width, self.cell_theme)
        self.draw()

    def _start_timers(self) -> None:
        """Have cells drawn again while something in them changes with time."""
        source = self.source
        if source.in_replay:
            return
        seconds = source.next_fade
        if self._fading is None and seconds is not None:
            self._fading = self.set_timer(seconds, self._fade)
        if self._ticking is None and any(map(source.is_call_running, self._rows.cells)):
            self._ticking = self.set_timer(_TICK, self._tick)

    def _fade(self) -> None:
        self._fading = None
        self.source.fade()
        self._start_timers()

    def _tick(self) -> None:
        self._ticking = None
        self.source.tick(filter(self.source.is_call_running, self._rows.cells))

    # Changes of cells

    def _cells_changed(self, change: CellChange) -> None:
        self._estimator.place((*change.added, *change.moved))
        for text in change.texts:
            if text.block not in self._rows.cells and not self.source.is_folded(text.block):
                self._estimator.grow(text, self.looks.columns.prose)
        self.anchoring.follow_texts(change.texts)
        if len(change.added) <= BULK and not self.source.in_replay:
            self._unread.mark(change, self._rows.cells, self.source.is_hidden)
        has_unread = change.drafts or len(change.added) > BULK
        if has_unread and self.is_mounted and not self._is_preloading:
            self._preload()
        if not self.is_mounted:
            return
        # What a person did is drawn at once, a stream at its rate, and what is not seen rarely.
        if not change.streamed:
            self.clock.request()
        elif self.viewport.following or any(map(self._rows.cells.__contains__, change.changed)):
            self._streams.update(change.changed)
            crowd = len(self._streams) > 1
            self.clock.request_throttled(_CROWD_FRAME if crowd else STREAM_FRAME)
        else:
            self.clock.request_throttled(_UNSEEN_FRAME)

    def _preload(self) -> None:
        self._is_preloading = self.source.preload()
        if self._is_preloading:
            self.set_timer(_READ_AHEAD, self._preload)

    # Moving

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
        self.anchoring.release()
        self.viewport.scroll_end()
        self._moved()
        self._focus_seen(at_end=True)

    def reveal(self, block: str, offset: int | None = None, *, around: int = 0) -> None:
        """Scroll as little as needed to see a cell, or a place of it and lines `around` that."""
        self.layout_now()
        if block not in self._heights or self.source.is_hidden(block):
            return
        line = None if offset is None else self.shown.line_of(block, offset)
        measured = self.viewport.measured(block)
        first, last = -measured.head, measured.body - 1
        if line is not None:
            first, last = max(line - around, first), min(line + around, last)
        self.viewport.reveal(block, first, last)
        self._moved()

    def go_to(self, place: TextPlace) -> None:
        """Show a place of a text and focus its cell; follow the tail if it is the last place."""
        if place.end >= self.source.document.length(place.block) and self.order.is_last(
            place.block
        ):
            self.to_tail()
        else:
            self.reveal(place.block, place.start)
        self.focus_cell(place.block, reveal=False)

    def has_cell(self, block: str) -> bool:
        """The block has a place in the list, be it a hidden one."""
        return block in self._heights

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
        if self.is_laid_out:
            return
        self.viewport.height = self._page.height
        self.anchoring.resolve()
        self.viewport.layout()

    def _moved(self) -> None:
        """The person moved the view: the first row is what stays, and text selection is off."""
        if self.looks.editor is not None and self.viewport.following:
            self.viewport.following = False
        if self.text_selection is not None:
            self.screen.clear_selection()
        self._request_frame()

    # The focused cell

    def focus_cell(self, block: str | None, *, reveal: bool = True) -> None:
        """Give a cell the focus and scroll to it."""
        self.focused_cell = block
        if block is not None and reveal:
            self.reveal(block)
        self._request_frame()

    def _focus_seen(self, *, at_end: bool = False) -> None:
        """Give the focus to the nearest (or last) cell on the screen if its own was left behind."""
        focused = self.focused_cell
        seen = [place for place in self.viewport.places if place is not None]
        if focused is None or not seen or self.looks.editor is not None:
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
        following = self.order.neighbour(block, direction)
        if following is not None:
            self.focus_cell(following)
        return following is not None

    @property
    def cells_above(self) -> int:
        """Return the number of cells above the view."""
        seen = first_seen(self.viewport.places)
        return len(self._heights) if seen is None else self._heights.index(seen[1].block)

    def first_cell(self) -> None:
        self.viewport.scroll_home()
        self.focus_cell(self.order.first())

    def last_cell(self) -> None:
        """Go to the last cell and follow the tail."""
        self.focus_cell(self.order.last(), reveal=False)
        self.to_tail()

    def focus_unread(self, direction: int) -> bool:
        """Focus the next cell below (1) or above (-1) with something new; False without one."""
        start = self._unread.start
        cells = [*self._unread.blocks, *([] if start is None else [start.block])]
        found = self.order.nearest(cells, self.focused_cell, direction)
        if found is not None:
            self.focus_cell(found)
        return found is not None

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
        self.looks.tints = {block: tuple(ranges) for block, ranges in tints.items()}
        self._request_frame()

    def show_hits(self, finder: TextFinder | None, hit: HitPlace | None = None) -> None:
        """Mark hits, one of them as the one that the person has gone to; None ends it."""
        self.looks.finder, self.looks.hit = finder, hit
        self.looks.mark_hits()
        self._request_frame()

    def pin(self, block: str, offset: int, row: int) -> None:
        """Keep a place of a text on a row of the screen."""
        self.anchoring.pin(block, offset, row)
        self._request_frame()

    def editor_changed(self, editor: CellEditor, by_person: bool) -> None:
        if editor is not self.looks.editor:
            return
        self.anchoring.editor_changed(editor, by_person=by_person)
        if by_person:
            before = self._heights[editor.block]
            added = self.viewport.measured(editor.block).rows - before
            self._unread.grown_by_person(editor.block, added)
            self._request_frame()
        elif self.is_mounted:
            self.clock.request_throttled(STREAM_FRAME)

    # Mouse

    @on(events.MouseScrollDown)
    @on(events.MouseScrollUp)
    @on(ScrollDown)
    @on(ScrollUp)
    @on(ScrollTo)
    def _scroll(self, event: Message) -> None:
        event.stop()
        event.prevent_default()
        match event:
            case events.MouseScrollDown() | events.MouseScrollUp():
                self.scroll_by_wheel(event)
            case ScrollDown() | ScrollUp():
                self.page(1 if isinstance(event, ScrollDown) else -1)
            case ScrollTo(y=row) if row is not None:
                self.viewport.height = self._page.height
                self.viewport.jump(round(row))
                self._moved()
                self._focus_seen()

    def scroll_by_wheel(self, event: events.MouseScrollDown | events.MouseScrollUp) -> None:
        is_down = isinstance(event, events.MouseScrollDown)
        self.scroll_rows(WHEEL_ROWS if is_down else -WHEEL_ROWS)

    def on_click(self, event: events.Click) -> None:
        if self.text_selection is not None and event.chain == 1:
            return
        self.clicked = None
        place = self.viewport.places[event.y] if event.y < len(self.viewport.places) else None
        if place is None:
            return
        self.focus_cell(place.block, reveal=False)
        if self.looks.editor_over(place.block) is not None:
            return  # beside the editor or below it, where a line is none of the rendering
        if self._rows.has_head and event.y == 0:
            self.viewport.anchor_on(place.block, -self.viewport.measured(place.block).head, 0)
            self._moved()
            return
        self.clicked = place
        picture = self.shown.rendering(place.block)
        # The cell may have become shorter since it was drawn.
        if event.chain == 1 and 0 <= place.line < picture.line_count:
            if picture.line(place.line).is_fold:
                self.toggle_fold()

    def offset_at(self, place: LineRef, x: int) -> int | None:
        """Return the code point that a line shows at a column of the screen, if it shows any."""
        picture = self.shown.rendering(place.block)
        if not 0 <= place.line < picture.line_count:
            return None
        return picture.offset_at(place.line, x - self.looks.gutters.columns.gutter)
