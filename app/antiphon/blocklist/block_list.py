"""The one scrolling widget of the document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Final

from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollDown, ScrollTo, ScrollUp
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from antiphon.blocklist.anchor import HEAD, Place
from antiphon.blocklist.anchoring import Anchoring
from antiphon.blocklist.arrivals import GUESSED_ROWS, Arrivals
from antiphon.blocklist.cell_walk import CellWalk
from antiphon.blocklist.cells import BULK, CellChange, CellSource
from antiphon.blocklist.frame_clock import FrameClock
from antiphon.blocklist.heights import Heights
from antiphon.blocklist.highlights import Tint
from antiphon.blocklist.looks import Looks
from antiphon.blocklist.screen_rows import ScreenRows, with_selection
from antiphon.blocklist.unread import Unread
from antiphon.blocklist.viewport import Viewport
from antiphon.editor.cell_editor import CellEditor
from antiphon.render.cell_theme import CellTheme
from antiphon.render.lines import RenderedCell

_STREAM_FRAME = 1 / 30
_CROWD_FRAME = 1 / 15
_UNSEEN_FRAME = 1 / 4
_READ_AHEAD = 1 / 50
WHEEL_ROWS: Final = 3


class BlockList(ScrollView, can_focus=True, inherit_bindings=False):
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

    class CellFocused(Message):
        """Another cell has the focus now."""

        def __init__(self, block: str | None) -> None:
            super().__init__()
            self.block = block

    class EditRequested(Message):
        """A cell was double-clicked at a place of its text."""

        def __init__(self, block: str, offset: int | None) -> None:
            super().__init__()
            self.block = block
            self.offset = offset

    def __init__(
        self, source: CellSource, theme: CellTheme, *, clock: Callable[[], float] = monotonic
    ) -> None:
        super().__init__()
        self.source = source
        self._heights = Heights((block, GUESSED_ROWS) for block in source.ids())
        self._looks = Looks(source, theme, self._heights)
        self.viewport = Viewport(self._heights, self._looks.measure)
        self.walk = CellWalk(source, self._heights)
        self._anchoring = Anchoring(source, self._looks, self.viewport)
        self._unread = Unread(self._heights, self.viewport)
        self._arrivals = Arrivals(source, self._heights)
        self._page = Size(80, 0)
        """The place for rows: the widget without its scroll bar."""
        self._rows = ScreenRows()
        self._clock = FrameClock(self.draw, self.call_next, self.set_timer, clock)
        self._streams: set[str] = set()
        self._followed: str | None = None
        self._place_editor: Callable[[Region], None] | None = None
        self._stop_watching = source.watch(self._source_changed)
        self._thumb = (0, 0)
        self._is_reading_ahead = False

    def on_mount(self) -> None:
        self._start_reading_ahead()

    def on_unmount(self) -> None:
        self._stop_watching()

    @property
    def frames(self) -> int:
        """Frames drawn so far."""
        return self._clock.frames

    @property
    def pictures_drawn(self) -> int:
        """Cells drawn so far; a cell is drawn again when it changes."""
        return self._looks.pictures.drawn

    # The picture

    def set_cell_theme(self, theme: CellTheme) -> None:
        """Draw in another theme."""
        self._looks.set_page(self._page.width, theme)
        self._draw_soon()

    def draw(self) -> None:
        """Lay out and draw a frame now, if there is a place for it."""
        width, height = self._page
        if not width or not height:
            return
        self._clock.drawn()
        self._streams.clear()
        self.viewport.height = height
        self._anchoring.find_again()
        self.viewport.settle()
        self._keep_followed_in_view()
        if self._looks.editor is None:
            self.viewport.follow_if_same()
        unread = self._unread.look()
        self._looks.unread = self._unread.start
        self._show_scroll_position()
        for run in self._rows.lay(self.viewport.places, self._looks):
            self.refresh(Region(0, run.start, width, len(run)))
        self._lay_editor()
        self._anchoring.choose(self.focused_cell if self.has_focus else None)
        self.following = self.viewport.following
        self.unread_lines = unread

    def render_line(self, y: int) -> Strip:
        strip = self._rows.strip(y)
        if strip is None:
            return Strip.blank(self._page.width, self._looks.theme.background)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(y)) is not None:
            style = self.screen.get_component_rich_style("screen--selection")
            strip = with_selection(strip, span, style)
        return strip.apply_offsets(0, y)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text that is selected on the screen, as it is drawn."""
        return self._rows.selected_text(selection, self._looks.gutters.columns.gutter), "\n"

    def _show_scroll_position(self) -> None:
        """Set the scroll bar by hand, if it looks different: scrolling by Textual's own means lays
        out the whole screen, and a new total draws the whole bar."""
        height = self.viewport.height
        first = max(0, self.viewport.first_row)
        total = max(self._heights.total, first + height)
        self.set_reactive(Widget.virtual_size, Size(self._page.width, total))
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

    # When to draw

    def _draw_soon(self) -> None:
        if self.is_mounted:
            self._clock.draw_soon()

    def _source_changed(self, change: CellChange) -> None:
        self._arrivals.place((*change.added, *change.moved))
        for text in change.texts:
            if not self._rows.is_shown(text.block) and not self.source.is_folded(text.block):
                self._arrivals.grow(text, self._looks.gutters.columns.text)
        self._anchoring.follow_texts(change.texts)
        if len(change.added) <= BULK:
            self._note_unseen(change)
        if change.drafts or len(change.added) > BULK:
            self._start_reading_ahead()
        self._draw_for(change)

    def _note_unseen(self, change: CellChange) -> None:
        for block in change.changed:
            if self._rows.is_shown(block) or block not in self._heights:
                continue
            if self.source.is_hidden(block):
                self._heights.set(block, 0)
            elif change.texts or change.added:
                self._unread.blocks[block] = None

    def _start_reading_ahead(self) -> None:
        """Find the drafts of a long document bit by bit."""
        if self.is_mounted and not self._is_reading_ahead:
            self._is_reading_ahead = True
            self._read_ahead()

    def _read_ahead(self) -> None:
        self._is_reading_ahead = self.source.read_ahead()
        if self._is_reading_ahead:
            self.set_timer(_READ_AHEAD, self._read_ahead)

    def _draw_for(self, change: CellChange) -> None:
        """What a person did is drawn at once, a stream at its rate, what is not seen rarely."""
        if not self.is_mounted:
            return
        if not change.streamed:
            self._clock.draw_soon()
        elif self.viewport.following or any(map(self._rows.is_shown, change.changed)):
            self._streams.update(change.changed)
            crowd = len(self._streams) > 1
            self._clock.draw_within_rate(_CROWD_FRAME if crowd else _STREAM_FRAME)
        else:
            self._clock.draw_within_rate(_UNSEEN_FRAME)

    def on_resize(self) -> None:
        self._page = self.scrollable_content_region.size
        self._looks.set_page(self._page.width, self._looks.theme)
        self.draw()

    def _keep_followed_in_view(self) -> None:
        found = None if self._followed is None else self.source.cursor_of(self._followed)
        if found is None or found[0] not in self._heights or self.source.is_hidden(found[0]):
            return
        block, offset = found
        line = self.picture(block).place_of(offset)[0]
        if self.viewport.row_of(block, line) is None:
            self.viewport.anchor_on(block, line, self.viewport.height * 2 // 3, offset)
            self.viewport.settle()

    # Moving

    def picture(self, block: str) -> RenderedCell:
        """The picture of a cell as it is now. Raises KeyError."""
        return self._looks.pictures.picture(block)

    def scroll_rows(self, rows: int) -> None:
        """Scroll down by so many rows, up if negative."""
        self._settle_now()
        self.viewport.scroll(rows)
        self._moved()

    def page(self, direction: int) -> None:
        """Scroll by the height of the view but one row."""
        self.scroll_rows(direction * max(1, self._page.height - 1))

    def half_page(self, direction: int) -> None:
        self.scroll_rows(direction * max(1, self._page.height // 2))

    def to_tail(self) -> None:
        """Go to the end and follow it."""
        self.viewport.to_tail()
        self._moved()

    def reveal(self, block: str, offset: int | None = None) -> None:
        """Scroll as little as needed to see a cell, or a place of its text."""
        self._settle_now()
        if block not in self._heights or self.source.is_hidden(block):
            return
        measured = self.viewport.measured(block)
        first, last = -measured.head, measured.body - 1
        if offset is not None:
            first = last = self.picture(block).place_of(offset)[0]
        self.viewport.reveal(block, first, last)
        self._moved()

    def _settle_now(self) -> None:
        """Bring the layout up to date before moving in it."""
        self.viewport.height = self._page.height
        self._anchoring.find_again()
        self.viewport.settle()

    def _moved(self) -> None:
        """The person moved the view: the first row is what stays, and text selection is off."""
        if self._looks.editor is not None and self.viewport.following:
            self.viewport.following = False
        if self.text_selection is not None:
            self.screen.clear_selection()
        self._draw_soon()

    def follow(self, principal: str | None) -> None:
        """Keep somebody's cursor in view; None stops it."""
        self._followed = principal
        self._draw_soon()

    # The focused cell

    def focus_cell(self, block: str | None, *, reveal: bool = True) -> None:
        """Give a cell the focus and scroll to it."""
        changed = block != self.focused_cell
        self.focused_cell = block
        self._looks.focused = block
        if block is not None and reveal:
            self.reveal(block)
        self._draw_soon()
        if changed:
            self.post_message(self.CellFocused(block))

    def focus_next(self) -> bool:
        """To the cell below, or further down in one that goes on below the view."""
        return self._focus_neighbour(1)

    def focus_previous(self) -> bool:
        """To the cell above, or further up in one that begins above the view."""
        return self._focus_neighbour(-1)

    def _focus_neighbour(self, direction: int) -> bool:
        self._settle_now()
        block = self.focused_cell
        if block is None or block not in self._heights:
            seen = [place.block for place in self.viewport.places if place is not None]
            if seen:
                self.focus_cell(seen[0 if direction > 0 else -1])
            return bool(seen)
        end = self.viewport.measured(block).body - 1 if direction > 0 else 0
        if self.viewport.seen_rows(block) and self.viewport.row_of(block, end) is None:
            self.half_page(direction)
            return True
        following = self.walk.neighbour(block, direction)
        if following is not None:
            self.focus_cell(following)
        return following is not None

    def focus_first(self) -> None:
        """Go to the first cell."""
        self.viewport.to_head()
        self.focus_cell(self.walk.first())

    def focus_last(self) -> None:
        """Go to the last cell and follow the tail."""
        self.focus_cell(self.walk.last(), reveal=False)
        self.to_tail()

    def next_unread(self) -> bool:
        """Focus the next cell below with something new; False if there is none."""
        return self._focus_unread(1)

    def previous_unread(self) -> bool:
        """Focus the next cell above with something new; False if there is none."""
        return self._focus_unread(-1)

    def _focus_unread(self, direction: int) -> bool:
        blocks = self._unread.cells()
        found = self.walk.nearest(blocks, self.focused_cell, direction)
        if found is not None:
            self.focus_cell(found)
        return found is not None

    # What can be done with cells

    def toggle_fold(self, block: str | None = None) -> None:
        """Fold or open a cell, its first line staying where it is."""
        block = block or self.focused_cell
        if block is None or block not in self._heights:
            return
        self._settle_now()
        rows = self.viewport.seen_rows(block)
        row = self.viewport.row_of(block, 0)
        if rows:
            self.viewport.anchor_on(block, 0, rows[0] if row is None else row)
        self.source.set_folded([block], not self.source.is_folded(block))

    def fold_all_thinking(self) -> None:
        """Open all thinking if all of it is folded, else fold it."""
        self._settle_now()
        thinking = self.walk.thinking()
        folded = not all(self.source.is_folded(block) for block in thinking)
        self.source.set_folded(thinking, folded)

    def copy_source(self) -> str | None:
        """The exact text of the focused cell."""
        block = self.focused_cell
        return None if block is None else self.source.document.text(block)

    def set_matches(
        self,
        matches: Mapping[str, Sequence[tuple[int, int]]],
        current: tuple[str, int, int] | None = None,
    ) -> None:
        """Mark search hits: ranges of code points by block, in order and apart; one stands out."""
        self._looks.matches = {block: tuple(ranges) for block, ranges in matches.items()}
        self._looks.current_match = current
        self._draw_soon()

    def set_tints(self, tints: Mapping[str, Sequence[Tint]]) -> None:
        """Tint text by author (blame), by block, in order and apart; an empty mapping ends it."""
        self._looks.tints = {block: tuple(ranges) for block, ranges in tints.items()}
        self._draw_soon()

    # The editor over a cell

    def lay_over(self, editor: CellEditor | None, place: Callable[[Region], None] | None) -> None:
        """Give an editor the place of its cell; `place` is told it with every frame."""
        self._looks.editor = editor
        self._place_editor = place
        if editor is not None:
            editor.set_text_width(self._looks.gutters.columns.text)

    def hold(self, block: str, offset: int, row: int) -> None:
        """Keep a place of a text on a row of the screen."""
        self._anchoring.hold(block, offset, row)
        self._draw_soon()

    def place_of(self, block: str, offset: int) -> Place:
        """The line of a cell that shows a place of its text."""
        return Place(block, self.picture(block).place_of(offset)[0])

    def editor_changed(self, editor: CellEditor, *, by_person: bool) -> None:
        """What `EditorHost` asks for."""
        if editor is not self._looks.editor:
            return
        self._anchoring.editor_changed(editor, by_person=by_person)
        if by_person:
            self._draw_soon()
        elif self.is_mounted:
            self._clock.draw_within_rate(_STREAM_FRAME)

    def _lay_editor(self) -> None:
        editor = self._looks.editor
        if editor is None or self._place_editor is None:
            return
        rows = [
            row
            for row in self.viewport.seen_rows(editor.block)
            if (place := self.viewport.places[row]) is not None and place.line != HEAD
        ]
        columns = self._looks.gutters.columns
        top = rows[0] if rows else self._page.height
        place = self.viewport.places[top] if rows else None
        height = len(rows)
        if rows and all(place is None for place in self.viewport.places[rows[-1] + 1 :]):
            # Room to grow below the last cell: a new row is then not a new layout.
            height = self._page.height - top
        self._place_editor(Region(columns.gutter, top, columns.text + 1, max(1, height)))
        editor.show_rows(place.line if place is not None else 0, len(rows))

    # Mouse

    def on_click(self, event: events.Click) -> None:
        if self.text_selection is not None and event.chain == 1:
            return
        place = self.viewport.places[event.y] if event.y < len(self.viewport.places) else None
        if place is None:
            return
        self.focus_cell(place.block, reveal=False)
        if event.chain == 2:
            offset = None
            if place.line != HEAD:
                column = event.x - self._looks.gutters.columns.gutter
                offset = self.picture(place.block).offset_at(place.line, column)
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

    def _on_scroll_up(self, event: ScrollUp) -> None:
        event.stop()
        event.prevent_default()
        self.page(-1)

    def _on_scroll_down(self, event: ScrollDown) -> None:
        event.stop()
        event.prevent_default()
        self.page(1)
