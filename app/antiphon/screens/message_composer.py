"""The composer with its keys: send, earlier messages, private, and the way to the cells."""

from __future__ import annotations

from textual import on

from antiphon.screens.action_owner import ActionOwner
from antiphon.widgets.composer import Composer, ComposerEditor
from antiphon.widgets.editor import CellEditor


class MessageComposer(Composer, ActionOwner):
    """The message that is written here, with the actions on it."""

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
