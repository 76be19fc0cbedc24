"""Pages before something drifts: the cells that go, and what a commit changes in files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from antiphon.render.cell_theme import CellTheme
from antiphon.render.differences import difference_rows, patch_lines
from antiphon.render.display import displayable_in_a_row
from antiphon.screens.modals import HintingModal, TextPage
from antiphon.widgets.status import KeyLines, StatusSpan

_WAKE: Final = "wake"


class CellsModal(HintingModal[dict[str, Any] | None]):
    """Lets a person tick cells; returns what a drift of them is to be told."""

    DEFAULT_CSS = """
    CellsModal OptionList, CellsModal OptionList:focus {
        border: none; height: 1fr; background: transparent;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "tick", show=False, priority=True),
        Binding("enter", "go", show=False, priority=True),
        Binding("escape,q,ctrl+c", "dismiss(None)", show=False, priority=True),
    ]

    def __init__(self, does: str, cells: Mapping[str, str], chosen: str | None) -> None:
        """`does` is what Enter does, in words."""
        super().__init__()
        self._rows = {**cells, _WAKE: "Models answer"}
        self._ticked = {_WAKE} | (cells.keys() & {chosen})
        self._list = OptionList(*(Option(self._shown(one), one) for one in self._rows))
        first = chosen if chosen and chosen in cells else [_WAKE, *cells][-1]
        self._list.highlighted = self._list.get_option_index(first)
        keys = (("Space", "tick"), ("Enter", f"{does} (nothing ticked: the last answer)"))
        self.shown = (self._list, KeyLines((*keys, ("Esc", "leave"))))

    def _shown(self, row: str) -> Content:
        sign = "☑ " if row in self._ticked else "☐ "
        return Content(sign + displayable_in_a_row(self._rows[row]))

    def action_tick(self) -> None:
        option = self._list.highlighted_option
        if option is not None and option.id is not None:
            self._ticked ^= {option.id}
            self._list.replace_option_prompt(option.id, self._shown(option.id))

    def action_go(self) -> None:
        blocks = [one for one in self._rows if one in self._ticked and one != _WAKE]
        self.dismiss({"wake": _WAKE in self._ticked} | ({"blocks": blocks} if blocks else {}))


class DifferenceModal(HintingModal[bool]):
    """Shows what would be changed in files; returns whether to do it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "dismiss(True)", show=False, priority=True),
        Binding("escape,q,ctrl+c", "dismiss(False)", show=False, priority=True),
    ]

    def __init__(self, patch: str, does: str) -> None:
        """`does` is what Enter does, in words."""
        super().__init__()
        self._lines = patch_lines(patch)
        keys = (("Enter", does), ("Esc", "change nothing"))
        self.shown = (TextPage(self._rows), KeyLines(keys))

    def _rows(self, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
        paths = ", ".join(dict.fromkeys(line.path for line in self._lines))
        rows = [[StatusSpan(f"Commit into {displayable_in_a_row(paths)}", theme.heading_2)], []]
        for row in difference_rows(self._lines, width, theme):
            rows.append([StatusSpan(piece.text, piece.style) for piece in row])
        return rows
