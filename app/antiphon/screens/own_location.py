"""Location of the local user: the mode follows from the focus, and the others are told the cell."""

from __future__ import annotations

from textual.widget import Widget

from antiphon.modes import Mode
from antiphon.screens.layout import DocumentLayout
from antiphon.screens.presence_publisher import PresencePublisher
from antiphon.screens.ui_state import UIState
from antiphon.widgets.editor import CellEditor


class LocalLocation:
    """Keeps the outlook's mode and the presence in step with focus and cursor."""

    def __init__(
        self, frame: DocumentLayout, presence: PresencePublisher, outlook: UIState
    ) -> None:
        self._frame = frame
        self._area = frame.area
        self._composer = frame.composer
        self._presence = presence
        self._outlook = outlook

    def focus_moved(self, focused: Widget | None) -> Mode:
        """Another widget has the focus; returns the mode from now on."""
        if focused is self._composer.editor:
            mode = Mode.WRITE
        elif isinstance(focused, CellEditor):
            mode = Mode.EDIT
        elif focused is self._frame.sidebar:
            mode = Mode.CONTEXTS
        else:
            mode = Mode.NAVIGATE
        self._outlook.mode = mode
        self.publish()
        return mode

    def view_moved(self) -> None:
        """Another cell may have the focus, which counts while cells are chosen."""
        if self._outlook.mode is Mode.NAVIGATE:
            self.publish()

    def cursor_moved(self, message: CellEditor.CursorMoved) -> None:
        """The cursor of an editor is at another place."""
        own = message.editor is self._composer.editor
        block = self._composer.draft.block if own else message.block
        self._presence.set_cursor(block, message.offset, message.anchor)

    def typed(self) -> None:
        """A key changed some text."""
        self._presence.typed()

    def publish(self) -> None:
        """Tell the others in which cell the person is, and where in it."""
        editor = self._area.editor
        if self._outlook.mode is Mode.WRITE:
            draft = self._composer.draft
            cursor = self._composer.editor.cursor_offset if draft.block else None
            self._presence.set_cursor(draft.block, cursor)
        elif self._outlook.mode is Mode.EDIT and editor is not None:
            self._presence.set_cursor(editor.block, editor.cursor_offset, editor.anchor_offset)
        else:
            self._presence.set_cursor(self._area.cells.focused_cell)
