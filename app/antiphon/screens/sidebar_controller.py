"""Actions of the keys that concern the sidebar."""

from __future__ import annotations

from collections.abc import Callable

from textual.widget import Widget

from antiphon.screens.layout import DocumentLayout
from antiphon.session import Session
from antiphon_kernel.types.errors import AntiphonError


class SidebarController:
    """Goes into the sidebar and back to where the person was."""

    def __init__(
        self,
        frame: DocumentLayout,
        session: Session,
        *,
        hint: Callable[[str], None],
        changed: Callable[[], None],
        open_context: Callable[[str], None],
    ) -> None:
        """`changed` is told when the sidebar has come or gone; `open_context` takes an id."""
        self._frame = frame
        self._session = session
        self._hint = hint
        self._changed = changed
        self._open_context = open_context
        self._before: Widget | None = None

    def toggle(self) -> None:
        """Into the sidebar, which comes if it is not there; from inside, put it away."""
        frame, sidebar = self._frame, self._frame.sidebar
        if frame.has_sidebar and sidebar.has_focus:
            self.leave()
            frame.toggle_sidebar(frame.screen.size)
            self._changed()
            return
        if not frame.has_sidebar:
            frame.toggle_sidebar(frame.screen.size)
            self._changed()
        if not frame.has_sidebar:
            self._hint("There is no room for the sidebar in a terminal this narrow.")
            return
        self._before = frame.screen.focused
        sidebar.focus()

    def leave(self) -> None:
        """Back to where the person was."""
        before = self._before
        if before is None or not before.is_attached:
            before = self._frame.composer.editor
        before.focus(scroll_visible=False)

    def choose(self, step: int) -> None:
        self._frame.sidebar.choose(step)

    def open_chosen(self) -> None:
        self.open(self._frame.sidebar.chosen)

    async def open_again(self) -> None:
        """Show this context anew, over another connection; what is shown stays if that fails."""
        try:
            await self._session.check_access()
        except AntiphonError as error:
            self._hint(error.message)
            return
        self._open_context(self._session.document.context or self._frame.header.context)

    def open(self, context: str) -> None:
        """Show this context, which needs the kernel; the one that is shown is gone back to."""
        if context == self._session.document.context:
            self.leave()
        elif not self._session.is_live:
            self._hint("Offline: another context needs the kernel; try again when it is back.")
        else:
            self._open_context(context)
