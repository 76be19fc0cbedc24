"""Calls of tools that wait for a decision: which they are, how they are answered, what is said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial, partialmethod
from typing import Any, Final

from antiphon.actions import Mode
from antiphon.render.display import displayable_in_a_row
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.modals import LONGEST_REASON, REASON_ASKED, ConfirmModal, LineModal
from antiphon.widgets.block_list import CellChange
from antiphon_kernel.types.block_metadata import CHOICES, open_question
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.records import BlockHeader

READ_SECONDS: Final = 0.5
"""How long a question has been on the screen at least when a key answers it."""

JUST_APPEARED: Final = "This question has only just appeared: read it, then press the key again."

_LONGEST_ANSWER: Final = 10_000

NOTHING_TO_DECIDE: Final = "No call here waits for a decision of yours."


def _waits(header: BlockHeader) -> bool:
    return header.is_undecided or open_question(header) is not None


def _field_question(server: str, field: Mapping[str, Any]) -> str:
    """Return the words that ask for one field of a form."""
    options = [title or value for value, title in field.get("options", ())]
    if field["type"] == "boolean":
        options = ["yes", "no"]
    kind = "any of" if field["type"] == "array" else "one of"
    words = [f"{server} asks: {field['title']}{'' if field['required'] else ' (if you like)'}"]
    words += [str(field["description"])] if "description" in field else []
    words += [f"{kind} {', '.join(options)}"] if options else []
    return displayable_in_a_row(" · ".join(words))


def _line_of(default: object) -> str:
    """Return a value that a field has at first as people type it."""
    if isinstance(default, bool):
        return "yes" if default else "no"
    return ", ".join(map(str, default)) if isinstance(default, list) else str(default)


def _value(field: Mapping[str, Any], line: str) -> object:
    """Return what was typed in the type that a field has; the kernel says what is wrong with it."""
    options = {title: value for value, title in field.get("options", ())}
    if field["type"] == "array":
        return [options.get(one.strip(), one.strip()) for one in line.split(",")]
    if field["type"] == "boolean":
        return {"yes": True, "no": False}.get(line.lower(), line)
    if field["type"] in ("integer", "number"):
        with suppress(ValueError):
            return int(line) if field["type"] == "integer" else float(line)
    return options.get(line, line)


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
            self._scope.host.update()

    # Deciding

    async def _decide(self, decision: str) -> None:
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

    action_allow_once = partialmethod(_decide, "once")
    action_allow_always = partialmethod(_decide, "always")
    action_deny = partialmethod(_decide, "no")

    async def _answer(self, block: str, asked: Mapping[str, Any], decision: str) -> bool:
        """Answer what a server asks, by a form or at once; whether that was done."""

        async def tell(action: str) -> bool:
            said = {"block_id": block, "action": action}
            return await self._scope.call("elicitation.answer", said, "Not answered") is not None

        if decision != "once":
            return await tell("decline" if decision == "no" else "cancel")
        if "url" in asked:
            question = f"Have you opened {asked['url']}? {asked['server']} is told so."
            said_yes = await self._cells.app.push_screen_wait(ConfirmModal(question))
            return bool(said_yes) and await tell("accept")
        if not asked["fields"]:
            return await tell("accept")
        return await self._fill_in(block, asked)

    async def _fill_in(self, block: str, asked: Mapping[str, Any]) -> bool:
        """Ask for the fields of a form line by line, from the first one until they are taken."""
        fields, at = asked["fields"], 0
        lines = [_line_of(one.get("default", "")) for one in fields]
        questions = [_field_question(asked["server"], one) for one in fields]

        async def take(line: str) -> bool | None:
            nonlocal at
            lines[at] = line
            at = (at + 1) % len(fields)
            modal.ask(questions[at], lines[at])
            if at > 0:
                return None
            said = zip(fields, lines, strict=True)
            content = {one["name"]: _value(one, given) for one, given in said if given}
            answer = {"block_id": block, "action": "accept", "content": content}
            try:
                await self._scope.session.call("elicitation.answer", answer)
            except AntiphonError as error:
                modal.hint(f"Not answered: {error.message}")
                return None
            return True

        modal = LineModal(
            questions[0], take, enter="go on", longest=_LONGEST_ANSWER, value=lines[0]
        )
        is_sent = await self._cells.app.push_screen_wait(modal)
        return is_sent is not None

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
