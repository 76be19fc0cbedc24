"""The place in a context to which the person comes back."""

from __future__ import annotations

from antiphon.screens.view_state import ViewStateController
from antiphon.session import Session
from antiphon.widgets.block_list import BlockList


class ViewRestore:
    """Goes back once, as soon as the document is there; from then on notes where the view is."""

    def __init__(self, session: Session, memory: ViewStateController, cells: BlockList) -> None:
        self._session = session
        self._memory = memory
        self._cells = cells
        self._came_back = False

    def go_back(self) -> None:
        """To where the person was when they left, if that has not been done."""
        context = self._session.document.context
        if context is not None and not self._came_back:
            self._came_back = True
            self._memory.go_back(context, self._cells)

    def keep(self) -> None:
        """Note where the person is."""
        context = self._session.document.context
        if context is not None and self._came_back:
            self._memory.keep(context, self._cells)
