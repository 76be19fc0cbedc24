"""The scroll bar, set by hand."""

from __future__ import annotations

from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.widget import Widget


class ScrollBarSync:
    """Synchronisation of a scroll bar with a view's position in its document.

    Scrolling by Textual's own means lays out the whole screen, and a new total draws the whole bar:
    here the bar is told only what makes it look different.
    """

    def __init__(self) -> None:
        self._thumb = (0, 0)

    def sync(self, view: ScrollView, first: int, rows: int, width: int, height: int) -> None:
        """The view shows `height` of a document's `rows`, from the row `first` on."""
        first = max(0, first)
        total = max(rows, first + height)
        view.set_reactive(Widget.virtual_size, Size(width, total))
        view.set_reactive(Widget.scroll_y, float(first))
        view.set_reactive(Widget.scroll_target_y, float(first))
        eighths = 8 * height
        thumb = (first * eighths // total, height * eighths // total)
        if view.show_vertical_scrollbar and thumb != self._thumb:
            self._thumb = thumb
            bar = view.vertical_scrollbar
            bar.window_virtual_size = total
            bar.window_size = height
            bar.position = first
