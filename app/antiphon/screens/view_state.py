"""Brings a view back to where it was when it was left."""

from __future__ import annotations

from collections.abc import Callable

from antiphon.screens.view_store import ViewState, ViewStateStore
from antiphon.widgets.block_list import Anchor, BlockList


class ViewStateController:
    """Reads and writes places; a failure is told once and changes nothing else."""

    def __init__(self, remembered: ViewStateStore | None, tell: Callable[[str], None]) -> None:
        """None remembers nothing: the kernel of a demo is gone with its last app."""
        self._remembered = remembered
        self._tell = tell
        self._failed = False

    def last_context(self) -> str | None:
        """Id of the context that was open last on this kernel."""
        try:
            return None if self._remembered is None else self._remembered.read().context
        except ValueError as error:
            self._fail(error)
            return None

    def go_back(self, context: str, cells: BlockList) -> None:
        """Show what was on screen when this context was left."""
        try:
            places = {} if self._remembered is None else self._remembered.read().places
        except ValueError as error:
            self._fail(error)
            return
        kept = places.get(context)
        if kept is None:
            return
        if kept.focused is not None and cells.has_cell(kept.focused):
            cells.focus_cell(kept.focused, reveal=False)
        if kept.block is not None:
            cells.restore_view(Anchor(kept.block, kept.line, kept.row, kept.offset))

    def keep(self, context: str, cells: BlockList) -> None:
        """Remember what is on screen now."""
        if self._remembered is None:
            return
        place, anchor = ViewState(focused=cells.focused_cell), cells.view_state()
        if anchor is not None:
            place.block, place.line, place.row = anchor.block, anchor.line, anchor.row
            place.offset = anchor.offset
        try:
            self._remembered.write(context, place)
        except OSError as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if not self._failed:
            self._failed = True
            self._tell(f"Where you are cannot be remembered: {error}")
