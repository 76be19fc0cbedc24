"""The people of a context, with what they do, and the sidebar with them and the contexts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from textual.widget import Widget

from antiphon.attention import terminal_title
from antiphon.render.display import displayable_in_a_row
from antiphon.render.view import ASKS, WAITS
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.known_contexts import KnownContexts
from antiphon.screens.questions import Questions
from antiphon.widgets.sidebar import WIDE, place_of
from antiphon.widgets.status import Participant
from antiphon.widgets.status.header_line import participants
from antiphon.widgets.status.line import end_of
from antiphon_kernel.client.rejected_edits import Rejection

LEAST_PATH: Final = 20
"""Columns of the header that the path of a file has at least."""


class PeopleHere(Controller):
    """Shows who is here and what the session's status is."""

    def __init__(self, scope: ActionScope, questions: Questions, contexts: KnownContexts) -> None:
        super().__init__(scope)
        self._frame = scope.frame
        self._questions = questions
        self._contexts = contexts
        self.looked_at: Rejection | None = None
        """Rejected edits that the person has been shown."""
        self.is_retired = False
        """Another screen names the terminal's window."""

    def participants(self) -> Sequence[Participant]:
        """Return the people present, with what they do."""
        others = self._session.presence().values()
        waiting = {one.author: WAITS for one in self._questions.waiting()}
        waiting.update((one.author, ASKS) for one in self._questions.mine())
        return participants(self._session.me, others, waiting)

    async def name_place(self) -> None:
        """Show the project's name in the header instead of an address."""
        found = await self._scope.call("kernel.info", {}, "The kernel does not say its name")
        if found is not None:
            self._frame.header.place = displayable_in_a_row(found["label"])
            self.show()

    def show(self) -> None:
        """Update the people in the header and, with their cells, in the sidebar."""
        people = self.participants()
        status = self._session.status
        if status.reason is not None:
            status = replace(status, reason=self._scope.keymap.name_keys(status.reason))
        if status.refused is self.looked_at:
            status = replace(status, refused=None)
        label = self._contexts.label
        file = self._scope.file
        if file is None:
            self._frame.header.show(label, people, status, self._scope.models.use)
        else:
            path = end_of(label, max(self._frame.size.width // 2, LEAST_PATH))
            self._frame.header.show(path, people, status, notes=file.notes)
        if self._frame.has_sidebar:
            mode = self._scope.mode_word
            self._frame.sidebar.show_people(
                [(one, place_of(one, self._number(one), mode)) for one in people]
            )
        if not self.is_retired:
            unread = sum(one.unread for one in self._contexts.others)
            self._frame.app.title = terminal_title(label, people, unread)

    def _number(self, person: Participant) -> int | None:
        """Return the cell somebody is in, counted from 1; None in a draft, a file or nowhere."""
        if self._scope.file is not None:
            return None
        block = self._scope.block if person.is_me else person.block
        # A screen that is being replaced has another document than the session.
        if block is None or block not in self._source.document or self._source.is_hidden(block):
            return None
        return self._scope.number(block)


class SidebarView(Controller):
    """Shows the sidebar or puts it away, and opens the contexts that are chosen there."""

    def __init__(self, scope: ActionScope, contexts: KnownContexts) -> None:
        super().__init__(scope)
        self._frame = scope.frame
        self._contexts = contexts
        scope.frame.sidebar.host = self
        self.focused_before: Widget | None = None
        """Widget that had the focus before the sidebar."""

    def action_sidebar(self) -> None:
        """Into the sidebar, which comes if it is not there; from inside, put it away."""
        frame, size = self._frame, self._frame.screen.size
        if frame.is_beside and self._scope.file is not None:
            self._scope.files.pages.come(action="sidebar")
            return
        is_inside = frame.has_sidebar and frame.sidebar.has_focus
        if is_inside:
            self.leave()
        if is_inside or not frame.has_sidebar:
            frame.wants_sidebar = not frame.has_sidebar
            if frame.fit(size):
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
            self.show_contexts()
        elif self._frame.screen.focused is self._frame.sidebar:
            self.leave()
        self.list_contexts()
        self._scope.host.update()

    def leave(self) -> None:
        before = self.focused_before
        if before is None or not before.is_attached:
            is_file = self._scope.file is not None
            before = self._cells if is_file else self._scope.composer.editor
        before.focus(scroll_visible=False)

    action_leave_contexts = leave

    def list_contexts(self) -> None:
        if self._session.is_live:
            self._scope.host.run_one_of("contexts", self._contexts.fetch_branches)
            if self._frame.has_sidebar:
                self._scope.host.run_one_of("files", self._contexts.fetch_files)
                if self._scope.files.tree.is_open:
                    self._scope.host.run_one_of("tree", self._fetch_tree)

    def show_contexts(self) -> None:
        here = self._session.document.context or ""
        tree = self._scope.files.tree.rows()
        self._frame.sidebar.show_contexts(self._contexts.all, here, self._contexts.files, tree)

    def fold(self, folder: str, *, opens: bool | None = None) -> None:
        """Open or close a folder of the project."""
        self._scope.files.tree.fold(folder, opens=opens)
        self.show_contexts()
        self._scope.host.run_one_of("paths", self._fetch_paths)

    async def _fetch_paths(self) -> None:
        await self._scope.files.fetch(self._scope)
        self.show_contexts()
        await self._fetch_tree()

    async def _fetch_tree(self) -> None:
        await self._scope.files.tree.fetch_marks(self._scope)
        self.show_contexts()

    def follow(self, principal: str) -> None:
        """Leave the sidebar for where somebody is, and stay with them."""
        self.leave()
        self._scope.host.follow(principal)

    def hint(self, text: str) -> None:
        self._hint(text)

    def open_context(self, context: str) -> None:
        """Show a context or a file, which needs the kernel; what is shown is gone back to.

        An entry of the project's tree begins with a slash: a folder is opened or closed.
        """
        session = self._scope.session
        file = next((one for one in self._contexts.files if one.context == context), None)
        if context == session.document.context:
            self.leave()
        elif not session.is_live:
            self._hint("Offline: another context needs the kernel; try again when it is back.")
        elif file is not None:
            self._scope.files.open(file.path)
        elif context.endswith("/"):
            self.fold(context)
        elif context.startswith("/"):
            self._scope.files.open(context[1:])
        else:
            self._scope.open_context(context)
