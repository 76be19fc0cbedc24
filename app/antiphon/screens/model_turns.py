"""Turns of models in this context: what runs, and how it is stopped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from antiphon.render.display import displayable_in_a_row
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.enums import ANSWERING_KINDS, Activity, Status
from antiphon_kernel.types.presence import PresenceState

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
    """The blocks that models and tools are writing."""

    def __init__(self, document: Document) -> None:
        self._document = document

    @property
    def blocks(self) -> Sequence[str]:
        headers = map(self._document.header, self._document.open_blocks())
        running = (one for one in headers if one.status == Status.RUNNING)
        return [one.id for one in running if one.is_written_by_program]

    def target(
        self, focused: str | None, me: str | None, turns: Iterable[PresenceState] = ()
    ) -> InterruptTarget | None:
        """Return Ctrl+C's target: who writes the focused cell, who answers me, or everybody.

        Not everybody if one of them may be answering me: the message is among earlier cells.

        Between two steps of a turn no block is running: `turns` are the models at work.
        """
        turns = tuple(turns)
        writers = {one.block: str(one.principal) for one in turns if one.block in self._document}
        writers |= {block: self._model_of(block) for block in self.blocks}
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
        if member is None or member.kind not in ANSWERING_KINDS:
            return InterruptTarget(principal, "the command")
        return InterruptTarget(principal, displayable_in_a_row(member.username))

    def _model_of(self, block: str) -> str:
        """The model on whose behalf a block runs: a tool's result belongs to who called it."""
        for above in self._ancestors(block):
            author = self._document.header(above).author
            member = self._document.member(author)
            if member is not None and member.kind in ANSWERING_KINDS:
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


class ModelTurns(Controller):
    """Knows the models at work, and stops them."""

    def __init__(self, scope: ActionScope) -> None:
        super().__init__(scope)
        self._running = RunningBlocks(self._session.document)
        self.at_work: frozenset[str] = frozenset()
        """Usernames of the models whose turns were played when `ended` was asked last."""

    def current(self) -> list[PresenceState]:
        """Return the models whose turns are being played."""
        present = self._session.presence().values()
        models = (one for one in present if one.kind in ANSWERING_KINDS)
        return [one for one in models if one.activity == Activity.STREAMING]

    def is_streaming(self, principal: str) -> bool:
        return any(one.principal == principal for one in self.current())

    def ended(self) -> frozenset[str]:
        """Return the usernames of models that have ended their turn since this was asked last."""
        now = frozenset(one.username for one in self.current())
        ended, self.at_work = self.at_work - now, now
        return ended

    def target(self) -> InterruptTarget | None:
        """Return what Ctrl+C stops; None if nothing runs."""
        me = self._session.me
        principal = me.principal if me is not None else None
        return self._running.target(self._scope.block, principal, self.current())

    async def action_interrupt(self) -> None:
        """Copy what is selected; else stop what the person means by Ctrl+C, or say why not."""
        if selected := self._scope.selection:
            await self._scope.copy(selected)
            return
        # A turn that has just been asked for is not seen yet.
        target = self.target() or InterruptTarget(None, "all")
        if not self._session.is_live:
            self._hint("Offline: what runs can be stopped when the kernel is back. Ctrl+Q quits.")
        elif self._session.user.refusal is not None:
            self._hint(self._session.user.refusal)
        else:
            await self.stop(target)

    async def stop(self, target: InterruptTarget) -> None:
        params: dict[str, Any] = {"context": self._session.document.context}
        if target.principal is not None:
            params["principal"] = target.principal
        result = await self._scope.call("turn.interrupt", params, "Not stopped")
        if result is not None:
            # Its cell may be off the screen, and another turn may follow at once.
            names = displayable_in_a_row(", ".join(result["stopped"]))
            self._hint(f"Stopped: {names}." if names else "Nothing is running. <key:quit> quits.")
