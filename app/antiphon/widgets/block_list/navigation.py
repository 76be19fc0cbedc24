"""The block list with moves from cell to cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from antiphon.widgets.block_list.block_list import BlockList
from antiphon_kernel.types.enums import BlockKind


class NavigableBlockList(BlockList):
    """Moves the focus from cell to cell, passing over hidden ones, and folds where it is."""

    def next_cell(self) -> bool:
        """To the cell below, or further down in one that goes on below the view."""
        return self._focus_neighbour(1)

    def previous_cell(self) -> bool:
        """To the cell above, or further up in one that begins above the view."""
        return self._focus_neighbour(-1)

    def _focus_neighbour(self, direction: int) -> bool:
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

    def first_cell(self) -> None:
        """Go to the first cell."""
        self.viewport.scroll_home()
        self.focus_cell(self._shown(self._heights.first(), self._heights.next))

    def last_cell(self) -> None:
        """Go to the last cell and follow the tail."""
        last = self._shown(self._heights.last(), self._heights.previous)
        self.focus_cell(last, reveal=False)
        self.to_tail()

    def next_unread(self) -> bool:
        """Focus the next cell below with something new; False if there is none."""
        return self._focus_unread(1)

    def previous_unread(self) -> bool:
        """Focus the next cell above with something new; False if there is none."""
        return self._focus_unread(-1)

    def _focus_unread(self, direction: int) -> bool:
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
