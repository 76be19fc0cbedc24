"""Presence of the person here, as the others see it: where they are, and what they do."""

from __future__ import annotations

from typing import Final

from textual.timer import Timer

from antiphon.actions import Mode
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon_kernel.types.enums import Activity
from antiphon_kernel.types.presence import TextPlace

TYPING_SECONDS: Final = 3.0
"""How long after the last key somebody still counts as typing."""


class OwnPresence(Controller):
    """Publishes cell, cursor, view and activity of the person here."""

    def __init__(self, scope: ActionScope) -> None:
        super().__init__(scope)
        self._typing: Timer | None = None
        """Runs while the person counts as typing."""
        self.pointer: TextPlace | None = None
        """The text that the person here points at."""
        self.gathers = False
        """The person here asks the others to come."""

    def publish(self) -> None:
        """Tell the others in which cell the person is, where in it, and what they see of it."""
        scope = self._scope
        block, editor, mode = scope.block, scope.editor, scope.mode
        cursor, anchor = None, None
        if editor is not None and block is not None:
            cursor, anchor = editor.cursor_offset, editor.anchor_offset
        draft = scope.composer.draft
        is_seen = bool(draft.text) and not draft.is_private
        may_type = mode is Mode.EDIT or (mode is Mode.WRITE and is_seen)
        is_typing = self._typing is not None and may_type
        self._session.replica.awareness.publish(
            block,
            cursor,
            anchor,
            Activity.TYPING if is_typing else Activity.IDLE,
            view=scope.cells.shown.first_place(),
            pointer=self.pointer,
            gathers=self.gathers,
        )

    def typed(self) -> None:
        """A letter was typed, in a cell or in the message."""
        if self._typing is not None:
            self._typing.stop()  # its `reset` would let it go on to its end first
        self._typing = self._scope.composer.set_timer(TYPING_SECONDS, self._typing_ended)
        self.publish()

    def _typing_ended(self) -> None:
        self._typing = None
        self.publish()
