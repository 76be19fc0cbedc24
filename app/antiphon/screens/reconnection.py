"""Going on where one was when the document under the screen was replaced by another one."""

from __future__ import annotations

from dataclasses import dataclass

from antiphon.modes import Mode
from antiphon.screens.local_user import LocalUser
from antiphon.screens.ui_state import UIState
from antiphon.screens.view_restore import ViewRestore


@dataclass(frozen=True, slots=True)
class ScreenState:
    """State that a screen passes on to its successor."""

    mode: Mode
    block: str | None
    cursor: int | None
    """Code points into the block, while it is edited."""
    role: str | None
    """What the person may do, as the kernel said it last."""


class ScreenResumption:
    """Reads off where the person is, and brings them to where they were."""

    def __init__(self, outlook: UIState, identity: LocalUser, bookmark: ViewRestore) -> None:
        self._outlook = outlook
        self._identity = identity
        self._bookmark = bookmark

    def screen_state(self) -> ScreenState:
        """Return the person's current position."""
        mode, editor = self._outlook.mode, self._outlook.area.editor
        return ScreenState(
            mode=mode,
            block=self._outlook.current_block() if mode is not Mode.WRITE else None,
            cursor=editor.cursor_offset if mode is Mode.EDIT and editor is not None else None,
            role=self._identity.role,
        )

    def resume(self, there: ScreenState) -> None:
        """Go to where the person was on the screen before this one."""
        area, block = self._outlook.area, there.block
        self._identity.set_expected_role(there.role)
        self._bookmark.go_back()
        if block is not None and block in self._outlook.session.document:
            area.cells.focus_cell(block, reveal=False)
            if there.mode is Mode.EDIT:
                area.edit(block, there.cursor, to_read=True)
            elif there.mode is Mode.NAVIGATE:
                area.cells.focus()
        elif there.mode is Mode.WRITE:
            self._outlook.composer.editor.focus()
