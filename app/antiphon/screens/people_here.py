"""The people of a context, with what they do: in the header, the sidebar and the window's title."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from antiphon.keymap import KeyMap
from antiphon.render.display import displayable_in_a_row
from antiphon.render.view import ASKS, WAITS
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.known_contexts import KnownContexts
from antiphon.screens.known_models import KnownModels
from antiphon.screens.questions import Questions
from antiphon.terminal_title import terminal_title
from antiphon.widgets.sidebar import place_of
from antiphon.widgets.status import Participant
from antiphon.widgets.status.header_line import participants
from antiphon_kernel.client.rejected_edits import Rejection


class PeopleHere(Controller):
    """Shows who is here and what the session's status is."""

    def __init__(
        self,
        scope: ActionScope,
        questions: Questions,
        contexts: KnownContexts,
        models: KnownModels,
        keymap: KeyMap,
    ) -> None:
        super().__init__(scope)
        self._frame = scope.frame
        self._questions = questions
        self._contexts = contexts
        self._models = models
        self._keymap = keymap
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
            status = replace(status, reason=self._keymap.name_keys(status.reason))
        if status.refused is self.looked_at:
            status = replace(status, refused=None)
        label = self._contexts.label
        self._frame.header.show(label, people, status, self._models.here.use)
        if self._frame.has_sidebar:
            mode = self._scope.mode_word
            self._frame.sidebar.show_people(
                [(one, place_of(one, self._number(one), mode)) for one in people]
            )
        if not self.is_retired:
            unread = sum(one.unread for one in self._contexts.others)
            self._frame.app.title = terminal_title(label, people, unread)

    def _number(self, person: Participant) -> int | None:
        """Return the cell somebody is in, counted from 1; None in a draft or nowhere."""
        block = self._scope.block if person.is_me else person.block
        # A screen that is being replaced has another document than the session.
        if block is None or block not in self._source.document or self._source.is_hidden(block):
            return None
        return self._scope.number(block)
