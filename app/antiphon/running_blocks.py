"""Models that are running, and the target of Ctrl+C."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from antiphon.render.display import displayable_in_a_row
from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.enums import PrincipalKind, Status
from antiphon_kernel.types.presence import PresenceState
from antiphon_kernel.types.signal import Signal

_DEPTH: Final = 64
"""How far up the parents of a block its turn's prompt is looked for."""


@dataclass(frozen=True, slots=True)
class InterruptTarget:
    """Target of an interrupt."""

    principal: str | None
    """None: everybody."""
    words: str
    """A username, `the command` or `all`."""


class RunningBlocks:
    """The blocks that models and tools are writing, kept up to date by transaction."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._running: dict[str, None] = {}
        self._refresh(document.open_blocks())
        self._unwatch = document.watch(self._changed)
        self.changed = Signal[()]()
        """A block began or ended to run."""

    def close(self) -> None:
        self._unwatch()

    @property
    def blocks(self) -> tuple[str, ...]:
        """Running blocks, in the order in which they began."""
        return tuple(self._running)

    def target(
        self, focused: str | None, me: str | None, turns: Iterable[PresenceState] = ()
    ) -> InterruptTarget | None:
        """Return Ctrl+C's target: who writes the focused cell, who answers me, or everybody.

        Not everybody if one of them may be answering me: the message is among earlier cells.

        Between two steps of a turn no block is running: `turns` are the models at work.
        """
        turns = tuple(turns)
        writers = {one.block: str(one.principal) for one in turns if one.block in self._document}
        writers |= {block: self._model_of(block) for block in self._running}
        if focused in writers:
            return self._named(writers[focused])
        for block, model in writers.items():
            if block is not None and me is not None and self._prompt_author(block) == me:
                return self._named(model)
        models = {*writers.values(), *(str(one.principal) for one in turns)}
        if not models:
            return None
        if len(models) == 1:
            return self._named(models.pop())
        # Whose message such a turn answers is not known here: perhaps mine, so not all are meant.
        cut = [str(one.principal) for one in turns if one.block and one.block not in self._document]
        cut += [model for block, model in writers.items() if block and self._is_cut(block)]
        return self._named(cut[-1]) if cut else InterruptTarget(None, "all")

    def _named(self, principal: str) -> InterruptTarget:
        member = self._document.member(principal)
        if member is None or member.kind != PrincipalKind.MODEL:
            return InterruptTarget(principal, "the command")
        return InterruptTarget(principal, displayable_in_a_row(member.username))

    def _model_of(self, block: str) -> str:
        """The model on whose behalf a block runs: a tool's result belongs to who called it."""
        for above in self._ancestors(block):
            author = self._document.header(above).author
            member = self._document.member(author)
            if member is not None and member.kind == PrincipalKind.MODEL:
                return author
        return self._document.header(block).author

    def _prompt_author(self, block: str) -> str | None:
        for above in self._ancestors(block):
            header = self._document.header(above)
            if not header.is_written_by_program:
                return header.author
        return None

    def _is_cut(self, block: str) -> bool:
        """Return whether the turn of a block began before the first of the blocks that are here."""
        *_, first = self._ancestors(block)
        return self._document.header(first).parent is not None

    def _ancestors(self, block: str) -> Iterable[str]:
        for _ in range(_DEPTH):
            yield block
            parent = self._document.header(block).parent
            if parent is None or parent not in self._document:
                return
            block = parent

    def _changed(self, change: DocumentChange) -> None:
        before = len(self._running), next(reversed(self._running), None)
        self._refresh(self._document.open_blocks(change.added))
        self._refresh(one.block for one in change.headers if "status" in one.fields)
        if before != (len(self._running), next(reversed(self._running), None)):
            self.changed.notify()

    def _refresh(self, blocks: Iterable[str]) -> None:
        for block in blocks:
            header = self._document.header(block)
            if header.status == Status.RUNNING and header.is_written_by_program:
                self._running[block] = None
            else:
                self._running.pop(block, None)
