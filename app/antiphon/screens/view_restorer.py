"""The view when a context is shown: where it was left, or a cell that is wanted."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from antiphon.project_files import KernelFile
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.cell_versions import CellVersions
from antiphon.screens.find_view import FindView
from antiphon.screens.known_contexts import KnownContexts


class Destination(NamedTuple):
    """A context to show, and where in it."""

    context: str
    file: KernelFile | None = None
    block: str | None = None
    query: str = ""
    """A text to find in the block."""
    line: int | None = None
    """Of a file, counted from 0."""
    version: int | None = None
    """Of the context: the block is shown as it was then."""


class ViewRestorer(Controller):
    """Goes to where the person wants to be, once, and writes down where they are."""

    def __init__(
        self, scope: ActionScope, find: FindView, contexts: KnownContexts, versions: CellVersions
    ) -> None:
        super().__init__(scope)
        self._find = find
        self._contexts = contexts
        self._versions = versions
        self._arriving = Destination("")
        """Place to go to when the document is there."""
        self.is_restored = False
        """The view is where it was when this context was left."""

    def arrive(self, there: Destination) -> None:
        """Go somewhere as soon as the document is there, not where one was."""
        self._arriving = there
        self._cells.focus()

    def restore(self) -> None:
        context, cells = self._session.document.context, self._cells
        if context is None or self.is_restored:
            return
        self.is_restored = True
        there, block, file = self._arriving, self._arriving.block, self._scope.file
        if file is not None and there.line is not None:
            self._scope.area.go_to_line(file.block, there.line)
        elif file is not None:
            cells.first_cell()
            self._scope.memory.go_back(context, cells)
        elif block is not None and cells.has_cell(block):
            cells.focus_cell(block)
        else:
            self._scope.memory.go_back(context, cells)
        if block is not None and not cells.has_cell(block):
            return
        if block is not None and there.query:
            self._find.find_from(block, there.query)
        if there.version is not None:
            show = partial(self._versions.show_history, block, there.version)
            self._scope.host.run_in_background(show)

    def keep(self, *, is_left: bool = True) -> None:
        """Write down what is on the screen, for whoever comes back."""
        context = self._session.document.context
        if context is not None and self.is_restored:
            self._scope.memory.keep(context, self._contexts.label, self._cells, is_left=is_left)
