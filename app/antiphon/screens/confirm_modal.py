"""A question that is answered with one key."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from antiphon.render.cell_theme import CellTheme
from antiphon.widgets.status.line import Piece, StatusLine


class _QuestionLine(StatusLine):
    """Stands where hints stand."""

    DEFAULT_CSS = """
    _QuestionLine { dock: bottom; margin-bottom: 1; }
    """

    def __init__(self, theme: CellTheme, question: str) -> None:
        super().__init__(theme)
        self._question = question

    def pieces(self, width: int) -> tuple[list[Piece], list[Piece]]:
        theme = self.theme
        answers = [Piece("  y", theme.focus), Piece(" yes  ", theme.dim)]
        answers += [Piece("n", theme.focus), Piece(" no", theme.dim)]
        return [Piece(self._question, theme.unread), *answers], []


class QuestionScreen(ModalScreen[bool]):
    """Over the document, which goes on; Esc is no."""

    DEFAULT_CSS = """
    QuestionScreen { background: transparent; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", show=False),
        Binding("n,escape,q,ctrl+c", "answer(False)", show=False, priority=True),
    ]

    def __init__(self, theme: CellTheme, question: str) -> None:
        super().__init__()
        self._line = _QuestionLine(theme, question)

    def compose(self) -> ComposeResult:
        yield self._line

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)
