"""A question that is answered with one key."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from antiphon.render.cell_theme import CellTheme
from antiphon.widgets.status import StatusLine, StatusSpan


class _QuestionLine(StatusLine):
    """Stands where hints stand."""

    DEFAULT_CSS = """
    _QuestionLine { dock: bottom; margin-bottom: 1; }
    """

    def __init__(self, theme: CellTheme, question: str) -> None:
        super().__init__(theme)
        self._question = question

    def pieces(self, width: int) -> tuple[list[StatusSpan], list[StatusSpan]]:
        theme = self.theme
        answers = [StatusSpan("  y", theme.focus), StatusSpan(" yes  ", theme.dim)]
        answers += [StatusSpan("n", theme.focus), StatusSpan(" no", theme.dim)]
        return [StatusSpan(self._question, theme.unread), *answers], []


class ConfirmModal(ModalScreen[bool]):
    """Over the document, which goes on; Esc is no."""

    DEFAULT_CSS = """
    ConfirmModal { background: transparent; }
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
