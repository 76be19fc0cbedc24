"""The blame view: text in the colours of who wrote it, names in the gutter."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.modals import NO_CELL
from antiphon.widgets.block_list import AuthorRange, CellChange, author_labels
from antiphon_kernel.document.schema import is_text
from antiphon_kernel.text.transform import shift_offset

REFRESH_SECONDS: Final = 0.3
"""How long a change of the text, or of the view, may go unasked."""


class BlameView(Controller):
    """Asks the kernel for the cells in view, and again when they change while it is shown."""

    def __init__(self, scope: ActionScope) -> None:
        super().__init__(scope)
        self._tints: dict[str, tuple[AuthorRange, ...]] = {}
        """Labelled with whole names."""
        self._labels: dict[str, str] = {}
        """Whole names as the gutter has room for them."""
        self._stale: set[str] = set()
        self.shown = False
        scope.source.changed.listen(self._cells_changed)

    def legend(self) -> str:
        """Return what stands in the gutter for names that have no room there; empty without."""
        if not self.shown:
            return ""
        labels = sorted(self._labels.items())
        return " · ".join(f"{label} {name}" for name, label in labels if label != name)

    async def action_blame(self) -> None:
        """Show it, and keep it up to date until it is ended; or end it."""
        if not any(self._cells.viewport.places):
            self._hint(NO_CELL)
        self.shown = not self.shown
        self._tints.clear()
        self._stale.clear()
        self._cells.set_author_ranges({})
        while self.shown:
            if not await self._refresh():
                self.shown = False
                self._cells.set_author_ranges({})
                break
            self._scope.host.update()
            await asyncio.sleep(REFRESH_SECONDS)
        self._scope.host.update()

    def _cells_changed(self, change: CellChange) -> None:
        """Until the kernel is asked again, tints stay with their text."""
        if not self.shown or not change.texts:
            return
        for text in change.texts:
            tints = self._tints.get(text.block)
            if tints is None:
                continue
            self._stale.add(text.block)
            for splice in text.splices:
                tints = tuple(
                    tint._replace(
                        start=shift_offset(tint.start, splice, stick="right"),
                        end=shift_offset(tint.end, splice, stick="left"),
                    )
                    for tint in tints
                )
            self._tints[text.block] = tints
        self._show()

    async def _refresh(self) -> bool:
        """Ask for what is in view and not known; whether there was an answer."""
        seen = dict.fromkeys(place.block for place in self._cells.viewport.places if place)
        due = [block for block in seen if block not in self._tints or block in self._stale]
        for block in due:
            self._stale.discard(block)
            runs = await self._ask(block)
            if runs is None or not self.shown:
                return runs is not None
            if block not in self._stale:
                tints: list[AuthorRange] = []
                for principal, group in groupby(runs, key=itemgetter("principal")):
                    merged = list(group)  # neighbouring runs of one are one range
                    name, colour = self._source.shown_name(principal)
                    tints.append(AuthorRange(merged[0]["start"], merged[-1]["end"], colour, name))
                self._tints[block] = tuple(tints)
        names = {one.label for labelled in self._tints.values() for one in labelled}
        labels = author_labels(names, self._cells.looks.columns)
        if due or labels != self._labels:
            self._labels = labels
            self._show()
        return True

    async def _ask(self, block: str) -> Sequence[Mapping[str, Any]] | None:
        """Return the runs of a block's text by author; None if the kernel does not say."""
        if not is_text(self._source.document.schema(block)):
            return []
        failed = "Who wrote what cannot be shown"
        result = await self._scope.call("block.blame", {"block_id": block}, failed)
        return None if result is None else result["runs"]

    def _show(self) -> None:
        def labelled(tint: AuthorRange) -> AuthorRange:
            return tint._replace(label=self._labels.get(tint.label, tint.label))

        shown = {block: [*map(labelled, tints)] for block, tints in self._tints.items()}
        self._cells.set_author_ranges(shown)
