"""The place that the person's keys go to, and the mode that follows from it."""

from __future__ import annotations

from collections.abc import Callable

from antiphon.actions import ActionContext, Mode
from antiphon.keymap import takes_keys, works_in
from antiphon.widgets.block_list import DocumentView
from antiphon.widgets.composer import Composer
from antiphon.widgets.editor import CellEditor

READING = "READ"
"""In the place of a mode in which others write."""

PRIVATE = "PRIVATE"
"""In the place of WRITE when nobody else sees what is written."""


class InputFocus:
    """The mode, the editor and the block that keys go to."""

    def __init__(
        self, composer: Composer, area: DocumentView, situation: Callable[[], ActionContext]
    ) -> None:
        """`situation` decides which keys an action has now."""
        self.mode = Mode.WRITE
        self._composer = composer
        self._area = area
        self._situation = situation

    @property
    def mode_word(self) -> str:
        """The mode as a person is told it: who may not write is never in a mode for it."""
        writing = self.mode in (Mode.WRITE, Mode.EDIT)
        if writing and self._area.source.user.refusal is not None:
            return READING
        is_private = self.mode is Mode.WRITE and self._composer.draft.is_private
        return PRIVATE if is_private else self.mode.value

    @property
    def situation(self) -> ActionContext:
        return self._situation()

    def allows(self, action: str) -> bool:
        """Return whether the keys of an action are its own now."""
        return works_in(action, self.mode) and takes_keys(action, self._situation)

    @property
    def editor(self) -> CellEditor | None:
        """The composer's editor, or that of a cell, if it has the focus."""
        if self.mode is Mode.WRITE:
            return self._composer.editor
        return self._area.editor if self.mode is Mode.EDIT else None

    @property
    def block(self) -> str | None:
        """The block that is written or chosen; the draft in the composer."""
        if self.mode is Mode.WRITE:
            return self._composer.draft.block
        editor = self.editor
        return self._area.cells.focused_cell if editor is None else editor.block

    @property
    def cell(self) -> str | None:
        """The cell that is edited or was chosen last."""
        editor = self._area.editor
        return editor.block if editor is not None else self._area.cells.focused_cell

    @property
    def selection(self) -> str:
        """The text that is selected where keys go, or on the screen."""
        editor = self.editor
        if editor is not None:
            return editor.selected_text
        return self._area.screen.get_selected_text() or "" if self._area.is_attached else ""
