"""The list of cells with its keys, and the cells of a long context that are not in it yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from time import monotonic
from typing import ClassVar, Final

from textual.binding import BindingType

from antiphon.actions import Owner
from antiphon.keymap import bindings
from antiphon.screens.background_tasks import ReportsFailedTasks
from antiphon.screens.modals import NO_CELL, PAGE_END, PAGE_START
from antiphon.widgets.block_list import Anchor, BlockList, CellModel, LineMark
from antiphon_kernel.client.local_replica import ReplicaState
from antiphon_kernel.client.replica import Replica
from antiphon_kernel.types.drift import is_drifted
from antiphon_kernel.types.enums import BlockKind, Status

FIRST_CELL: Final = "This is the first cell."

LAST_CELL: Final = "This is the last cell."

CELLS_ABOVE: Final = 200
"""Cells above the view from which on earlier ones are read; some screens full."""

EARLIER_CELLS: Final = "Earlier cells are being read."

EARLIER_OFFLINE: Final = "Offline: earlier cells are read when the kernel is back."

PAIR_SECONDS: Final = 2.0
"""How long after g another key makes a pair with it."""


def moving(move: Callable[[CellList], object], at_the_end: str) -> Callable[[CellList], None]:
    """Return an action that moves in the page, or says why nothing has moved."""
    return lambda cells: cells.move(partial(move, cells), at_the_end)


class CellList(BlockList, ReportsFailedTasks):
    """Moves in the page, and says why if nothing has moved."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Owner.CELLS)]

    hint: Callable[[str], None]
    """Says one sentence to the person; set, like the next ones, before the list is mounted."""

    replica: Replica
    """Asked for earlier cells, which another screen then shows."""

    def __init__(self, source: CellModel) -> None:
        super().__init__(source)
        self._asked_blocks = 0
        """Number of the last blocks that the kernel was asked for."""
        self.goes_first = False
        """The person waits for the first cell, which is not here."""
        self._before_first: tuple[float, str | None, Anchor | None] | None = None
        """When g was pressed, and the focused cell and the view before that."""

    # Earlier cells, which are not here yet

    @property
    def earlier_words(self) -> str:
        is_live = self.replica.state is ReplicaState.LIVE
        return EARLIER_CELLS if is_live else EARLIER_OFFLINE

    def read_earlier(self, blocks: int) -> None:
        """Ask for so many of the last cells, once."""
        if blocks > self._asked_blocks and self.replica.state is ReplicaState.LIVE:
            self._asked_blocks = blocks
            self.run_one_of("earlier", partial(self.replica.read_earlier, blocks))

    def read_all(self) -> None:
        """Ask for every earlier cell, if there are some."""
        if self.replica.omitted:
            self.read_earlier(self.replica.omitted + len(self.replica.document))

    def read_ahead(self) -> None:
        """Read earlier cells before the person has come to the first that is here."""
        if self.replica.omitted and not self.following and self.cells_above < CELLS_ABOVE:
            self.read_earlier(2 * len(self.replica.document))

    # Moving

    def position(self) -> tuple[object, ...]:
        """Return the cell that has the focus, if it is seen which, and the lines on the screen."""
        self.layout_now()
        seen = tuple(place for place in self.viewport.places if place is not None)
        return self.focused_cell if self.has_focus else None, seen

    def move(self, move: Callable[[], object], at_the_end: str) -> None:
        """Move in the page, or say why nothing has moved."""
        self._before_first = None
        before = self.position()
        self.is_laid_out = True
        try:
            move()
            has_moved = self.position() != before
        finally:
            self.is_laid_out = False
        if not has_moved:
            if self.replica.omitted and at_the_end in (FIRST_CELL, PAGE_START):
                at_the_end = self.earlier_words
            self.hint(at_the_end if before[1] else NO_CELL)

    def move_page(self, direction: int) -> None:
        """Scroll by a page."""
        end = PAGE_END if direction > 0 else PAGE_START
        self.move(partial(self.page, direction), end)

    action_next_cell = moving(lambda cells: cells.focus_neighbour(1), LAST_CELL)
    action_previous_cell = moving(lambda cells: cells.focus_neighbour(-1), FIRST_CELL)
    action_last_cell = moving(BlockList.last_cell, LAST_CELL)
    action_line_down = moving(lambda cells: cells.scroll_rows(1), PAGE_END)
    action_line_up = moving(lambda cells: cells.scroll_rows(-1), PAGE_START)
    action_half_page_down = moving(lambda cells: cells.half_page(1), PAGE_END)
    action_half_page_up = moving(lambda cells: cells.half_page(-1), PAGE_START)

    def action_first_cell(self) -> None:
        before = monotonic(), self.focused_cell, self.view_state()
        self.goes_first = self.replica.omitted > 0
        if self.goes_first:
            self.read_all()
            self.first_cell()
            self.hint(self.earlier_words)
        else:
            self.move(self.first_cell, FIRST_CELL)
        self._before_first = before

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the keys of an action to others in a file, where it has none."""
        return not (action == "line_up" and self.source.is_file) and super().check_action(
            action, parameters
        )

    @property
    def is_after_first(self) -> bool:
        """Whether the person has gone to the first cell a moment ago, and nowhere else."""
        before = self._before_first
        return before is not None and monotonic() - before[0] < PAIR_SECONDS

    def undo_first(self) -> None:
        """Go back to where the person was before that."""
        if self.is_after_first and self._before_first is not None:
            _, focused, anchor = self._before_first
            self._before_first = None
            if anchor is None:
                self.to_tail()
            else:
                self.restore_view(anchor)
            self.focus_cell(focused, reveal=False)

    def mark_lines(self, marks: Mapping[int, LineMark]) -> None:
        """Put marks beside lines of a file."""
        self.looks.line_marks = marks
        self.clock.request()

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
        results, header = results_of(self.source, block), self.source.header(block)
        is_over = header.status in (Status.DONE, Status.ERROR)
        if header.kind == BlockKind.TOOL_CALL and not results and not is_over:
            self.hint("The call has printed nothing yet that could be folded.")
            return
        cells = results or [block]
        folded = all(map(self.source.is_folded, cells))
        for one in cells:
            if self.source.is_folded(one) == folded:
                self.toggle_fold(one)
        if not any(map(self.viewport.seen_rows, cells)):
            self.reveal(cells[0], 0)

    def action_fold_thinking(self) -> None:
        before = self.position()
        if not self.fold_all_thinking():
            self.hint("There is no thinking here.")
        elif self.position() == before:
            self.hint("The thinking is out of sight: all of it is folded, or opened, by this key.")


def results_of(source: CellModel, block: str) -> list[str]:
    """Return the blocks of a call's output, or those that came with a drift; none of others."""
    if source.header(block).kind not in (BlockKind.TOOL_CALL, BlockKind.DRIFT):
        return []
    found: list[str] = []
    for one in source.ids()[source.ids().index(block) + 1 :]:
        header = source.header(one)
        belongs = header.kind == BlockKind.TOOL_RESULT or is_drifted(header.metadata)
        if belongs and header.parent in (block, *found):
            found.append(one)
        elif found:
            break
    return found
