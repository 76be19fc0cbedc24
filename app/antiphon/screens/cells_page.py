"""Cells of a context, of which some are ticked to go elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

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

    def shown(self, *, is_ticked: bool) -> Content:
        tokens = (f"{'☑' if is_ticked else '☐'}{self.tokens:>7,}  ", "$text-muted")
        return Content.assemble(tokens, displayable_in_a_row(self.words))


class ChosenCells(NamedTuple):
    """What a person has ticked."""

    blocks: list[str]
    wakes: bool
    """Models answer what comes."""


class CellsModal(HintingModal[ChosenCells | None]):
    """Lets a person tick cells."""

    DEFAULT_CSS = """
    CellsModal OptionList, CellsModal OptionList:focus {
        border: none; height: 1fr; background: transparent;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "tick", show=False, priority=True),
        Binding("w", "wake", show=False),
        Binding("enter", "go", show=False, priority=True),
        Binding("escape,q,ctrl+c", "dismiss(None)", show=False, priority=True),
    ]

    def __init__(self, does: str, cells: Mapping[str, ListedCell], ticked: Collection[str]) -> None:
        """`does` is what Enter does, in words."""
        super().__init__()
        self._does = does
        self._cells = cells
        self._ticked = set(ticked)
        self._wakes = True
        self._list = OptionList(
            *(Option(one.shown(is_ticked=at in ticked), at) for at, one in cells.items())
        )
        self._keys = KeyLines()
        self.shown = (self._list, self._keys)

    def on_mount(self) -> None:
        self._list.focus()
        at = [at for at, cell in enumerate(self._cells) if cell in self._ticked]
        self._list.highlighted = min(at, default=len(self._cells) - 1)
        self._name_keys()

    def _name_keys(self) -> None:
        cells = [self._cells[one] for one in self._ticked]
        tokens = count_of(sum(one.tokens for one in cells), "token")
        does = f"{self._does}: {count_of(len(cells), 'cell')}, about {tokens}"
        wakes = f"{'☑' if self._wakes else '☐'} models answer"
        self._keys.keys = (("Space", "tick"), ("w", wakes), ("Enter", does), ("Esc", "leave"))

    def action_tick(self) -> None:
        option = self._list.highlighted_option
        if option is not None and option.id is not None:
            self._ticked ^= {option.id}
            is_ticked = option.id in self._ticked
            shown = self._cells[option.id].shown(is_ticked=is_ticked)
            self._list.replace_option_prompt(option.id, shown)
            self._name_keys()

    def action_wake(self) -> None:
        self._wakes = not self._wakes
        self._name_keys()

    def action_go(self) -> None:
        ticked = [one for cell, one in self._cells.items() if cell in self._ticked]
        if ticked:
            blocks = [block for one in ticked for block in one.blocks]
            self.dismiss(ChosenCells(blocks, self._wakes))
        else:
            self.hint("Tick a cell first.")
