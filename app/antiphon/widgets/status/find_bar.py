"""The row in which a text to look for is typed, and how often it was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.reactive import reactive
from textual.widgets import Input

from antiphon.actions import Owner
from antiphon.keymap import bindings
from antiphon.widgets.status.line import StatusLine, StatusSpan

LONGEST_QUERY = 1_000
"""Characters that can be looked for."""


class _FindSign(StatusLine):
    DEFAULT_CSS = """
    _FindSign { width: 3; }
    """

    def pieces(self, width: int) -> tuple[Sequence[StatusSpan], Sequence[StatusSpan]]:
        return [StatusSpan("/", self.cell_theme.focus)], ()


class FindCount(StatusLine):
    """Number of the hit that was gone to, and of all hits."""

    DEFAULT_CSS = """
    FindCount { width: 24; }
    """

    words: reactive[str] = reactive("")

    def pieces(self, width: int) -> tuple[Sequence[StatusSpan], Sequence[StatusSpan]]:
        return (), [StatusSpan(self.words, self.cell_theme.dim)]


class HitSearch(Protocol):
    """The search whose text is typed."""

    def look_for(self, query: str) -> None: ...

    def stay(self) -> None: ...

    def leave(self) -> None: ...

    def step(self, direction: int) -> None: ...


class FindBar(Horizontal):
    """Not there until it is opened."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Owner.FIND)]

    search: HitSearch

    DEFAULT_CSS = """
    FindBar { height: 1; display: none; }
    FindBar.-open { display: block; }
    FindBar Input, FindBar Input:focus {
        width: 1fr; height: 1; border: none; padding: 0; background: transparent;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self.input = Input(compact=True, max_length=LONGEST_QUERY)
        self.input.cursor_blink = False
        self._sign = _FindSign()
        self.count = FindCount()

    def compose(self) -> ComposeResult:
        yield self._sign
        yield self.input
        yield self.count

    def open(self, where: str) -> None:
        """Show the row and give it the focus; what is typed replaces the text found last."""
        self.input.placeholder = f"Find in {where}"
        self.add_class("-open")
        self.input.focus(scroll_visible=False)
        self.input.action_select_all()

    def set_query(self, query: str) -> None:
        """Show a text that is to be found already."""
        with self.input.prevent(Input.Changed):
            self.input.value = query
            self.input.cursor_position = len(query)

    def hide(self) -> None:
        """Take the row away; the text to find stays in it for the next time."""
        self.remove_class("-open")

    def set_margin(self, margin: int) -> None:
        """Stand in line with what is above or below."""
        self._sign.margin = margin
        self._sign.styles.width = margin + 2

    @on(Input.Changed)
    def _query_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.search.look_for(event.value)

    def action_keep_hit(self) -> None:
        self.search.stay()

    def action_leave_find(self) -> None:
        self.search.leave()

    def action_hit_below(self) -> None:
        self.search.step(1)

    def action_hit_above(self) -> None:
        self.search.step(-1)
