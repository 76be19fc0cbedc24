"""The one scrolling widget of the document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView

from antiphon.blocklist.cells import CellSource
from antiphon.render.cell_theme import CellTheme


class BlockList(ScrollView):
    """Cells on the line API. Has no keys of its own: every action is a method."""

    focused_cell: reactive[str | None] = reactive(None, init=False)
    """The cell that NAVIGATE acts on; None before the first one is chosen."""
    following: reactive[bool] = reactive(True, init=False)
    """The view stays at the tail."""
    unread_lines: reactive[int] = reactive(0, init=False)
    """Lines below the view that came since the tail was left."""

    class CellFocused(Message):
        """Another cell has the focus now."""

        def __init__(self, block: str | None) -> None:
            super().__init__()
            self.block = block

    class EditRequested(Message):
        """A cell was double-clicked at a place of its text."""

        def __init__(self, block: str, offset: int | None) -> None:
            super().__init__()
            self.block = block
            self.offset = offset

    def __init__(self, source: CellSource, theme: CellTheme, *, id: str | None = None) -> None:
        super().__init__(id=id)
        raise NotImplementedError

    def set_cell_theme(self, theme: CellTheme) -> None: ...
    def focus_cell(self, block: str | None, *, reveal: bool = True) -> None: ...
    def focus_next(self) -> bool: ...
    def focus_previous(self) -> bool: ...
    def focus_first(self) -> None: ...
    def focus_last(self) -> None: ...
    def next_unread(self) -> bool: ...
    def previous_unread(self) -> bool: ...
    def page(self, direction: int) -> None: ...
    def half_page(self, direction: int) -> None: ...
    def scroll_rows(self, rows: int) -> None: ...
    def to_tail(self) -> None: ...
    def reveal(self, block: str, offset: int | None = None) -> None: ...
    def toggle_fold(self, block: str | None = None) -> None: ...
    def fold_all_thinking(self) -> None: ...
    def follow(self, principal: str | None) -> None: ...
    def set_matches(
        self,
        matches: Mapping[str, Sequence[tuple[int, int]]],
        current: tuple[str, int, int] | None = None,
    ) -> None: ...
    def copy_source(self) -> str | None: ...
