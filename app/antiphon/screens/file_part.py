"""Page of a file that cannot be opened: what it is, and its text part by part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import displayable_in_a_row, sanitize_for_display
from antiphon.render.wrap import line_ranges
from antiphon.screens.modals import HintingModal, TextPage, wrapped
from antiphon.session import KernelCalls, Session
from antiphon.widgets.status import KeyLines, StatusSpan


class FilePartModal(HintingModal[None]):
    """Shows a file as it is on disk; nothing of it can be changed here."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "next", show=False),
        Binding("p", "before", show=False),
        Binding("e", "end", show=False),
        Binding("escape,q,ctrl+c", "dismiss", show=False, priority=True),
    ]

    def __init__(self, session: Session, part: Mapping[str, Any], reason: str) -> None:
        """
        Args:
            part: the answer of `file.part`.
            reason: why the file is not opened, as a sentence.
        """
        super().__init__()
        self._reason = reason
        self._kernel = KernelCalls(session, self.hint)
        self._part = part
        self._before: list[int] = []
        """First bytes of the parts that were shown before this one."""
        self._page = TextPage(self._rows)
        moves = () if part["end"] == part["size"] else (("n p e", "next part, before, last"),)
        self.shown = (self._page, KeyLines((*moves, ("Esc", "leave"))))

    def _rows(self, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
        part = self._part
        facts = [f"{part['size']:,} bytes", part.get("media_type") or "", "read-only"]
        if part["text"]:
            facts.append(f"bytes {part['start']:,} to {part['end']:,}")
        rows = [[StatusSpan(displayable_in_a_row(part["path"]), theme.heading_2)]]
        for line in wrapped(" · ".join(filter(None, facts)), width):
            rows.append([StatusSpan(line, theme.dim)])
        for line in wrapped(displayable_in_a_row(self._reason), width):
            rows.append([StatusSpan(line, theme.dim)])
        rows.append([])
        for line in part["text"].split("\n"):
            shown = sanitize_for_display(line.expandtabs())
            ranges = line_ranges(shown, max(1, width))
            rows += [[StatusSpan(shown[start:end], theme.text)] for start, end in ranges]
        return rows

    async def _show(self, start: int) -> bool:
        part = await self._kernel.call("file.part", {"path": self._part["path"], "start": start})
        if part is not None:
            self._part = part
            self._page.reload()
            self._page.scroll_home(animate=False)
        return part is not None

    async def action_next(self) -> None:
        """Show what stands after this part."""
        await self._go_on(self._part["end"])

    async def action_end(self) -> None:
        """Show the end of the file, as much of it as of this part."""
        part = self._part
        await self._go_on(max(part["end"], part["size"] - (part["end"] - part["start"])))

    async def _go_on(self, start: int) -> None:
        before = self._part["start"]
        if start >= self._part["size"]:
            self.hint("This is the end of the file.")
        elif await self._show(start):
            self._before.append(before)

    async def action_before(self) -> None:
        """Show the part that was shown before this one."""
        if not self._before:
            self.hint("This is the start of the file.")
        elif await self._show(self._before[-1]):
            self._before.pop()
