"""Definition, explanation and completion at the cursor, as the language server of the file says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from antiphon.completion import Completion, CompletionChoice
from antiphon.render.display import displayable_in_a_row
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.modals import TextModal, explanation_rows
from antiphon.screens.picker import PickerEntry, choose
from antiphon.widgets.editor import CellEditor


class LanguageView(Controller):
    """Asks about the place of the cursor in the file on the screen."""

    def __init__(self, scope: ActionScope) -> None:
        super().__init__(scope)
        self._list = scope.composer.completions
        self._editor: CellEditor | None = None
        """The one that is completed in; None while the list is closed."""
        self._line = self._begun = ""
        """The line up to the cursor when it was asked, and the end of it that is completed."""
        self._offered: Sequence[CompletionChoice] = ()

    async def _ask(self, what: str) -> Mapping[str, Any] | None:
        self._cells.undo_first()
        file, text = self._scope.file, self._text_before()
        if file is None or text is None:
            self._hint("There is no cursor in a file: <key:edit> or a click puts it at a name.")
            return None
        line, column = text.count("\n"), len(text) - text.rfind("\n") - 1
        params = {"path": file.path, "what": what, "line": line, "column": column}
        return await self._scope.call("file.ask", params)

    def _text_before(self) -> str | None:
        """Return the text before the cursor, or the place where it was last."""
        block = self._cells.focused_cell
        offset = None if block is None else self._scope.area.cursor_in(block)
        return None if block is None or offset is None else self._source.text(block)[:offset]

    async def action_definition(self) -> None:
        """Go to the definition of what is named at the cursor."""
        told, file = await self._ask("definition"), self._scope.file
        if told is None or file is None:
            return
        places = {f"{one['path']}:{one['line'] + 1}": one for one in told["places"]}
        inside = [name for name, one in places.items() if not one["outside"]]
        if not inside:
            name = displayable_in_a_row(next(iter(places), ""))
            outside = f"It is defined outside of the project: {name}."
            self._hint(outside if name else "No definition is known of what is named here.")
            return
        chosen: str | None = inside[0]
        if len(inside) > 1:
            entries = [PickerEntry(one, one) for one in inside]
            chosen = await choose(self._cells.app, "Go to which definition?", entries)
        if chosen is not None and places[chosen]["path"] == file.path:
            self._scope.area.go_to_line(file.block, places[chosen]["line"])
        elif chosen is not None:
            self._scope.files.open(places[chosen]["path"], places[chosen]["line"])

    action_definition_after_g = action_definition

    async def action_explain(self) -> None:
        """Show what the server says of the name at the cursor."""
        told = await self._ask("hover")
        if told is not None and "\n" in told["text"]:
            self._cells.app.push_screen(TextModal(partial(explanation_rows, told["text"])))
        elif told is not None:
            self._hint(displayable_in_a_row(told["text"]) or "Nothing is known of this place.")

    action_explain_in_file = action_explain

    async def action_complete(self) -> None:
        """Offer what can stand at the cursor, as long as it goes with what is typed there."""
        editor, text = self._scope.editor, self._text_before()
        told = await self._ask("completion")
        if editor is None or text is None or told is None:
            return
        self._editor, editor.takes_key = editor, self._key
        self._line, self._begun = text[text.rfind("\n") + 1 :], told["begun"]
        self._offered = [CompletionChoice(**one) for one in told["items"]]
        if not self.follow():
            self._hint("Nothing is known that could stand here.")

    def follow(self) -> bool:
        """Offer what goes with what has been typed by now; return whether there is something."""
        if self._editor is None:
            return False
        text = self._text_before() if self._scope.editor is self._editor else None
        before = "" if text is None else text[text.rfind("\n") + 1 :]
        typed = self._begun + before[len(self._line) :]
        found = [one for one in self._offered if one.text.casefold().startswith(typed.casefold())]
        is_done = not found or (len(found) == 1 and found[0].text == typed)
        if text is None or not before.startswith(self._line) or is_done:
            self._close()
            return False
        self._list.show(Completion(typed, tuple(found)))
        return True

    def _close(self) -> None:
        if self._editor is not None:
            self._editor.takes_key = None
        self._editor = None
        self._list.show(None)

    def _key(self, key: str) -> bool:
        """Do what a key does in the list; return whether it does anything there."""
        completion, chosen, editor = self._list.completion, self._list.chosen, self._editor
        if completion is None or chosen is None or editor is None:
            return False
        if key in ("up", "down"):
            self._list.move(1 if key == "down" else -1)
        elif key in ("tab", self._list.taken_by):
            self._close()
            end = editor.cursor_offset
            start, end_at = map(editor.document.location_of, (end - len(completion.begun), end))
            editor.replace(chosen.text, start, end_at, maintain_selection_offset=False)
        elif key == "escape":
            self._close()
        else:
            return False
        return True
