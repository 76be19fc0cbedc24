"""The view when a context is shown: where it was left, a cell that is wanted, or a preview."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from antiphon.project_files import KernelFile
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.cell_versions import CellVersions
from antiphon.screens.find_view import FindView
from antiphon.screens.known_contexts import KnownContexts
from antiphon.widgets.block_list import CellModel, PreviewView


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
        self._preview: PreviewView | None = None
        """Blocks of the context that are shown until the document is here."""
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
        if self._preview is not None:
            self._preview.hand_over(cells)
        elif file is not None and there.line is not None:
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

    # The preview

    def show_preview(self) -> None:
        """Show some blocks of a long context, if they are those that the document will show."""
        preview = self._session.preview
        if preview is None or self._preview is not None or self._session.is_live:
            return
        block = self._arriving.block or self._scope.memory.place(preview.context).block
        if block is not None and block not in preview.document:
            return
        source = CellModel(preview.document, me=preview.me, user=self._cells.source.user)
        source.gutter = self._cells.source.gutter
        view = self._preview = PreviewView(source)
        self._cells.preview = view.cells
        view.styles.layer = "preview"
        self._scope.frame.page.mount(view)
        self._cells.call_after_refresh(self._place_preview, view, preview.context)

    def _place_preview(self, view: PreviewView, context: str) -> None:
        if self._arriving.block is not None:
            view.cells.focus_cell(self._arriving.block)
        else:
            self._scope.memory.go_back(context, view.cells)

    def replace_preview(self) -> None:
        """Draw the document, and then show it instead of the preview."""
        if self._preview is not None:
            self._cells.draw()
            self._cells.call_after_refresh(self.hide_preview)

    def hide_preview(self) -> None:
        """Show the document instead, or nothing if it cannot be had."""
        preview, self._preview = self._preview, None
        self._cells.preview = None
        if preview is not None:
            preview.remove()
