"""The list of cells with its keys, and the cells of a long context that are not in it yet."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar, Final

from textual.binding import BindingType
from textual.worker import WorkType

from antiphon.actions import Owner
from antiphon.keymap import bindings
from antiphon.screens.modals import NO_CELL, PAGE_END, PAGE_START
from antiphon.session import Session
from antiphon.widgets.block_list import BlockList, CellModel
from antiphon_kernel.types.enums import BlockKind

FIRST_CELL: Final = "This is the first cell."

LAST_CELL: Final = "This is the last cell."


CELLS_ABOVE: Final = 200
"""Cells above the view from which on earlier ones are read; some screens full."""

EARLIER_CELLS: Final = "Earlier cells are being read."

EARLIER_OFFLINE: Final = "Offline: earlier cells are read when the kernel is back."


class EarlierCells:
    """Asks the kernel for earlier cells; another screen then shows them."""

    def __init__(
        self, session: Session, cells: BlockList, run_one_of: Callable[[str, WorkType[None]], None]
    ) -> None:
        """`run_one_of` does some work in the background, unless one of its group is being done."""
        self._session = session
        self._cells = cells
        self._run_one_of = run_one_of
        self._asked_blocks = 0
        """Number of the last blocks that the kernel was asked for."""
        self.goes_first = False
        """The person waits for the first cell, which is not here."""

    @property
    def are_omitted(self) -> bool:
        return self._session.replica.omitted > 0

    @property
    def words(self) -> str:
        return EARLIER_CELLS if self._session.is_live else EARLIER_OFFLINE

    def read(self, blocks: int) -> None:
        """Ask for so many of the last cells, once."""
        if blocks > self._asked_blocks and self._session.is_live:
            self._asked_blocks = blocks
            self._run_one_of("earlier", partial(self._session.replica.read_earlier, blocks))

    def read_all(self) -> None:
        """Ask for every earlier cell, if there are some."""
        if self.are_omitted:
            self.read(self._session.replica.omitted + len(self._session.document))

    def look(self) -> None:
        """Read earlier cells before the person has come to the first that is here."""
        if self.are_omitted and not self._cells.following:
            if self._cells.cells_above < CELLS_ABOVE:
                self.read(2 * len(self._session.document))


def moving(move: Callable[[CellList], object], at_the_end: str) -> Callable[[CellList], None]:
    """Return an action that moves in the page, or says why nothing has moved."""
    return lambda cells: cells.move(partial(move, cells), at_the_end)


class CellList(BlockList):
    """Moves in the page, and says why if nothing has moved."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Owner.CELLS)]

    earlier: EarlierCells
    """Cells that are not here yet."""

    hint: Callable[[str], None]
    """Says one sentence to the person; set, like `earlier`, before the list is mounted."""

    def __init__(self, source: CellModel) -> None:
        super().__init__(source)
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
            self.hint(at_the_end if before[1] else NO_CELL)

    def move_page(self, direction: int) -> None:
        """Scroll by a page."""
        end = PAGE_END if direction > 0 else PAGE_START
        self.move(partial(self.on_screen.page, direction), end)

    def move_to_tail(self) -> None:
        self.move(self.on_screen.to_tail, PAGE_END)

    action_next_cell = moving(lambda cells: cells.focus_neighbour(1), LAST_CELL)
    action_previous_cell = moving(lambda cells: cells.focus_neighbour(-1), FIRST_CELL)
    action_last_cell = moving(BlockList.last_cell, LAST_CELL)
    action_line_down = moving(lambda cells: cells.on_screen.scroll_rows(1), PAGE_END)
    action_line_up = moving(lambda cells: cells.on_screen.scroll_rows(-1), PAGE_START)
    action_half_page_down = moving(lambda cells: cells.on_screen.half_page(1), PAGE_END)
    action_half_page_up = moving(lambda cells: cells.on_screen.half_page(-1), PAGE_START)

    def action_first_cell(self) -> None:
        self.earlier.goes_first = self.earlier.are_omitted
        if self.earlier.goes_first:
            self.earlier.read_all()
            self.first_cell()
            self.hint(self.earlier.words)
        else:
            self.move(self.first_cell, FIRST_CELL)

    def action_next_unread(self) -> None:
        if not self.focus_unread(1):
            self.hint("Nothing unread below.")

    def action_previous_unread(self) -> None:
        if not self.focus_unread(-1):
            self.hint("Nothing unread above.")

    def action_fold(self) -> None:
        block = self.focused_cell
        if block is None:
            self.hint(NO_CELL)
            return
        for one in results_of(self.source, block) or [block]:
            self.toggle_fold(one)

    def action_fold_thinking(self) -> None:
        before = self.position()
        if not self.fold_all_thinking():
            self.hint("There is no thinking here.")
        elif self.position() == before:
            self.hint("The thinking is out of sight: all of it is folded, or opened, by this key.")


def results_of(source: CellModel, call: str) -> list[str]:
    """Return the blocks of a call's output; none if the block is no call."""
    if source.header(call).kind != BlockKind.TOOL_CALL:
        return []
    found: list[str] = []
    for block in source.ids()[source.ids().index(call) + 1 :]:
        header = source.header(block)
        if header.kind == BlockKind.TOOL_RESULT and header.parent == call:
            found.append(block)
        elif found:
            break
    return found
