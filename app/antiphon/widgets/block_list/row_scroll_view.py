"""Scrolling by rows, with a scroll bar that is told only what makes it look different."""

from __future__ import annotations

from typing import Final

from textual import events
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollDown, ScrollTo, ScrollUp
from textual.widget import Widget

WHEEL_ROWS: Final = 3


class RowScrollView(ScrollView, inherit_bindings=False):
    """A scroll view whose subclass decides which rows it shows.

    Scrolling by Textual's own means lays out the whole screen.
    """

    _thumb = (0, 0)

    def scroll_rows(self, rows: int) -> None:
        """Scroll down by so many rows, up if negative."""
        raise NotImplementedError

    def page(self, direction: int) -> None:
        """Scroll by about the height of the view."""
        raise NotImplementedError

    def jump(self, row: int) -> None:
        """Show a row of the whole at the top."""
        raise NotImplementedError

    def show_position(self, first: int, total: int, page: Size) -> None:
        """Show in the scroll bar a view of this size, which begins at a row of so many."""
        total = max(total, first + page.height)
        self.set_reactive(Widget.virtual_size, Size(page.width, total))
        self.set_reactive(Widget.scroll_y, float(first))
        self.set_reactive(Widget.scroll_target_y, float(first))
        eighths = 8 * page.height
        thumb = (first * eighths // total, page.height * eighths // total)
        # A new total draws the whole bar.
        if self.show_vertical_scrollbar and thumb != self._thumb:
            self._thumb = thumb
            bar = self.vertical_scrollbar
            bar.window_virtual_size = total
            bar.window_size = page.height
            bar.position = first

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
            self.jump(round(message.y))

    def _on_scroll_up(self, event: ScrollUp) -> None:
        event.stop()
        event.prevent_default()
        self.page(-1)

    def _on_scroll_down(self, event: ScrollDown) -> None:
        event.stop()
        event.prevent_default()
        self.page(1)
