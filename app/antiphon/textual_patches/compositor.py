"""A compositor that draws the widgets that have changed.

Textual's draws all of them that lie between the first row that has changed and the last one: the
header and the message change with each key, and everything is between them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from textual._compositor import ChopsUpdate, Compositor
from textual.geometry import Region
from textual.screen import Screen
from textual.widget import Widget


class ChangedOnlyCompositor(Compositor):
    """Compositor of one screen."""

    def __init__(self) -> None:
        super().__init__()
        self._changed: Iterable[Region] | None = None
        """What a partial update is about, while it is made."""

    def render_partial_update(self) -> ChopsUpdate | None:
        self._changed = tuple(self._dirty_regions)
        try:
            return super().render_partial_update()
        finally:
            self._changed = None

    @property
    def visible_widgets(self) -> dict[Widget, tuple[Region, Region]]:
        visible = super().visible_widgets
        if self._changed is None:
            return visible
        return {
            widget: placed
            for widget, placed in visible.items()
            if any(region.overlaps(placed[0]) for region in self._changed)
        }


def draw_changed_only(screen: Screen[Any]) -> None:
    """Let a screen that has not been shown yet draw only what has changed."""
    screen._compositor = ChangedOnlyCompositor()  # noqa: SLF001
