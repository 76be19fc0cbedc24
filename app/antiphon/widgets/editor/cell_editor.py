"""A text area over one cell, bound to a block of a document."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.document._document import EditResult, Selection
from textual.document._edit import Edit
from textual.geometry import Size
from textual.message import Message
from textual.widgets import TextArea

from antiphon.local_user import LocalUser
from antiphon.widgets.editor.cell_document import Replaced
from antiphon.widgets.editor.plain_text_area import PlainTextArea
from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.document.document import Document
from antiphon_kernel.text.transform import shift_offset
from antiphon_kernel.types.records import TextSplice


def is_text_input(typed: str) -> bool:
    """Return whether what a key sends is text: all but C0, DEL and C1.

    `str.isprintable` is narrower: it leaves out spaces such as U+3000 and joiners such as U+200D.
    """
    return bool(typed) and all(unicodedata.category(character) != "Cc" for character in typed)


ORIGIN = "editor"
"""The origin of every transaction that this editor makes."""


FOLDED_LINES: Final = 20

FOLDED_CHARACTERS: Final = 2_000
"""A pasted text with more lines or characters is shown as a label, until it is opened."""


class CellEditor(PlainTextArea):
    """Edits `document.text(block)`; `text` equals it after every event.

    Its host shows rows of it with `show_rows`. Without a host it shows rows around the cursor.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+home", "text_start", "To the start of the text", show=False),
    ]

    @dataclass
    class EditorMessage(Message):
        """Something that an editor says about its block."""

        editor: CellEditor

    class Left(EditorMessage):
        """Esc without a selection: the person is done here."""

    @dataclass
    class WriteRefused(EditorMessage):
        """The person tried to write and may not; `reason` is a sentence."""

        reason: str

    class CursorMoved(EditorMessage):
        """Own cursor or other end of the selection has moved; also by others' text."""

    @dataclass
    class Edited(EditorMessage):
        """The person changed the text: `inserted` code points came."""

        inserted: int

    class Refolded(EditorMessage):
        """A pasted text is shown, or a label in its place."""

    STICK: ClassVar[Literal["left", "right"]] = "left"
    """On which side of the own cursor text appears that was not typed here: "left" is after it."""

    def __init__(
        self,
        document: Document,
        block: str,
        *,
        offset: int = 0,
        anchor: int | None = None,
        host: Callable[[CellEditor, bool], None] | None = None,
        user: LocalUser | None = None,
        is_markdown: bool = False,
        language: str = "",
    ) -> None:
        """`offset` and `anchor` are the cursor and the other end of the selection.

        With `is_markdown`, what is written looks like what it means, and code in a `language` is
        coloured. The `host` places the editor, and decides which of its rows are seen. It is told
        when its text, its rows or a cursor changed, and whether it is to be drawn at once because
        the person has changed it.

        Raises:
            KeyError: if there is no such block.
        """
        self.block = block
        self._user = user or LocalUser()
        self._shared = document
        self._host = host
        self._following = False
        self._told: tuple[int, int | None] | None = None
        self._flush_pending = False
        self._rows_to_fill = 1
        """Of the screen, for want of a host."""
        self.takes_key: Callable[[str], bool] | None = None
        """Does what a key does in a list over the text; returns whether that is anything."""
        super().__init__(document.text(block), is_markdown=is_markdown, language=language)
        end = self.document.location_of(offset)
        start = end if anchor is None else self.document.location_of(anchor)
        self.set_reactive(TextArea.selection, Selection(start, end))
        self._stop_watching = document.watch(self._document_changed)

    @property
    def ground_below(self) -> Style:
        """The page, where the editor has more room than the cell that it lies over."""
        return self.ground if self._host is None else self.cell_theme.background

    def on_mount(self) -> None:
        self._publish_cursor()

    def on_unmount(self) -> None:
        self._stop_watching()

    def edit(self, edit: Edit) -> EditResult:
        """An edit of the person at this keyboard: into the document first, then on screen."""
        if self._user.refusal is not None:
            self.post_message(self.WriteRefused(self, self._user.refusal))
            return EditResult(edit.top, "")
        document = self.document
        start, end = document.offset_of(edit.top), document.offset_of(edit.bottom)
        inserted = edit.text.encode("utf-8", "replace").decode()
        replaced = document.get_text_range(edit.top, edit.bottom)
        splice = TextSplice(start, end - start, inserted)
        if not splice.deleted and not inserted:
            return EditResult(edit.top, "")
        kept = self._offsets() if edit.maintain_selection_offset else None
        with self._shared.transaction(ORIGIN):
            self._shared.splice(self.block, start, splice.deleted, inserted)
        done = self._apply(splice)
        if kept is None:
            self.selection = Selection.cursor(done.new_end)
        else:
            self._select([shift_offset(at, splice, stick="right") for at in kept])
        self.record_cursor_width()
        self.post_message(self.Edited(self, len(inserted)))
        self._changed(by_person=True)
        return EditResult(done.new_end, replaced)

    def _document_changed(self, change: DocumentChange) -> None:
        """Others wrote: follow, and leave the person's cursor between the same characters."""
        if change.origin == ORIGIN:
            return
        for text in change.texts:
            if text.block != self.block:
                continue
            offsets = self._offsets()
            for splice in text.splices:
                self._apply(splice)
                offsets = [shift_offset(at, splice, stick=self.STICK) for at in offsets]
            self._following = True
            try:
                self._select(offsets)
            finally:
                self._following = False
            self._changed(by_person=False)

    def unfold_at_cursor(self) -> None:
        """Show the pasted text at the cursor whose label is there, else all of them."""
        at = self.cursor_offset
        if not self.unfold(at, at):
            self.unfold(0, self.document.length)

    def _refold(self, changes: Iterator[Replaced]) -> None:
        super()._refold(changes)
        self.post_message(self.Refolded(self))

    def _changed(self, *, by_person: bool) -> None:
        self._cursor_offset = self.wrapped_document.location_to_offset(self.selection.end)
        if self._host is not None:
            self._host(self, by_person)
        elif not self._flush_pending and self.is_mounted:
            self._flush_pending = True
            self.call_next(self._flush)

    def _flush(self) -> None:
        """Show the rows around the cursor, for want of a host."""
        self._flush_pending = False
        if self.virtual_size.height != self.row_count:
            self.virtual_size = Size(0, self.row_count)
        height = self._rows_to_fill
        row = self.cursor_row
        top = max(row - height + 1, min(self.row_cache.top, row, max(self.row_count - height, 0)))
        self.show_rows(top, height)

    def _on_resize(self) -> None:
        if self._host is None:
            self.set_text_width(max(self.size.width - 1, 1))
            self._changed(by_person=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        if self._host is None:
            self.set_text_width(max(width - 1, 1))
        return self.row_count

    # Where the cursor is

    def _watch_selection(self, previous_selection: Selection, selection: Selection) -> None:
        if not self.is_mounted:
            return
        if previous_selection != selection:
            self.app.clear_selection()
        if self._publish_cursor() and not self._following:
            self._changed(by_person=True)

    def _publish_cursor(self) -> bool:
        """Say where the cursor is, if that is news."""
        place = (self.cursor_offset, self.anchor_offset)
        if place == self._told:
            return False
        self._told = place
        self.post_message(self.CursorMoved(self))
        return True

    # Keys

    async def _on_key(self, event: events.Key) -> None:
        if self.takes_key is not None and self.takes_key(event.key):
            pass
        elif event.key == "escape":
            if self.selection.is_empty:
                self.post_message(self.Left(self))
            else:
                self.move_cursor(self.selection.end)
        elif event.key in ("tab", "shift+tab"):
            self._tab(backwards=event.key == "shift+tab")
        elif event.character is not None and is_text_input(event.character):
            self._replace_via_keyboard(event.character, *self.selection)
        else:
            return
        event.stop()
        event.prevent_default()

    def check_consume_key(self, key: str, character: str | None = None) -> bool:
        return key == "tab" or (character is not None and is_text_input(character))

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        text = event.text.replace("\r\n", "\n").replace("\r", "\n")
        start = min(self._offsets())
        lines = text.count("\n") + (not text.endswith("\n"))
        self._replace_via_keyboard(text, *self.selection)
        is_large = lines > FOLDED_LINES or len(text) > FOLDED_CHARACTERS
        if is_large and self.cursor_offset == start + len(text):
            size = f"{max(1, round(len(text.encode('utf-8', 'replace')) / 1000)):,} kB"
            count = f"{lines:,} lines" if lines > 1 else "1 line"
            self.fold(start, start + len(text), f"[pasted {count} · {size}]")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave undo to the document's, by author: the text area's would take back others' text."""
        return action not in ("undo", "redo") and super().check_action(action, parameters)
