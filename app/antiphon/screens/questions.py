"""Calls of tools that wait for a decision: which they are, how they are answered, what is said."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from antiphon.actions import Mode
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.modals import LONGEST_REASON, REASON_ASKED, LineModal
from antiphon.widgets.block_list import CellChange
from antiphon_kernel.types.block_metadata import CHOICES
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.types.signal import Signal

READ_SECONDS: Final = 0.5
"""How long a question has been on the screen at least when a key answers it."""

JUST_APPEARED: Final = "This question has only just appeared: read it, then press the key again."

NOTHING_TO_DECIDE: Final = "No call here waits for a decision of yours."


class Questions(Controller):
    """Follows the calls that wait, and decides about one."""

    def __init__(self, scope: ActionScope) -> None:
        super().__init__(scope)
        self._document = scope.session.document
        asked = map(self._document.header, self._document.open_blocks())
        self._asked: dict[str, float | None] = {one.id: None for one in asked if one.is_undecided}
        """Calls that have begun to wait for somebody's decision, in that order, and when each was
        first on the screen."""
        self._decided: str | None = None
        """The call about which the person has decided last."""
        self._answered_at: tuple[Mode, str | None, str | None] | None = None
        """The place of the person on which the keys depend that decide about calls."""
        self.changed = Signal[()]()
        """Calls have begun to wait, or wait no more."""

    @property
    def first(self) -> str | None:
        """The first call that waits for a decision of the person here."""
        return next((header.id for header in self.mine()), None)

    def mine(self) -> Iterator[BlockHeader]:
        """Return the calls that wait for a decision of the person here."""
        return (header for header in self.waiting() if self._source.may_decide(header))

    def waiting(self) -> Iterator[BlockHeader]:
        """Return the calls that wait for a decision, whoever may decide."""
        headers = (self._document.header(one) for one in self._asked if one in self._document)
        return (one for one in headers if one.is_undecided)

    # What is seen of them

    def words_before_keys(self, block: str) -> str:
        """Return what leads to where keys decide about a call: elsewhere they are text."""
        if self._scope.mode is Mode.NAVIGATE and self._cells.focused_cell == block:
            return ""
        is_next = self._scope.mode is Mode.WRITE and block == self.first
        return "Esc, then " if is_next else "In this cell: "

    def show_keys(self) -> None:
        """Say below the calls that wait which keys decide about them from here."""
        place = (self._scope.mode, self._cells.focused_cell, self.first)
        if place != self._answered_at:
            self._answered_at = place
            self.redraw()

    def redraw(self) -> None:
        self._source.redraw_questions(self._asked)

    def note_seen(self) -> None:
        """Remember when the calls that wait were first on the screen."""
        for block, since in self._asked.items():
            if since is None and self._cells.viewport.seen_rows(block):
                self._asked[block] = self._scope.clock.monotonic()

    def cells_changed(self, change: CellChange) -> None:
        """Note calls that have begun to wait for a decision; tell of those the person decides."""
        for block in self._document.open_blocks(change.changed - self._asked.keys()):
            header = self._document.header(block)
            if not header.is_undecided:
                continue
            self._asked[block] = None
            if self._source.may_decide(header):
                self._scope.host.tell(f"{self._source.view(block).author} asks to run a tool")
        if not change.changed.isdisjoint(self._asked):
            self._choose_next()
            self.show_keys()
            self.changed.notify()

    # Deciding

    async def decide(self, decision: str) -> None:
        """Tell the kernel a decision (once, always, no) about the focused call."""
        block = self._cells.focused_cell
        if block is None or not self._scope.host.situation.asks:
            self._hint(NOTHING_TO_DECIDE)
            return
        since = self._asked.get(block)
        if since is None or self._scope.clock.monotonic() - since < READ_SECONDS:
            self._hint(JUST_APPEARED)
            return
        tell = partial(self._tell_kernel, block, decision)
        # Agents are told no reason: their protocol has no place for it.
        if decision == "no" and CHOICES not in self._document.header(block).metadata:
            is_decided = await self._cells.app.push_screen_wait(
                LineModal(REASON_ASKED, tell, enter="say no", longest=LONGEST_REASON)
            )
        else:
            is_decided = await tell("")
        if is_decided:
            self._decided = block
            self._choose_next()

    async def _tell_kernel(self, block: str, decision: str, reason: str) -> bool:
        params = {"block_id": block, "decision": decision}
        if reason:
            params["reason"] = reason
        return await self._scope.call("permission.decide", params, "Not decided") is not None

    def _choose_next(self) -> None:
        """Go from a call that was decided about to the next one that waits."""
        following = next((one.id for one in self.mine() if one.id != self._decided), None)
        at_decided = self._decided is not None and self._cells.focused_cell == self._decided
        if following is not None and at_decided and self._scope.mode is Mode.NAVIGATE:
            self._cells.focus_cell(following)
