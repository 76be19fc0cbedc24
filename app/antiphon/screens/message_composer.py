"""The composer with its keys: send, earlier messages, private, and the way to the cells."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.binding import BindingType

from antiphon.actions import Owner
from antiphon.keymap import bindings
from antiphon.render.differences import arguments_of
from antiphon.render.view import CellView
from antiphon.screens.action_owner import ActionOwner
from antiphon.widgets.composer import SHELL_MARK, Composer, ComposerEditor
from antiphon.widgets.editor import CellEditor


class MessageComposer(Composer, ActionOwner):
    """The message that is written here, with the actions on it."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Owner.COMPOSER)]

    @on(ComposerEditor.SendRequested)
    def _send_requested(self) -> None:
        self.action_send()

    def action_send(self) -> None:
        text, parts = self.draft.text, self.parts
        if parts.commands.run(text):
            return
        submitting = parts.submitter.send()
        if submitting is not None:
            try:
                parts.history.add(text)
            except OSError as error:
                self.hint(f"The message is not in your history: {error}")
            parts.cells.to_tail()
            parts.tour.tour.sent()
            self.run_in_background(submitting)
        elif not self.draft.text:
            parts.live.go()

    def action_newline(self) -> None:
        self.editor.new_line()

    def action_message_history(self) -> None:
        try:
            messages = self.parts.history.messages()
        except OSError as error:
            self.hint(f"Your messages cannot be read: {error}")
            return
        if not self.editor.offer_history(messages):
            holds = " that contains what is written" if self.draft.text else ""
            other = "other " if self.completions.is_open else ""
            self.hint(f"There is no {other}message of yours{holds}{'' if other else ' yet'}.")

    def action_private(self) -> None:
        draft = self.draft
        if draft.is_private:
            draft.make_shared()
            self.hint("The others see again what you type.")
        else:
            seen = " What stood there until now could be seen." if draft.text else ""
            draft.make_private()
            self.hint(f"Private: nobody sees what you type until you send it.{seen}")
        self.show_role()

    @on(CellEditor.Left)
    def _left(self) -> None:
        if self.parts.find.is_open:
            self.parts.find.end()
        else:
            self.action_navigate()

    @on(ComposerEditor.NavigateRequested)
    def action_navigate(self) -> None:
        cells = self.parts.cells
        if (asked := self.parts.questions.first) is not None:
            cells.focus_cell(asked)
        elif cells.following:
            cells.last_cell()
        elif cells.focused_cell is None:
            cells.focus_neighbour(-1)
        cells.focus()

    # What comes from a cell

    def write_command(self, call: CellView) -> None:
        """A call stays as it was made; a copy of its command can be changed and run."""
        command = call.text or (arguments_of(call.header.input) or {}).get("command")
        if not command or not isinstance(command, str):
            self.hint("This call has no command that could be run again.")
        elif not self.parts.source.user.works_on_host:
            self.hint("Only an owner runs commands here: <key:copy> copies this one.")
        elif self.draft.text.strip():
            self.hint("The composer is not empty: send or clear it, then copy the command.")
        else:
            self.draft.write(SHELL_MARK + command)
            self._write_on()
            self.hint(
                "The call stays as it is: edit a copy of it here, or press <key:send> to be asked."
            )

    def revise(self, message: str, text: str) -> None:
        """Put a message that was sent into the composer: what Enter sends is in its place."""
        if self.draft.text.strip():
            self.hint("The composer is not empty: send or clear it, then edit the message.")
            return
        self.parts.submitter.revise(message, text)
        self._write_on()
        self.hint("<key:send> sends it again, in a branch if something follows it.")

    def _write_on(self) -> None:
        """Go to the end of the message."""
        self.editor.move_cursor(self.editor.document.end)
        self.editor.focus()
