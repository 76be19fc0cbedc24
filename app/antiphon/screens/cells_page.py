"""Cells of a context, of which some are ticked to go elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar, NamedTuple

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import SelectionList

from antiphon.render.display import displayable_in_a_row
from antiphon.screens.modals import HintingModal
from antiphon.widgets.status import KeyLines
from antiphon_kernel.types.quoting import count_of


class ListedCell(NamedTuple):
    """A cell that can go elsewhere."""

    words: str
    blocks: list[str]
    """Its block, and those that go along."""
    tokens: int

    @property
    def shown(self) -> Content:
        tokens = f"  {count_of(self.tokens, 'token')}"
        return Content.assemble(displayable_in_a_row(self.words), (tokens, "$text-muted"))


class ChosenCells(NamedTuple):
    """What a person has ticked."""

    blocks: list[str]
    wakes: bool
    """Models answer what comes."""


class CellsModal(HintingModal[ChosenCells | None]):
    """Lets a person tick cells."""

    DEFAULT_CSS = """
    CellsModal SelectionList, CellsModal SelectionList:focus {
        border: none; height: 1fr; background: transparent;
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("w", "wake", show=False),
        Binding("enter", "go", show=False, priority=True),
        Binding("escape,q,ctrl+c", "dismiss(None)", show=False, priority=True),
    ]

    def __init__(self, does: str, cells: Mapping[str, ListedCell], ticked: Collection[str]) -> None:
        """`does` is what Enter does, in words."""
        super().__init__()
        self._does = does
        self._cells = cells
        self._wakes = True
        self._list = SelectionList[str](
            *((one.shown, cell, cell in ticked) for cell, one in cells.items())
        )
        self._keys = KeyLines()
        self.shown = (self._list, self._keys)

    def on_mount(self) -> None:
        self._list.focus()
        at = [at for at, cell in enumerate(self._cells) if cell in self._list.selected]
        self._list.highlighted = min(at, default=len(self._cells) - 1)
        self._name_keys()

    @on(SelectionList.SelectedChanged)
    def _name_keys(self) -> None:
        cells = [self._cells[one] for one in self._list.selected]
        tokens = count_of(sum(one.tokens for one in cells), "token")
        does = f"{self._does}: {count_of(len(cells), 'cell')}, about {tokens}"
        wakes = f"{'☑' if self._wakes else '☐'} models answer"
        self._keys.keys = (("Space", "tick"), ("w", wakes), ("Enter", does), ("Esc", "leave"))

    def action_wake(self) -> None:
        self._wakes = not self._wakes
        self._name_keys()

    def action_go(self) -> None:
        ticked = [self._cells[cell] for cell in self._cells if cell in self._list.selected]
        if ticked:
            blocks = [block for one in ticked for block in one.blocks]
            self.dismiss(ChosenCells(blocks, self._wakes))
        else:
            self.hint("Tick a cell first.")
