"""Changes of whole cells: cut out, bring back, exclude, move and split, each of which is undone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

from antiphon.actions import Mode
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.background_tasks import wait_until
from antiphon.screens.cell_list import EARLIER_CELLS, results_of
from antiphon.screens.picker import PickerEntry, choose
from antiphon.widgets.block_list import CellChange
from antiphon_kernel.types.enums import BlockKind

IT_STAYS = "It stays where it is."

SHOWN_SECONDS = 1.0
"""How long is waited at most for a cell to be in the replica."""


class ToolCall(NamedTuple):
    """A tool of the kernel and its parameters."""

    tool: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """A change of whole cells, and how it is taken back."""

    calls: tuple[ToolCall, ...]
    back: tuple[ToolCall, ...]
    blocks: frozenset[str]
    """Cells at which the person takes it back or makes it again."""
    focus: str
    """The cell to go to when it has been taken back."""
    undone: str
    """Sentence that says that it has been taken back."""
    made: tuple[str, str] | None = None
    """Cell that it made, with its text; once that is another, the change is not taken back."""


@dataclass(slots=True)
class ArrangerState:
    """State that a later screen of the same context goes on with."""

    arranged: list[Arrangement] = field(default_factory=list)
    """Changes since the last letter, the last of which u takes back."""
    disarranged: list[Arrangement] = field(default_factory=list)
    """Changes that were taken back, the last of which Ctrl+Y makes again."""
    moving: str | None = None
    """The cell for which the person looks for another place."""
    brings_back: bool = False
    """The person waits for cells that are not here, to choose one that is cut out."""


class CellArranger(Controller):
    """Changes whole cells by tools of the kernel, and takes these changes back."""

    def __init__(self, scope: ActionScope) -> None:
        super().__init__(scope)
        self._working = asyncio.Lock()
        """Held while cells are changed: u, pressed before the kernel answers, waits."""
        self.state = ArrangerState()

    def resume(self, state: ArrangerState) -> None:
        """Go on with the changes, and the move, of the screen before this one."""
        moving = state.moving if state.moving in self._source.document else None
        self.state = replace(state, moving=moving, brings_back=False)
        self.show_move()

    def forget(self) -> None:
        """A letter was typed: u takes that back next."""
        self.state.arranged.clear()
        self.state.disarranged.clear()

    # Doing, undoing and doing again

    async def _arrange(self, arrangement: Arrangement) -> bool:
        async with self._working:
            is_done = await self._call_each(arrangement.calls)
            if is_done:
                self.state.arranged.append(arrangement)
                self.state.disarranged.clear()
        return is_done

    async def _call_each(self, calls: Sequence[ToolCall], failed: str = "") -> bool:
        """Call tools until one fails, which is said; whether none did."""
        for tool, params in calls:
            if await self._scope.call(tool, params, failed) is None:
                return False
        return True

    async def undo(self, block: str) -> bool:
        """Take the last change of whole cells back, if it was made here; whether it was."""
        if self._scope.mode is not Mode.NAVIGATE:
            return False
        async with self._working:
            if not self.state.arranged or block not in self.state.arranged[-1].blocks:
                return False
            last = self.state.arranged.pop()
            if last.made is not None and self._source.text(last.made[0]) != last.made[1]:
                self._hint("The new cell has been written in since: it stays one of its own.")
                return True
            if not await self._call_each(last.back, "Not taken back"):
                return True
            self.state.disarranged.append(last)
        if self._cells.has_cell(last.focus):
            self._cells.focus_cell(last.focus)
        self._hint(f"{last.undone} · <key:redo> does it again")
        return True

    async def redo(self, block: str) -> bool:
        """Make the change again that was taken back last, if it was one here; whether it was."""
        if self._scope.mode is not Mode.NAVIGATE:
            return False
        async with self._working:
            if not self.state.disarranged or block not in self.state.disarranged[-1].blocks:
                return False
            last = self.state.disarranged.pop()
            changed = frozenset(call.params["block_id"] for call in last.calls)
            neighbour = self._beside(changed, block)
            if not await self._call_each(last.calls):
                return True
            self.state.arranged.append(last)
        if self._source.is_hidden(block):
            self._cells.focus_cell(neighbour)
        self._hint("Done again · <key:undo> takes it back")
        return True

    def _beside(self, blocks: frozenset[str], block: str) -> str | None:
        """Return the nearest cell that is none of these, below if there is one."""
        for direction in (1, -1):
            found: str | None = block
            while found in blocks:
                found = self._cells.order.neighbour(found, direction)
            if found is not None:
                return found
        return None

    # Cutting out

    async def action_cut_out(self) -> None:
        block = self._scope.cell_to("cut")
        if block is None:
            return
        blocks = (block, *results_of(self._source, block))
        neighbour = self._beside(frozenset(blocks), block)
        name = self._scope.name(block)
        calls = tuple(_excluding(one, True, cut_out=True) for one in blocks)
        before = tuple(_excluding(one, self._source.header(one).excluded) for one in blocks)
        near = blocks if neighbour is None else (*blocks, neighbour)
        arrangement = Arrangement(calls, before, frozenset(near), block, f"Brought back {name}")
        if await self._arrange(arrangement):
            self._cells.focus_cell(neighbour)
            lines = "with its output " if len(blocks) > 1 else ""
            self._hint(
                f"Cut out {name} {lines}· <key:undo> brings it back now,"
                " the palette later: Bring back a cell"
            )

    def leave_hidden(self, change: CellChange) -> None:
        """Go to a cell beside the one that has just been cut out."""
        block, editor = self._cells.focused_cell, self._scope.area.editor
        if block is None or block not in change.changed or not self._source.is_hidden(block):
            return
        if editor is not None and editor.block == block:
            self._scope.area.leave()
            self._hint(
                "Somebody has cut out this cell, with what you wrote in it: the palette brings it"
                " back, Bring back a cell.",
                weighty=True,
            )
        self._cells.focus_cell(self._beside(frozenset([block]), block), reveal=False)

    async def action_bring_back(self) -> None:
        if self._session.replica.omitted and self._session.is_live:
            self.state.brings_back = True
            self._cells.read_all()
            self._hint(EARLIER_CELLS)
            return
        cut = self._source.cut_out_blocks()
        if not cut:
            self._hint("No cell is cut out here.")
            return
        scope = self._scope
        choices = [
            PickerEntry(one, scope.beginning(one), f"{scope.name(one)} · {scope.author(one)}")
            for one in reversed(cut)
        ]
        block = await choose(self._cells.app, "Bring back a cell that was cut out", choices)
        if block is None:
            return
        blocks = (block, *results_of(self._source, block))
        if not await self._call_each([_excluding(one, False) for one in blocks]):
            return
        await self.until_shown(block)
        self._cells.focus_cell(block)

    async def until_shown(self, block: str) -> None:
        """Wait for the replica: the kernel answers a call and sends the change beside it."""
        source = self._source
        await wait_until(
            lambda: block in source.document and not source.is_hidden(block), SHOWN_SECONDS
        )

    async def action_exclude(self) -> None:
        block = self._scope.cell_to("exclude", finished=False)
        if block is None:
            return
        excluded = self._source.header(block).excluded
        name = self._scope.name(block)
        undone = f"Models do not read {name} again" if excluded else f"Models read {name} again"
        arrangement = Arrangement(
            (_excluding(block, not excluded),),
            (_excluding(block, excluded),),
            frozenset([block]),
            block,
            undone,
        )
        if await self._arrange(arrangement):
            now = "Models read it again" if excluded else "Models do not read it from now on"
            self._hint(f"{now} · e or u changes it back")

    # Moving

    def action_move(self) -> None:
        """Begin to look for another place for the chosen cell."""
        block = self._scope.cell_to("move")
        if block is None:
            return
        order = self._cells.order
        if order.neighbour(block, 1) is None and order.neighbour(block, -1) is None:
            self._hint("It is the only cell.")
            return
        self.state.moving = block
        self.show_move()
        self._scope.host.update()

    def show_move(self) -> None:
        """Say where the cell would be put that is moved, if there is one."""
        block, target = self.state.moving, self._cells.focused_cell
        if block is None:
            return
        name = self._scope.name(block)
        if target is None or target == block:
            self._hint(f"Move {name}: ↑ ↓ to the cell it is to stand at · Esc leaves it here")
            return
        side = "below" if self._is_below(target, block) else "above"
        self._hint(f"Move {name} {side} {self._scope.name(target)}: <key:put> · Esc leaves it")

    def _is_below(self, one: str, other: str) -> bool:
        ids = self._source.ids()
        return ids.index(one) > ids.index(other)

    async def action_put(self) -> None:
        """Put the cell that is moved beside the one that has the focus."""
        block, self.state.moving = self.state.moving, None
        target = self._cells.focused_cell
        self._scope.host.update()
        blocks = () if block is None else (block, *results_of(self._source, block))
        if block is None or target is None or target in blocks:
            self._hint(IT_STAYS)
            return
        if self._source.is_hidden(block):
            self._hint("It has been cut out meanwhile: it stays where it is.")
            return
        before = self._source.block_before(block)
        ids = self._source.ids()
        name, below = self._scope.name(block), self._is_below(target, block)
        if below:
            # What belongs to a call comes along, behind its new place.
            target = (target, *results_of(self._source, target))[-1]
        elif self._source.header(target).kind == BlockKind.TOOL_RESULT:
            target = self._source.header(target).parent or target
        home = {"after": before} if before is not None else {"before": ids[len(blocks)]}
        calls = _moves(blocks, "after" if below else "before", target, last_first=below)
        back = _moves(blocks, *next(iter(home.items())))
        arrangement = Arrangement(calls, back, frozenset(blocks), block, f"{name} is back")
        self._cells.focus_cell(block)
        is_moved = await self._arrange(arrangement)
        if self._cells.focused_cell == block:
            self._cells.focus_cell(block)  # at its new place
        if is_moved:
            self._hint(f"Moved {name} · <key:undo> puts it back")

    def action_leave_move(self) -> None:
        block, self.state.moving = self.state.moving, None
        if block is not None and self._cells.has_cell(block):
            self._cells.focus_cell(block)
        self._scope.host.update()
        self._hint(IT_STAYS)

    # Splitting

    async def action_split(self) -> None:
        """Cut the cell that is edited in two: the cursor's line begins the second one."""
        editor = self._scope.area.editor
        block = self._scope.cell_to("split")
        if block is None:
            return
        if editor is None:
            self._hint("Enter the cell and put the cursor on the line that is to begin a new one.")
            return
        text = self._source.document.text(block)
        at = text.rfind("\n", 0, editor.cursor_offset) + 1
        if not text[:at].strip():
            self._hint("No text stands above this line: put the cursor on one below it.")
            return
        if not text[at:].strip():
            self._hint("No text stands from this line on: put the cursor on one above it.")
            return
        async with self._working:
            split = await self._scope.call("message.split", {"message": block, "at": at})
            if split is None:
                return
            created = split["created"][0]
            edit = {"block_id": block, "edit": split["context_version"]}
            self.state.disarranged.clear()
            self.state.arranged.append(
                Arrangement(
                    (ToolCall("block.redo", edit), _excluding(created, False)),
                    (ToolCall("block.undo", edit), _excluding(created, True, cut_out=True)),
                    frozenset([block, created]),
                    block,
                    f"{self._scope.name(block)} is one cell again",
                    made=(created, text[at:]),
                )
            )
        self._scope.area.leave()
        await self.until_shown(created)
        self._cells.focus_cell(created)
        self._hint("Split in two · <key:undo> makes it one cell again")


def _excluding(block: str, excluded: bool, *, cut_out: bool = False) -> ToolCall:
    params = {"block_id": block, "excluded": excluded, "cut_out": cut_out}
    return ToolCall("block.exclude", params)


def _moves(
    blocks: Sequence[str], side: str, target: str, *, last_first: bool = False
) -> tuple[ToolCall, ...]:
    """Return the calls that put blocks that belong together beside another one.

    The `last_first` on the way down: a result never stands before its call.
    """
    order, beside = (blocks[::-1], "before") if last_first else (blocks, "after")
    calls = [ToolCall("block.move", {"block_id": order[0], side: target})]
    for placed, block in pairwise(order):
        calls.append(ToolCall("block.move", {"block_id": block, beside: placed}))
    return tuple(calls)
