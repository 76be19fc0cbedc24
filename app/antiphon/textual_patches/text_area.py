"""Text area without what costs the length of its text, or scrolls."""

from __future__ import annotations

from textual.document._document import Location
from textual.geometry import Offset
from textual.widgets import TextArea


class HostedTextArea(TextArea):
    """A text area whose host gives its size, its styles and the rows that it shows."""

    def find_matching_bracket(self, bracket: str, search_from: Location) -> Location | None:
        """None: looking for it may cost the whole text at every key."""
        return None

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        return Offset()

    def _refresh_size(self) -> None:
        """The host gives the size."""

    def _build_highlight_map(self) -> None:
        """Nothing is highlighted while it is edited."""

    def notify_style_update(self) -> None:
        """Styles come from the cell theme."""
        super(TextArea, self).notify_style_update()
