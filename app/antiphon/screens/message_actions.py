"""Actions on the message: send, earlier messages, private, and what a cell puts into it."""

from __future__ import annotations

from antiphon.render.tool_call import arguments_of
from antiphon.render.view import CellView
from antiphon.screens.conversation_controllers import ConversationControllers
from antiphon.widgets.composer import SHELL_MARK


class MessageActions:
    """Does what the keys do that work while a message is written."""

    def __init__(self, parts: ConversationControllers) -> None:
        self._parts = parts
        self._hint = parts.scope.hint
        self._composer = parts.composer
        self._draft = parts.composer.draft

    def send(self) -> None:
        text, parts = self._draft.text, self._parts
        if parts.commands.run(text):
            return
        submitting = parts.submitter.send()
        if submitting is not None:
            self._remember(text)
            parts.cells.to_tail()
            parts.tour.tour.sent()
            parts.scope.host.run_in_background(submitting)
        elif not self._draft.text:
            parts.live.go()

    def _remember(self, text: str) -> None:
        try:
            self._parts.history.add(text)
        except OSError as error:
            self._hint(f"The message is not in your history: {error}")

    def offer_history(self) -> None:
        try:
            messages = self._parts.history.messages()
        except OSError as error:
            self._hint(f"Your messages cannot be read: {error}")
            return
        if not self._composer.editor.offer_history(messages):
            holds = " that contains what is written" if self._draft.text else ""
            other = "other " if self._composer.completions.is_open else ""
            self._hint(f"There is no {other}message of yours{holds}{'' if other else ' yet'}.")

    def toggle_private(self) -> None:
        draft = self._draft
        if draft.is_private:
            draft.make_shared()
            self._hint("The others see again what you type.")
        else:
            seen = " What stood there until now could be seen." if draft.text else ""
            draft.make_private()
            self._hint(f"Private: nobody sees what you type until you send it.{seen}")
        self._composer.show_role()

    def navigate(self) -> None:
        cells = self._parts.cells
        if (asked := self._parts.questions.first) is not None:
            cells.focus_cell(asked)
        elif cells.following:
            cells.last_cell()
        elif cells.focused_cell is None:
            cells.focus_neighbour(-1)
        cells.focus()

    # What comes from a cell

    def write_command(self, call: CellView) -> None:
        """A call stays as it was made; a copy of its command can be changed and run."""
        command = call.text or command_in(call.header.input)
        if not command:
            self._hint("This call has no command that could be run again.")
        elif not self._parts.source.user.may_run_commands:
            self._hint("Only an owner runs commands here: <key:copy> copies this one.")
        elif self._draft.text.strip():
            self._hint("The composer is not empty: send or clear it, then copy the command.")
        else:
            self._draft.write(SHELL_MARK + command)
            self._write_on()
            self._hint(
                "The call stays as it is: edit a copy of it here, or press <key:send> to be asked."
            )

    def revise(self, message: str, text: str) -> None:
        """Put a message that was sent into the composer: what Enter sends is in its place."""
        if self._draft.text.strip():
            self._hint("The composer is not empty: send or clear it, then edit the message.")
            return
        self._parts.submitter.revise(message, text)
        self._write_on()
        self._hint("<key:send> sends it again, in a branch if something follows it.")

    def _write_on(self) -> None:
        """Go to the end of the message."""
        editor = self._composer.editor
        editor.move_cursor(editor.document.end)
        editor.focus()


def command_in(stored: str | None) -> str | None:
    """Return the command in a tool call's stored input, if it is one of a shell."""
    command = (arguments_of(stored) or {}).get("command")
    return command if isinstance(command, str) else None
