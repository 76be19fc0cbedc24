"""Identity and permissions of the local user, as the kernel reports them."""

from __future__ import annotations

from collections.abc import Callable

from antiphon.screens.local_role import LocalRole
from antiphon.screens.ui_state import UIState
from antiphon.session import Session
from antiphon.widgets.block_list import DocumentView
from antiphon.widgets.composer import Composer
from antiphon_kernel.types.roles import AccessRole


class LocalUser:
    """Tells the parts of the screen; whatever may not be done is refused before it is written."""

    def __init__(
        self,
        session: Session,
        area: DocumentView,
        composer: Composer,
        outlook: UIState,
        *,
        role_changed: Callable[[str | None], None],
        draft_identified: Callable[[], None],
    ) -> None:
        """`role_changed` gets a sentence for the person, if there is something to say."""
        self._session = session
        self._area = area
        self._composer = composer
        self._outlook = outlook
        self._role_changed = role_changed
        self._draft_identified = draft_identified
        self._role = LocalRole()

    @property
    def refusal(self) -> str | None:
        """Why the person may not write, if they may not."""
        refusal = self._role.refusal
        return refusal.words if refusal is not None else None

    @property
    def is_owner(self) -> bool:
        return self._role.role == AccessRole.OWNER

    def is_known(self) -> None:
        """The kernel may have said who the person is, or that their role is another."""
        me = self._session.me
        if me is None:
            return
        if self._area.source.me is None:
            self._area.source.me = me.principal
            self._composer.set_colour(me.colour)
        self._update_role(str(me.role) if me.role is not None else None)
        draft = self._composer.draft
        if self.refusal is None and not draft.is_identified:
            elsewhere = {
                state.block
                for state in self._session.presence().values()
                if state.principal == me.principal and state.block is not None
            }
            draft.attach(me.principal, elsewhere)
            self._draft_identified()

    def is_denied(self) -> None:
        """The connection is another one."""
        if self._role.is_denied(self._session.status):
            self._notify_widgets()
            self._role_changed(None)

    def set_expected_role(self, role: str | None) -> None:
        """The role that was known before the document was replaced, until another one is heard.

        Nothing else happens: keys that are on their way are not to become commands.
        """
        if role is not None and self._role.role is None:
            self._role.update(role)
            self._notify_widgets()

    @property
    def role(self) -> str | None:
        """Role of the local user, as the kernel last reported it."""
        return self._role.role

    def _update_role(self, role: str | None) -> None:
        if role == self._role.role:
            return
        told = self._role.update(role)
        self._notify_widgets()
        self._role_changed(told)

    def _notify_widgets(self) -> None:
        refusal = self._role.refusal
        words = self._outlook.refusal = self._area.source.refusal = self.refusal
        self._composer.set_refusal(words, refusal.instead if refusal is not None else None)
        if self._area.editor is not None:
            self._area.editor.refusal = words
