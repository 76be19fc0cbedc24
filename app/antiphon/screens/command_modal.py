"""A question whether a command is to run, which shows all of the command first."""

from __future__ import annotations

from typing import ClassVar, Final

from rich.cells import chop_cells
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import sanitize_for_display
from antiphon.screens.text_modal import TextPage, wrapped
from antiphon.widgets.status import StatusLine, StatusSpan

TITLE: Final = "Run this command?"


class _AnswerLine(StatusLine):
    """The keys that answer, or how to see the rest of the command."""

    DEFAULT_CSS = """
    _AnswerLine { dock: bottom; }
    """

    def __init__(self, theme: CellTheme) -> None:
        super().__init__(theme)
        self.is_read = False
        """Whether the end of the command has been on the screen."""

    def pieces(self, width: int) -> tuple[list[StatusSpan], list[StatusSpan]]:
        theme = self.theme
        keys = ("Ctrl+R", "run it") if self.is_read else ("Space", "more of it, to its end")
        both = (keys, ("Esc", "do not run it"))
        return [
            piece
            for key, words in both
            for piece in (StatusSpan(key, theme.focus), StatusSpan(f" {words}   ", theme.dim))
        ], []


class CommandQuestion(ModalScreen[bool]):
    """Dialog that shows a command and returns whether to run it.

    It is answered with yes by a key that nobody types by the way, and only after the end of the
    command has been on the screen.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "run", show=False, priority=True),
        Binding("escape,ctrl+c", "dismiss(False)", show=False, priority=True),
    ]

    def __init__(self, theme: CellTheme, command: str, reason: str) -> None:
        super().__init__()
        self._command = command
        self._reason = reason
        self._page = TextPage(theme, self._rows)
        self._answers = _AnswerLine(theme)

    def compose(self) -> ComposeResult:
        yield self._page
        yield self._answers

    def on_mount(self) -> None:
        self.watch(self._page, "scroll_y", self._look, init=False)
        self.watch(self._page, "virtual_size", self._look, init=False)
        self.call_after_refresh(self._look)

    def _rows(self, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
        rows = [[StatusSpan(TITLE, theme.heading_2)]]
        rows += [[StatusSpan(line, theme.dim)] for line in wrapped(self._reason, width)]
        rows.append([])
        for line in self._command.split("\n"):
            for part in chop_cells(sanitize_for_display(line.expandtabs()), width) or [""]:
                rows.append([StatusSpan(part, theme.text)])
        return rows

    def _look(self) -> None:
        page = self._page
        is_laid_out = page.size.height and page.virtual_size.height
        if is_laid_out and page.max_scroll_y <= round(page.scroll_y):
            self._answers.is_read = True
        self._answers.update_spans(self._answers.is_read)

    def action_run(self) -> None:
        if self._answers.is_read:
            self.dismiss(True)
