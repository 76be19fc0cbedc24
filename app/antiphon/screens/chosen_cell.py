"""The cell that something is done with, and how cells are named to people."""

from __future__ import annotations

from typing import Final

from antiphon.screens.input_focus import InputFocus
from antiphon.screens.kernel_calls import KernelCalls
from antiphon.widgets.block_list import CellModel
from antiphon_kernel.types.enums import BlockKind, Status

BEGINNING: Final = 60
"""Characters of a cell by which it is told from others."""


class ChosenCell:
    """Finds the cell that the person means, and says why nothing can be done with it."""

    def __init__(self, kernel: KernelCalls, focus: InputFocus, source: CellModel) -> None:
        self._kernel = kernel
        self._session = kernel.session
        self._focus = focus
        self._source = source

    def to(self, verb: str, *, finished: bool = True) -> str | None:
        """Return the cell to do something with; say why not if that is not possible now.

        A cell that is still being written is none, unless it need not be `finished`.
        """
        hint, block = self._kernel.hint, self._focus.cell
        if block is None or block not in self._session.document:
            hint(f"There is no cell to {verb}.")
        elif not self._session.is_live:
            hint(f"Offline: to {verb} a cell needs the kernel; try again when it is back.")
        elif self._source.deliveries.label(block) == "sending":
            hint(f"This message is on its way: {verb} it when it has arrived.")
        elif finished and self._source.header(block).status in (Status.RUNNING, Status.PENDING):
            name = self._source.view(block).author
            hint(f"{name} is not done with this cell: stop it with Ctrl+C, then {verb} it.")
        else:
            return block
        return None

    def number(self, block: str) -> int:
        """Return the place of a block among all, counted from 1."""
        return self._session.omitted + self._source.document.order.index(block) + 1

    def name(self, block: str) -> str:
        """Return a cell's number as people are told it: ¶8."""
        return f"¶{self.number(block)}"

    def place(self, block: str) -> str:
        """Return ` in ¶8`; nothing for a draft."""
        return "" if self._source.is_hidden(block) else f" in {self.name(block)}"

    def beginning(self, block: str) -> str:
        return " ".join(self._source.text(block)[: 4 * BEGINNING].split())[:BEGINNING]

    def author(self, block: str) -> str:
        return self._source.shown_name(self._session.document.header(block).author)[0]


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
