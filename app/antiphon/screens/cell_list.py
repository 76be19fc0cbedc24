"""The list of cells with its keys: from cell to cell, through the page, folding."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar, Final

from textual.binding import BindingType

from antiphon.actions import Owner
from antiphon.keymap import bindings
from antiphon.screens.chosen_cell import results_of
from antiphon.screens.earlier_cells import EarlierCells
from antiphon.screens.modals import NO_CELL, PAGE_END, PAGE_START
from antiphon.widgets.block_list import BlockList, CellModel

FIRST_CELL: Final = "This is the first cell."

LAST_CELL: Final = "This is the last cell."


class CellList(BlockList):
    """Moves in the page, and says why if nothing has moved."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Owner.CELLS)]

    earlier: EarlierCells
    """Cells that are not here yet."""

    def __init__(self, source: CellModel, hint: Callable[[str], None]) -> None:
        super().__init__(source)
        self._hint = hint
        self.preview: BlockList | None = None
        """The cells on the screen until the document is here."""

    @property
    def on_screen(self) -> BlockList:
        return self if self.preview is None else self.preview

    def position(self) -> tuple[object, ...]:
        """Return the cell that has the focus, if it is seen which, and the lines on the screen."""
        shown = self.on_screen
        shown.layout_now()
        seen = tuple(place for place in shown.viewport.places if place is not None)
        return shown.focused_cell if self.has_focus else None, seen

    def move(self, move: Callable[[], object], at_the_end: str) -> None:
        """Move in the page, or say why nothing has moved."""
        before = self.position()
        move()
        if self.position() == before:
            if self.earlier.are_omitted and at_the_end in (FIRST_CELL, PAGE_START):
                at_the_end = self.earlier.words
            self._hint(at_the_end if before[1] else NO_CELL)

    def move_page(self, direction: int) -> None:
        """Scroll by a page."""
        end = PAGE_END if direction > 0 else PAGE_START
        self.move(partial(self.on_screen.page, direction), end)

    def move_to_tail(self) -> None:
        self.move(self.on_screen.to_tail, PAGE_END)

    def action_next_cell(self) -> None:
        self.move(partial(self.focus_neighbour, 1), LAST_CELL)

    def action_previous_cell(self) -> None:
        self.move(partial(self.focus_neighbour, -1), FIRST_CELL)

    def action_first_cell(self) -> None:
        self.earlier.goes_first = self.earlier.are_omitted
        if self.earlier.goes_first:
            self.earlier.read_all()
            self.first_cell()
            self._hint(self.earlier.words)
        else:
            self.move(self.first_cell, FIRST_CELL)

    def action_last_cell(self) -> None:
        self.move(self.last_cell, LAST_CELL)

    def action_line_down(self) -> None:
        self.move(partial(self.on_screen.scroll_rows, 1), PAGE_END)

    def action_line_up(self) -> None:
        self.move(partial(self.on_screen.scroll_rows, -1), PAGE_START)

    def action_half_page_down(self) -> None:
        self.move(partial(self.on_screen.half_page, 1), PAGE_END)

    def action_half_page_up(self) -> None:
        self.move(partial(self.on_screen.half_page, -1), PAGE_START)

    def action_next_unread(self) -> None:
        if not self.focus_unread(1):
            self._hint("Nothing unread below.")

    def action_previous_unread(self) -> None:
        if not self.focus_unread(-1):
            self._hint("Nothing unread above.")

    def action_fold(self) -> None:
        block = self.focused_cell
        if block is None:
            self._hint(NO_CELL)
            return
        for one in results_of(self.source, block) or [block]:
            self.toggle_fold(one)

    def action_fold_thinking(self) -> None:
        before = self.position()
        if not self.fold_all_thinking():
            self._hint("There is no thinking here.")
        elif self.position() == before:
            self._hint("The thinking is out of sight: all of it is folded, or opened, by this key.")
