"""Calls of tools that wait for a decision: which they are, how they are answered, what is said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from antiphon.actions import Mode
from antiphon.render.display import displayable_in_a_row
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.modals import LONGEST_REASON, REASON_ASKED, ConfirmModal, LineModal
from antiphon.session import Hint, KernelCalls
from antiphon.widgets.block_list import CellChange
from antiphon_kernel.types.block_metadata import CHOICES, open_question
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.types.signal import Signal

READ_SECONDS: Final = 0.5
"""How long a question has been on the screen at least when a key answers it."""

JUST_APPEARED: Final = "This question has only just appeared: read it, then press the key again."

NOTHING_TO_DECIDE: Final = "No call here waits for a decision of yours."


def _waits(header: BlockHeader) -> bool:
    return header.is_undecided or open_question(header) is not None


class Questions(Controller):
    """Follows the calls that wait, and decides about one."""

    def __init__(self, scope: ActionScope) -> None:
        super().__init__(scope)
        self._document = scope.session.document
        asked = map(self._document.header, self._document.open_blocks())
        self._asked: dict[str, float | None] = {one.id: None for one in asked if _waits(one)}
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
        return filter(_waits, headers)

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
            if not _waits(header):
                continue
            self._asked[block] = None
            if self._source.may_decide(header):
                asked = open_question(header)
                who = asked.get("server") if asked else self._source.view(block).author
                what = "asks a question" if asked else "asks to run a tool"
                self._scope.host.tell(f"{displayable_in_a_row(str(who))} {what}")
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
        header = self._document.header(block)
        asked = open_question(header)
        is_decided: bool | None
        if asked is not None:
            is_decided = await self._answer(block, asked, decision)
        elif decision == "no" and CHOICES not in header.metadata:  # agents are told no reason
            is_decided = await self._cells.app.push_screen_wait(
                LineModal(REASON_ASKED, tell, enter="say no", longest=LONGEST_REASON)
            )
        else:
            is_decided = await tell("")
        if is_decided:
            self._decided = block
            self._choose_next()

    async def _answer(self, block: str, asked: Mapping[str, Any], decision: str) -> bool:
        """Answer what a server asks, by a form or at once; whether that was done."""

        async def tell(
            action: str, content: Mapping[str, Any] | None = None, hint: Hint = self._hint
        ) -> bool:
            said = {"block_id": block, "action": action, "content": content or {}}
            kernel = KernelCalls(self._scope.session, hint)
            return await kernel.call("elicitation.answer", said, "Not answered") is not None

        if decision != "once":
            return await tell("decline" if decision == "no" else "cancel")
        if "url" in asked:
            question = f"Have you opened {asked['url']}? {asked['server']} is told so."
            said_yes = await self._cells.app.push_screen_wait(ConfirmModal(question))
            return bool(said_yes) and await tell("accept")
        from antiphon.screens.form_modal import FormModal

        form = FormModal(asked, lambda content: tell("accept", content, form.hint))
        is_sent = await self._cells.app.push_screen_wait(form)
        return bool(is_sent)

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
