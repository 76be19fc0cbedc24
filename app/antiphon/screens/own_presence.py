"""Presence of the person here, as the others see it: where they are, and what they do."""

from __future__ import annotations

from typing import Final

from textual.timer import Timer

from antiphon.actions import Mode
from antiphon.screens.input_focus import InputFocus
from antiphon.session import Session
from antiphon.widgets.block_list import BlockList
from antiphon.widgets.composer import Composer
from antiphon_kernel.types.enums import Activity
from antiphon_kernel.types.presence import TextPlace

TYPING_SECONDS: Final = 3.0
"""How long after the last key somebody still counts as typing."""


class OwnPresence:
    """Publishes cell, cursor, view and activity of the person here."""

    def __init__(
        self, session: Session, focus: InputFocus, cells: BlockList, composer: Composer
    ) -> None:
        self._session = session
        self._focus = focus
        self._cells = cells
        self._composer = composer
        self._typing: Timer | None = None
        """Runs while the person counts as typing."""
        self.pointer: TextPlace | None = None
        """The text that the person here points at."""
        self.gathers = False
        """The person here asks the others to come."""

    def publish(self) -> None:
        """Tell the others in which cell the person is, where in it, and what they see of it."""
        block, editor, mode = self._focus.block, self._focus.editor, self._focus.mode
        cursor, anchor = None, None
        if editor is not None and block is not None:
            cursor, anchor = editor.cursor_offset, editor.anchor_offset
        draft = self._composer.draft
        is_seen = bool(draft.text) and not draft.is_private
        may_type = mode is Mode.EDIT or (mode is Mode.WRITE and is_seen)
        is_typing = self._typing is not None and may_type
        self._session.replica.awareness.publish(
            block,
            cursor,
            anchor,
            Activity.TYPING if is_typing else Activity.IDLE,
            view=self._cells.shown.first_place(),
            pointer=self.pointer,
            gathers=self.gathers,
        )

    def typed(self) -> None:
        """A letter was typed, in a cell or in the message."""
        if self._typing is not None:
            self._typing.stop()  # its `reset` would let it go on to its end first
        self._typing = self._composer.set_timer(TYPING_SECONDS, self._typing_ended)
        self.publish()

    def _typing_ended(self) -> None:
        self._typing = None
        self.publish()
