"""Finding a text: hits that are marked, the way from one to the next, and back; all contexts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partialmethod
from typing import Any, Final

from textual.widget import Widget

from antiphon.actions import Mode
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.picker import PickerEntry, PickerModal
from antiphon.widgets.block_list import CellChange, HitPlace, TextFinder
from antiphon.widgets.editor import CellEditor
from antiphon_kernel.text.transform import shift_through
from antiphon_kernel.types.enums import BlockKind

PAUSE_SECONDS: Final = 0.001
"""Between two slices of a search, for keys and frames."""

REFRESH_SECONDS: Final = 0.2
"""How long text that arrives in long cells may go unsearched."""

AROUND: Final = 2
"""Lines above and below a hit that are seen with it."""

FOUND_BLOCKS: Final = 50

FOUND_IN_A_BLOCK: Final = 3

AROUND_MATCH: Final = 60
"""Characters of a line that are shown around a match in another context."""


class FindView(Controller):
    """Search for a text in the cells, or in the one that is edited.

    It is open from `action_find` until `end` or `leave`, also while the person does something else.
    """

    def __init__(self, scope: ActionScope) -> None:
        super().__init__(scope)
        self._bar = scope.frame.find
        self._bar.search = self
        self.focused_before: Widget | None = None
        """Widget that had the focus before the search."""
        self.finder = TextFinder(self._source)
        self.is_open = False
        self._editor: CellEditor | None = None
        """The one whose text is searched; None: the cells."""
        self._start: HitPlace | None = None
        """The search begins behind it."""
        self._restore: Callable[[], None] | None = None
        """Goes back to where the person was before the search."""
        self.place: HitPlace | None = None
        """The hit that the person has gone to."""
        self._opened: list[str] = []
        """Folded cells that were opened to show a hit."""
        self._wake = asyncio.Event()
        self.finder.changed.listen(lambda changed: self._wake.set())
        self._source.changed.listen(self._cells_changed)

    def close(self) -> None:
        self.is_open = False
        self._wake.set()
        self.finder.close()

    # Beginning and end

    def action_find(self) -> None:
        """Ask for a text; in a cell that is being edited for one in there."""
        editor, was_open, mode = self._scope.area.editor, self.is_open, self._scope.mode
        if mode is Mode.FIND:
            self.step(1)
            return
        if mode in (Mode.WRITE, Mode.NAVIGATE):
            self.focused_before = self._cells.screen.focused
        self._open(editor, self._first_seen())
        if not was_open:
            self.look_for(self._bar.input.value)
        if editor is None:
            self._cells.read_all()

    action_find_text = action_find

    def go_on(self, query: str, place: HitPlace | None) -> None:
        """Go on with a search of another screen that showed this context."""
        self._open(None, self._first_seen())
        self._bar.set_query(query)
        self.look_for(query)
        if place is not None and self._cells.has_cell(place.block):
            self.place = place
            self._show()

    def find_from(self, block: str, query: str) -> None:
        """Go to the first hit of a text in a cell, else behind it; all others are marked."""
        self._open(None, HitPlace(block, -1))
        self._cells.focus_cell(block)
        self._bar.set_query(query)
        self.look_for(query)
        self.stay()

    def _open(self, editor: CellEditor | None, start: HitPlace | None) -> None:
        """Search the text of an editor from its cursor on, or the cells from a place on."""
        cells, view, focused = self._cells, self._cells.view_state(), self._cells.focused_cell
        cursor = anchor = 0
        if editor is not None:
            cursor = editor.cursor_offset
            anchor = cursor if editor.anchor_offset is None else editor.anchor_offset
            start = HitPlace(editor.block, min(anchor, cursor) - 1)

        def restore() -> None:
            if view is None:
                cells.to_tail()
            else:
                cells.restore_view(view)
            if editor is None:
                cells.focus_cell(focused, reveal=False)
            elif editor.is_attached:
                editor.select(anchor, cursor)

        self._editor, self._start, self._restore, self.is_open = editor, start, restore, True
        self._opened.clear()
        self._bar.open("this context" if editor is None else "this cell")

    def _first_seen(self) -> HitPlace | None:
        """Return the start of the chosen cell, or of the first one if that is not to be seen."""
        cells = self._cells
        seen = [place.block for place in cells.viewport.places if place is not None]
        focused = cells.focused_cell
        first = focused if cells.has_focus and focused in seen else next(iter(seen), None)
        return None if first is None else HitPlace(first, -1)

    def look_for(self, query: str) -> None:
        """Find another text, from where the person was before the search."""
        if not self.is_open:
            return
        self.place = None
        scope = self._editor.block if self._editor is not None else None
        first = self._start.block if self._start is not None else None
        self.finder.search(query, first=first, scope=scope)
        self._scope.host.run_last_of("find", self._follow)
        self._show()

    def stay(self) -> None:
        """Give the focus to where the hit is; hits stay marked, but in an editor."""
        editor = self._editor
        if editor is not None or not self.finder.query:
            self.end()
        left = editor if editor is not None and editor.is_attached else self._cells
        left.focus(scroll_visible=False)

    def end(self) -> None:
        """Mark nothing any more, and stay here."""
        self.is_open = False
        self.place = None
        self.finder.search("")
        self._bar.hide()
        self._cells.show_hits(None)
        self._wake.set()
        self._scope.host.update()

    action_end_find = end

    def leave(self) -> None:
        """End the search and go to where the person was before it."""
        self._go_back()
        before: Widget | None = self._scope.area.editor or self.focused_before
        if before is None or not before.is_attached:
            before = self._cells
        before.focus(scroll_visible=False)

    def _go_back(self) -> None:
        opened = [one for one in self._opened if self._cells.has_cell(one)]
        self.end()
        if opened:
            self._source.set_folded(opened, True)
        if self._restore is not None:
            self._restore()

    # Searching

    async def action_search(self) -> None:
        """Let the person look for a text in all contexts, and go to a cell that has it."""
        if not self._session.is_live:
            self._hint("Offline: a search in all contexts needs the kernel; / finds in this one.")
            return

        async def ask(query: str) -> Sequence[PickerEntry]:
            is_lower = query == query.lower()
            params = {
                "query": f"(?i){re.escape(query)}" if is_lower else query,
                "regex": is_lower,
                "kinds": [kind.value for kind in BlockKind],
                "context_lines": 0,
                "max_blocks": FOUND_BLOCKS,
                "max_matches_per_block": FOUND_IN_A_BLOCK,
            }
            found = await self._scope.call("kernel.search", params) if query.strip() else None
            return [] if found is None else list(map(_found_entry, found["results"]))

        empty = "Type what to look for: lower case finds both cases."
        modal = PickerModal("Search in all contexts", ask, empty=empty)
        block = await self._scope.host.app.push_screen_wait(modal)
        if block is None:
            return
        context, document = block.partition(".")[0], self._session.document
        is_read = block in document or not self._session.replica.omitted
        if context != document.context or not is_read:
            self._scope.open_context(context, block, query=modal.typed)
        elif self._cells.has_cell(block):
            self._scope.area.leave()
            self.find_from(block, modal.typed)

    async def _follow(self) -> None:
        while self.is_open:
            self._wake.clear()
            while self.finder.step():
                self._show()
                await asyncio.sleep(PAUSE_SECONDS)
            self._show()
            await self._wake.wait()
            await asyncio.sleep(REFRESH_SECONDS)

    def _show(self) -> None:
        """Mark the hits so far, and go to the first one as soon as there is one."""
        if not self.is_open:
            return
        start = self._start
        if self.place is None and start is not None and self._cells.has_cell(start.block):
            first = self.finder.beside(start, 1)
            if first is not None:
                self._go_to(first)
        self._cells.show_hits(self.finder, self.place)
        self._bar.count.words = self.count

    @property
    def count(self) -> str:
        """The number of the hit and of all hits, in words."""
        finder = self.finder
        if not finder.query:
            return ""
        more = "…" if finder.is_searching else ""
        total = finder.count
        if not total:
            return more or "not found"
        number = f"{finder.number(self.place):,} of " if self.place is not None else ""
        return f"{number}{total:,}{more}"

    def step(self, direction: int) -> None:
        """Go to the next hit (1) or the one before (-1), or say why not."""
        if not self.is_open:
            self._hint("Nothing is searched for: / finds a text, then n and N go from hit to hit.")
            return
        before = self._cells.position(), self.place
        if not self._go(direction):
            self._hint("There is no hit to go to.")
        elif (self._cells.position(), self.place) == before:
            self._hint("This is the only hit.")

    action_next_hit = partialmethod(step, 1)
    action_previous_hit = partialmethod(step, -1)

    def _go(self, direction: int) -> bool:
        """Go to a hit; False if there is none."""
        start = self.place or self._start
        if start is None or not self._cells.has_cell(start.block):
            start = next((HitPlace(block, -1) for block, _ in self.finder), None)
        if start is None:
            return False
        found = self.finder.beside(start, direction)
        if found is None:
            return False
        self._go_to(found)
        self._show()
        return True

    def _go_to(self, place: HitPlace) -> None:
        self.place = place
        hit = self.finder.hit_at(place)
        editor = self._scope.area.editor
        if editor is not None and editor.block == place.block and hit is not None:
            editor.select(*hit)
            return
        if self._source.is_folded(place.block):
            self._source.set_folded([place.block], False)
            self._opened.append(place.block)
        self._cells.focus_cell(place.block, reveal=False)
        self._cells.reveal(place.block, place.offset, around=AROUND)

    def _cells_changed(self, change: CellChange) -> None:
        """The hit stays where its text is."""
        for text in change.texts:
            if self.place is not None and text.block == self.place.block:
                offset = shift_through(self.place.offset, text.splices, stick="right")
                self.place = self.place._replace(offset=offset)


def _found_entry(found: Mapping[str, Any]) -> PickerEntry:
    """Return the entry for a block: the parts of its lines around the matches, and where it is."""
    lines: list[str] = []
    for match in found["matches"]:
        content = str(match["content"])
        start = max(0, int(match["match_start"]) - AROUND_MATCH // 3)
        lines.append(("…" if start else "") + content[start : start + AROUND_MATCH].strip())
    more = " …" if found.get("truncated") else ""
    label, _, rest = found["name"].partition(".")
    detail = f"{label} · {rest.partition('.')[0]} · {found['kind']}"
    return PickerEntry(found["block_id"], " · ".join(lines) + more, detail)
