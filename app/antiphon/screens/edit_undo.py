"""Undo and redo at the place of the person: of the message, of whole cells, of the text of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from antiphon.actions import Mode
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.cell_arranger import CellArranger
from antiphon.screens.modals import NO_CELL, ConfirmModal
from antiphon.screens.model_turns import InterruptTarget, ModelTurns
from antiphon.screens.tour import Tour
from antiphon.time_format import format_time_since
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import count_of

_MOST_VERSIONS: Final = 1_000
"""Versions in one answer of the kernel."""

_NO_EDITS: Final = ("check", "rename")
"""Operations in files that change no text."""

_NOTHING_LEFT: Mapping[str, str] = {
    ErrorCode.NOTHING_TO_UNDO: "You have nothing to undo in this cell.",
    ErrorCode.NOTHING_TO_REDO: "You have nothing to redo in this cell.",
}


@dataclass(frozen=True, slots=True)
class UndoneText:
    """Text that an undo or a redo removes and restores."""

    removed: str
    """How much, in words: `88 lines`; empty if nothing."""
    restored: str
    age: str
    """How long ago it was written: `10 s ago`."""

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> UndoneText:
        """Read the result of `block.undo` or `block.redo`."""
        age = format_time_since(result["time"])
        return cls(_amount(result["removed"]), _amount(result["restored"]), age)

    @property
    def amount(self) -> str:
        return self.removed or self.restored or "an edit"

    def report(self, name: str | None, place: str = "") -> str:
        """Say what an undo did; `name` is the author if it was somebody else's edit."""
        whose = (f" of {name}" if name is not None else "") + place
        them = "it" if self.amount.startswith(("1 ", "an ")) else "them"
        if self.restored and not self.removed:
            return f"Brought back {self.amount}{whose} · <key:redo> removes {them} again"
        return f"Took back {self.amount}{whose} · <key:redo> brings {them} back"


def _amount(size: Mapping[str, int]) -> str:
    """Return the size of a text in the largest unit of which it has several."""
    for unit in ("lines", "words"):
        if size[unit] > 1:
            return f"{size[unit]:,} {unit}"
    if size["words"]:
        return "1 word"
    return count_of(size["characters"], "character") if size["characters"] else ""


class EditUndo(Controller):
    """Takes back what the person, or the author of a cell, has done last, and does it again."""

    def __init__(
        self, scope: ActionScope, arranger: CellArranger, turns: ModelTurns, tour: Tour
    ) -> None:
        super().__init__(scope)
        self._arranger = arranger
        self._turns = turns
        self._tour = tour
        self._undone_theirs: tuple[str, str | None] | None = None
        """Block and author of an edit of theirs, or of a drift, that has just been undone."""

    def edited(self) -> None:
        """A letter was typed: it is what is taken back next."""
        self._undone_theirs = None
        self._arranger.forget()

    async def action_undo(self) -> None:
        block = self._scope.block
        if block is None:
            if self._scope.mode is not Mode.WRITE or not self._scope.composer.draft.step(-1):
                self._hint("There is nothing to undo here.")
            return
        self._undone_theirs = None
        if await self._arranger.undo(block):
            return
        self._source.ink.flash(block)
        if await self._undo_text(block):
            self._arranger.state.disarranged.clear()  # Ctrl+Y brings the text back
            if self._source.header(block).kind == BlockKind.DRIFT:
                self._undone_theirs = block, self._source.me
                self._hint("Took back what came from there · <key:redo> brings it back")
            if self._scope.mode is not Mode.WRITE:
                self._tour.undone()

    action_undo_edit = action_undo

    async def action_undo_theirs(self) -> None:
        """Take back the last edit of the cell's author, or of who wrote last in a file; asks."""
        block = self._cells.focused_cell
        if block is None:
            self._hint(NO_CELL)
            return
        author = self._source.header(block).author
        if self._scope.file is not None:
            author = await self._last_of_others(block) or author
        name, _ = self._source.name(author)
        if author == self._source.me:
            self._hint("This cell is yours: u takes back your own edit.")
            return
        there = await self._apply("undo", block, author, preview=True)
        if there is None:
            return
        what = f"{there.amount} by {name}, {there.age}?"
        is_streaming = self._turns.is_streaming(author)
        question = f"Stop {name}, then take back {what}" if is_streaming else f"Take back {what}"
        if not await self._cells.app.push_screen_wait(ConfirmModal(question)):
            return
        if self._turns.is_streaming(author):
            await self._turns.stop(InterruptTarget(author, name))
        self._source.ink.flash(block)
        if await self._undo_text(block, author):
            self._undone_theirs = block, author

    async def _last_of_others(self, block: str) -> str | None:
        """Return the last one but the person who has changed a block; None if that is not known."""
        found: str | None = None
        after: int | None = 0
        while after is not None:
            params = {"block_id": block, "after_version": after, "limit": _MOST_VERSIONS}
            told = await self._scope.call("block.history", params, "Not undone")
            if told is None:
                return None
            for one in told["versions"]:
                if one["principal"] != self._source.me and one["operation"] not in _NO_EDITS:
                    found = one["principal"]
            after = told.get("next")
        return found

    async def action_redo(self) -> None:
        block = self._scope.block
        theirs, self._undone_theirs = self._undone_theirs, None
        if block is None:
            if self._scope.mode is not Mode.WRITE or not self._scope.composer.draft.step(1):
                self._hint("There is nothing to redo here.")
            return
        self._source.ink.flash(block)
        if theirs is not None and (theirs[0] == block or self._source.is_hidden(theirs[0])):
            await self._redo_text(theirs[0], "", theirs[1])
        elif not await self._arranger.redo(block):
            await self._redo_text(block, self._scope.place(block))

    # Of the text, which the kernel does by author

    def _name(self, whose: str | None) -> str | None:
        """Return the name of an author; None of the person here."""
        return None if whose in (None, self._source.me) else self._source.name(str(whose))[0]

    async def _undo_text(self, block: str, whose: str | None = None) -> bool:
        """Take back an author's last edit of a block, and say so; whether anything changed."""
        undone = await self._apply("undo", block, whose)
        if undone is not None:
            self._hint(undone.report(self._name(whose), self._scope.place(block)))
        return undone is not None

    async def _redo_text(self, block: str, place: str, whose: str | None = None) -> None:
        """Do again what was undone last, and say so with the `place` of the block."""
        redone, name = await self._apply("redo", block, whose), self._name(whose)
        if redone is None:
            return
        if name is not None:
            self._hint(f"{redone.restored or redone.amount} of {name} came back.")
        elif redone.removed and not redone.restored:
            self._hint(f"Removed {redone.removed}{place} again")
        else:
            self._hint(f"Brought back {redone.restored or redone.amount}{place}")

    async def _apply(
        self, what: str, block: str, whose: str | None, *, preview: bool = False
    ) -> UndoneText | None:
        """Undo or redo, or only look with `preview`; None, with a hint, if there is nothing.

        `whose` is the author; None is the person here, with what they have brought over.
        """
        params: dict[str, Any] = {"block_id": block, "preview": preview}
        if whose is not None:
            params["principal"] = whose
        try:
            return UndoneText.of(await self._session.call(f"block.{what}", params))
        except AntiphonError as error:
            if error.code is ErrorCode.NO_KERNEL:
                self._hint(f"Offline: {what} needs the kernel; try again when it is back.")
            elif error.code in _NOTHING_LEFT and (name := self._name(whose)) is not None:
                self._hint(f"There is nothing of {name} to {what} in this cell.")
            else:
                self._hint(_NOTHING_LEFT.get(error.code, error.message))
            return None
