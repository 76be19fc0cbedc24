"""Conflicts shown one at a time with the ways out: of a file with the disk, of a fork's merge."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

from textual.binding import Binding, BindingType

from antiphon.render.cell_theme import CellTheme
from antiphon.render.code_source import coloured
from antiphon.render.display import displayable_in_a_row
from antiphon.render.text_lines import language_of
from antiphon.screens.modals import HintingModal, Result, TextPage
from antiphon.session import KernelCalls
from antiphon.widgets.status import KeyLines, Keys, StatusSpan
from antiphon_kernel.types.quoting import count_of

_TAB: Final = 4


class ConflictsModal(HintingModal[Result | None]):
    """Shows one step of several at a time; in a conflict a side can be taken, or edited."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "take('ours')", show=False),
        Binding("t", "take('theirs')", show=False),
        Binding("b", "take('both')", show=False),
        Binding("e", "edit", show=False),
        Binding("n,right_square_bracket", "step(1)", show=False),
        Binding("p,left_square_bracket", "step(-1)", show=False),
        Binding("escape,q,ctrl+c", "dismiss(None)", show=False, priority=True),
    ]

    def __init__(self, steps: Sequence[Any], keys: Keys) -> None:
        super().__init__()
        self._steps = steps
        self._at = 0
        self._page = TextPage(self._rows)
        self._keys = KeyLines(keys)
        self.shown = (self._page, self._keys)

    @abstractmethod
    def _rows(self, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
        """Return the rows of the step that is shown."""

    def _go(self, at: int) -> None:
        self._at = at
        self._page.scroll_home(animate=False)
        self._page.reload()

    def action_step(self, by: int) -> None:
        at = self._at + by
        if 0 <= at < len(self._steps):
            self._go(at)
        else:
            self.hint(f"This is the {'last' if by > 0 else 'first'} of them.")


class FileConflictsModal(ConflictsModal[int]):
    """Shows the conflicts of a file with the disk until all are decided.

    It returns the line of the one that the person wants to edit, and None in all other cases.
    """

    def __init__(
        self, kernel: KernelCalls, path: str, conflicts: Sequence[Mapping[str, Any]]
    ) -> None:
        keys = (
            *(("o", "ours, as here"), ("t", "theirs, as on disk"), ("b", "both")),
            *(("e", "both, and edit"), ("n p", "next, before"), ("Esc", "later")),
        )
        super().__init__(conflicts, keys)
        self._kernel = kernel
        self._path = path

    def _rows(self, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
        one = self._steps[self._at]
        place = f"   conflict {self._at + 1} of {len(self._steps)} · line {one['start'] + 1}"
        path = displayable_in_a_row(self._path)
        rows = [[StatusSpan(path, theme.heading_2), StatusSpan(place, theme.dim)]]
        sides = (("ours", "here", theme.status_done), ("theirs", "on disk", theme.unread))
        for side, where, style in sides:
            text = one[side].expandtabs(_TAB)
            language = language_of(self._path, None)
            lines = coloured(text.split("\n"), language, theme) if text else []
            words = f" {where} · {count_of(len(lines), 'line')}"
            rows += [[], [StatusSpan(side, style), StatusSpan(words, theme.dim)]]
            for line in lines:
                parts = [StatusSpan(displayable_in_a_row(part), look) for part, look in line]
                rows.append([StatusSpan("▎ ", style), *parts])
        return rows

    def action_take(self, side: str) -> None:
        self.run_one_of("resolve", partial(self._resolve, side))

    async def _resolve(self, side: str, *, edits: bool = False) -> None:
        params = {"path": self._path, "conflict": self._at, "take": side}
        start = self._steps[self._at]["start"]
        if await self._kernel.call("file.resolve", params, "Not decided") is None:
            return
        left = await self._kernel.call("file.diff", {"path": self._path})
        self._steps = [] if left is None else left["conflicts"]
        if edits or not self._steps:
            self.dismiss(start if edits else None)
            return
        self._go(min(self._at, len(self._steps) - 1))

    def action_edit(self) -> None:
        self.run_one_of("resolve", partial(self._resolve, "both", edits=True))
