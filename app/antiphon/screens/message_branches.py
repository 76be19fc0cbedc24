"""Branches of the conversation: from message to message in one place, and answers again."""

from __future__ import annotations

from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.known_models import KnownModels
from antiphon_kernel.types.block_metadata import CAN_RETRY


class MessageBranches(Controller):
    """Goes from a message to another in its place, and lets models answer once more."""

    def __init__(self, scope: ActionScope, models: KnownModels) -> None:
        super().__init__(scope)
        self._models = models

    def go_to_sibling(self, step: int) -> None:
        """Show the message so many places further in the place of the focused one."""
        block, hint = self._cells.focused_cell, self._scope.hint
        siblings = None if block is None else self._cells.source.branches.siblings(block)
        if siblings is None:
            hint("No other message stands in the place of this one.")
            return
        position = siblings.position + step
        if not 0 <= position < len(siblings.places):
            hint(f"This is the {'last' if step > 0 else 'first'} of them.")
        elif not self._session.is_live:
            hint("Offline: another branch needs the kernel; try again when it is back.")
        else:
            place = siblings.places[position]
            self._scope.open_context(place.context, place.block)

    async def answer_again(self, block: str) -> None:
        """Have an answer made again, in a branch; after an error it goes on where it ended."""
        if self._session.document.header(block).metadata.get(CAN_RETRY) is True:
            if await self._models.go_on(block):
                self._cells.to_tail()
            return
        answered = await self._models.answer(block)
        if answered is not None:
            self.follow_answer(answered.context)

    def follow_answer(self, context: str) -> None:
        """Show the end of a context, where a model has been asked to answer."""
        if context == self._session.document.context:
            self._cells.to_tail()
        else:
            self._scope.open_context(context, None)
