"""Undo and redo at the place of the person: of the message, of whole cells, of text."""

from __future__ import annotations

from antiphon.actions import Mode
from antiphon.running_blocks import InterruptTarget
from antiphon.screens.cell_arranger import CellArranger
from antiphon.screens.chosen_cell import ChosenCell
from antiphon.screens.input_focus import InputFocus
from antiphon.screens.kernel_calls import KernelCalls
from antiphon.screens.modals import NO_CELL, ConfirmModal
from antiphon.screens.model_turns import ModelTurns
from antiphon.screens.text_undo import TextUndo
from antiphon.tour import Tour
from antiphon.widgets.block_list import BlockList
from antiphon.widgets.composer import Composer


class EditUndo:
    """Takes back what the person, or the author of a cell, has done last, and does it again."""

    def __init__(
        self,
        kernel: KernelCalls,
        focus: InputFocus,
        chosen: ChosenCell,
        arranger: CellArranger,
        turns: ModelTurns,
        cells: BlockList,
        composer: Composer,
        tour: Tour,
    ) -> None:
        self._hint = kernel.hint
        self._focus = focus
        self._chosen = chosen
        self._arranger = arranger
        self._turns = turns
        self._cells = cells
        self._source = cells.source
        self._composer = composer
        self._tour = tour
        self._text = TextUndo(kernel)
        self._undone_theirs: tuple[str, str] | None = None
        """Block and author of the edit that has just been undone: Ctrl+Y brings it back."""

    def edited(self) -> None:
        """A letter was typed: it is what is taken back next."""
        self._undone_theirs = None
        self._arranger.forget()

    async def undo(self) -> None:
        block = self._focus.block
        if block is None:
            if self._focus.mode is not Mode.WRITE or not self._composer.draft.undo():
                self._hint("There is nothing to undo here.")
            return
        self._undone_theirs = None
        if await self._arranger.undo(block):
            return
        self._source.ink.flash(block)
        if await self._text.undo(block, self._chosen.place(block)):
            self._arranger.forget_undone()
            if self._focus.mode is not Mode.WRITE:
                self._tour.undone()

    async def undo_theirs(self) -> None:
        """Take back the last edit of the cell's author, after asking."""
        block = self._cells.focused_cell
        if block is None:
            self._hint(NO_CELL)
            return
        author = self._source.header(block).author
        name, _ = self._source.name(author)
        if author == self._source.me:
            self._hint("This cell is yours: u takes back your own edit.")
            return
        there = await self._text.apply("block.undo", block, author, name, preview=True)
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
        place = self._chosen.place(block)
        if await self._text.undo(block, place, principal=author, name=name):
            self._undone_theirs = (block, author)

    async def redo(self) -> None:
        block = self._focus.block
        theirs, self._undone_theirs = self._undone_theirs, None
        if block is None:
            if self._focus.mode is not Mode.WRITE or not self._composer.draft.redo():
                self._hint("There is nothing to redo here.")
            return
        self._source.ink.flash(block)
        if theirs is not None and theirs[0] == block:
            name, _ = self._source.name(theirs[1])
            await self._text.redo(block, principal=theirs[1], name=name)
        elif not await self._arranger.redo(block):
            await self._text.redo(block, self._chosen.place(block))
