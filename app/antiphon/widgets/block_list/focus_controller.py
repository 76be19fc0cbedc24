"""Actions of the keys of NAVIGATE on the focused cell."""

from __future__ import annotations

from antiphon.widgets.block_list.block_list import BlockList


class FocusController:
    """Moves the focus of a list from cell to cell, and folds and copies where it is."""

    def __init__(self, cells: BlockList) -> None:
        self._cells = cells

    def next(self) -> bool:
        """To the cell below, or further down in one that goes on below the view."""
        return self._neighbour(1)

    def previous(self) -> bool:
        """To the cell above, or further up in one that begins above the view."""
        return self._neighbour(-1)

    def _neighbour(self, direction: int) -> bool:
        cells = self._cells
        cells.layout_now()
        viewport, block = cells.viewport, cells.focused_cell
        if block is None or not cells.has_cell(block):
            seen = [place.block for place in viewport.places if place is not None]
            if seen:
                cells.focus_cell(seen[0 if direction > 0 else -1])
            return bool(seen)
        end = viewport.measured(block).body - 1 if direction > 0 else 0
        if viewport.seen_rows(block) and viewport.row_of(block, end) is None:
            cells.half_page(direction)
            return True
        following = cells.walk.neighbour(block, direction)
        if following is not None:
            cells.focus_cell(following)
        return following is not None

    def first(self) -> None:
        """Go to the first cell."""
        self._cells.viewport.scroll_home()
        self._cells.focus_cell(self._cells.walk.first())

    def last(self) -> None:
        """Go to the last cell and follow the tail."""
        self._cells.focus_cell(self._cells.walk.last(), reveal=False)
        self._cells.to_tail()

    def next_unread(self) -> bool:
        """Focus the next cell below with something new; False if there is none."""
        return self._unread(1)

    def previous_unread(self) -> bool:
        """Focus the next cell above with something new; False if there is none."""
        return self._unread(-1)

    def _unread(self, direction: int) -> bool:
        cells = self._cells
        found = cells.walk.nearest(cells.unread_cells(), cells.focused_cell, direction)
        if found is not None:
            cells.focus_cell(found)
        return found is not None

    def toggle_fold(self, block: str | None = None) -> None:
        """Fold or open a cell (the focused one), its first line staying where it is."""
        cells = self._cells
        block = block or cells.focused_cell
        if block is None or not cells.has_cell(block):
            return
        cells.layout_now()
        rows = cells.viewport.seen_rows(block)
        row = cells.viewport.row_of(block, 0)
        if rows:
            cells.viewport.anchor_on(block, 0, rows[0] if row is None else row)
        cells.source.set_folded([block], not cells.source.is_folded(block))
        self._fill_view()

    def fold_all_thinking(self) -> None:
        """Open all thinking if all of it is folded, else fold it."""
        source = self._cells.source
        self._cells.layout_now()
        thinking = self._cells.walk.thinking()
        source.set_folded(thinking, not all(source.is_folded(block) for block in thinking))
        self._fill_view()

    def _fill_view(self) -> None:
        """What was folded took the rest of the view with it: show what is above."""
        self._cells.layout_now()
        if self._cells.viewport.places[-1:] == [None]:
            self._cells.to_tail()

    def copy_source(self) -> str | None:
        """The exact text of the focused cell."""
        block = self._cells.focused_cell
        return None if block is None else self._cells.source.text(block)
