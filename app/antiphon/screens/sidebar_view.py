"""The sidebar: contexts and people, kept up to date, and the way from it and back to it."""

from __future__ import annotations

from textual.geometry import Size
from textual.widget import Widget

from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.known_contexts import KnownContexts
from antiphon.screens.people_here import PeopleHere
from antiphon.widgets.sidebar import WIDE


class SidebarView(Controller):
    """Shows the sidebar or puts it away, and opens the contexts that are chosen there."""

    def __init__(self, scope: ActionScope, contexts: KnownContexts, people: PeopleHere) -> None:
        super().__init__(scope)
        self._frame = scope.frame
        self._contexts = contexts
        self._people = people
        self.focused_before: Widget | None = None
        """Widget that had the focus before the sidebar."""

    def fit_terminal(self, size: Size) -> None:
        """Lay out for a terminal of this size."""
        if self._frame.fit(size):
            self.update()

    def toggle(self) -> None:
        """Into the sidebar, which comes if it is not there; from inside, put it away."""
        frame, size = self._frame, self._frame.screen.size
        is_inside = frame.has_sidebar and frame.sidebar.has_focus
        if is_inside:
            self.leave()
        if (is_inside or not frame.has_sidebar) and frame.toggle_sidebar(size):
            self.update()
            if size.width >= WIDE:
                # In a narrow terminal it comes for a moment, to choose a context.
                frame.choose("sidebar", frame.has_sidebar)
        if is_inside:
            return
        if frame.has_sidebar:
            frame.sidebar.focus()
        else:
            self._hint("There is no room for the sidebar in a terminal this narrow.")

    def update(self) -> None:
        """The sidebar may have come or gone, or may be out of date."""
        if self._frame.has_sidebar:
            self._show_contexts()
            self.list_contexts()
        elif self._frame.screen.focused is self._frame.sidebar:
            self.leave()
        self._people.show()

    def leave(self) -> None:
        before = self.focused_before
        if before is None or not before.is_attached:
            before = self._scope.composer.editor
        before.focus(scroll_visible=False)

    def look_at_contexts(self) -> None:
        if self._frame.has_sidebar:
            self._scope.host.run_one_of("contexts", self._contexts.fetch)

    def list_contexts(self) -> None:
        if self._session.is_live:
            self._scope.host.run_one_of("contexts", self._contexts.fetch_branches)

    def contexts_changed(self) -> None:
        self._show_contexts()
        self._people.show()

    def _show_contexts(self) -> None:
        here = self._session.document.context or ""
        self._frame.sidebar.show_contexts(self._contexts.all, here)

    def open_context(self, context: str) -> None:
        """Show a context, which needs the kernel; the one that is shown is gone back to."""
        session = self._scope.session
        if context == session.document.context:
            self.leave()
        elif not session.is_live:
            self._hint("Offline: another context needs the kernel; try again when it is back.")
        else:
            self._scope.open_context(context, None)
