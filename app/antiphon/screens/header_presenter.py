"""Contents of header and sidebar: the kernel's contexts, and who is here and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from antiphon.render.display import displayable_in_a_row
from antiphon.screens.kernel_calls import KernelActions
from antiphon.screens.layout import DocumentLayout
from antiphon.screens.presence_publisher import PresencePublisher
from antiphon.screens.ui_state import UIState
from antiphon.widgets.block_list import CellModel
from antiphon.widgets.sidebar import ContextName, participant_rows
from antiphon.widgets.status import Participant
from antiphon.widgets.status.participants import participants


class HeaderPresenter:
    """Keeps header and sidebar up to date when it is told that something has changed."""

    def __init__(
        self,
        outlook: UIState,
        source: CellModel,
        frame: DocumentLayout,
        requests: KernelActions,
        presence: PresencePublisher,
        *,
        asked_for: str,
    ) -> None:
        """`asked_for` is the name of the context until its document says one."""
        self._session = outlook.session
        self._source = source
        self._frame = frame
        self._requests = requests
        self._presence = presence
        self._outlook = outlook
        self._asked_for = asked_for
        self._contexts: Sequence[ContextName] = ()

    @property
    def label(self) -> str:
        """Label of this context."""
        return displayable_in_a_row(self._session.document.label or self._asked_for)

    @property
    def other_contexts(self) -> Sequence[ContextName]:
        """Those of the kernel as it listed them last, without this one."""
        here = self._session.document.context
        return [one for one in self._contexts if one.id != here]

    def label_of(self, context: str) -> str | None:
        """Return the label of a context of the kernel, as far as it is known."""
        if context == self._session.document.context:
            return self.label
        return next((one.label for one in self._contexts if one.id == context), None)

    async def list_contexts(self) -> None:
        """Ask the kernel for its contexts and show them."""
        self._contexts = await self._requests.contexts()
        self.show_contexts()

    def show_contexts(self) -> None:
        """This context is among them, also one that is archived."""
        here = self._session.document.context
        named = [
            one if one.id != here else ContextName(one.id, self.label) for one in self._contexts
        ]
        if not any(one.id == here for one in named):
            mark = " · archived" if self._session.document.archived else ""
            named.append(ContextName(here or "", self.label + mark))
        self._frame.sidebar.show_contexts(named, here or "")

    def update_participants(self) -> None:
        """Update the people present, in the header and, with their cells, in the sidebar."""
        people = list(participants(self._session.me, self._session.presence().values()))
        standing = self._session.status
        if standing.refused is self._outlook.looked_at:
            standing = replace(standing, refused=None)
        self._frame.header.show(self.label, people, standing)
        if self._frame.has_sidebar:
            self._frame.sidebar.show_people(
                [
                    participant_rows(one, self._number(one), self._outlook.mode_word)
                    for one in people
                ]
            )

    def _number(self, person: Participant) -> int | None:
        """Which cell somebody is in, counted from 1; None in a draft or nowhere."""
        block = self._presence.block if person.is_me else person.block
        document = self._session.document
        if block is None or block not in document or self._source.is_hidden(block):
            return None
        return document.block_ids().index(block) + 1
