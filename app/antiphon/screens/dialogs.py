"""Dialogs shown over the document: pages, a question, the palette."""

from __future__ import annotations

from collections.abc import Callable

from textual.screen import Screen

from antiphon.screens.command_modal import CommandQuestion
from antiphon.screens.confirm_modal import ConfirmModal
from antiphon.screens.help_page import help_rows
from antiphon.screens.layout import DocumentLayout
from antiphon.screens.rejected_page import rejected_rows
from antiphon.screens.text_modal import Rows, TextModal
from antiphon.tour import Tour
from antiphon_kernel.client.rejected_edits import Rejection


class Dialogs:
    """Opens them over a screen, in its theme."""

    def __init__(
        self, screen: Screen[None], frame: DocumentLayout, tour: Tour, suggest: Callable[[], None]
    ) -> None:
        """`suggest` is called when the tour has something else to say."""
        self._screen = screen
        self._frame = frame
        self._tour = tour
        self._suggest = suggest

    def help(self) -> None:
        """All keys; the tour has been seen then."""
        if self._tour.hint_text is not None:
            self._tour.hide()
            self._suggest()
        self._show(help_rows)

    def refused(self, refusal: Rejection) -> None:
        """Show the page on what the kernel refused."""
        self._show(lambda width, theme: rejected_rows(refusal, width, theme))

    def _show(self, rows: Rows) -> None:
        self._screen.app.push_screen(TextModal(self._frame.header.theme, rows))

    async def ask(self, question: str) -> bool:
        """Ask the person a question; return whether they say yes."""
        asking = ConfirmModal(self._frame.header.theme, question)
        return await self._screen.app.push_screen_wait(asking)

    async def ask_to_run(self, command: str, reason: str) -> bool:
        """Show a command and why it is asked about; return whether the person has it run."""
        asking = CommandQuestion(self._frame.header.theme, command, reason)
        return await self._screen.app.push_screen_wait(asking)

    def palette(self) -> None:
        """Everything that can be done, by name."""
        self._screen.app.action_command_palette()
