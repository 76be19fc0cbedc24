"""Cells of a long context that are not here yet: when they are read, and what is said meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from textual.worker import WorkType

from antiphon.session import Session
from antiphon.widgets.block_list import BlockList

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
        return self._session.omitted > 0

    @property
    def words(self) -> str:
        return EARLIER_CELLS if self._session.is_live else EARLIER_OFFLINE

    def read(self, blocks: int) -> None:
        """Ask for so many of the last cells, once."""
        if blocks > self._asked_blocks and self._session.is_live:
            self._asked_blocks = blocks
            self._run_one_of("earlier", partial(self._session.read_earlier, blocks))

    def read_all(self) -> None:
        """Ask for every earlier cell, if there are some."""
        if self.are_omitted:
            self.read(self._session.omitted + len(self._session.document))

    def look(self) -> None:
        """Read earlier cells before the person has come to the first that is here."""
        if self.are_omitted and not self._cells.following:
            if self._cells.cells_above < CELLS_ABOVE:
                self.read(2 * len(self._session.document))
