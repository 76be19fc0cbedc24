"""Messages on their way to the kernel, and those that wait for a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from antiphon.render.status_label import queue_label
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.enums import Activity
from antiphon_kernel.types.presence import PresenceState


class _Redraw(Protocol):
    def __call__(self, blocks: Iterable[str], *, moved: tuple[str, ...]) -> None: ...


class Deliveries:
    """States of messages until they are answered."""

    def __init__(self, document: Document, redraw: _Redraw) -> None:
        self._document = document
        self._redraw = redraw
        self.sending: dict[str, None] = {}
        """Drafts of one's own that are shown as messages on their way, in their order."""
        self._queue: Mapping[str, int] = {}
        """Messages that wait for their answer, by their place among those of a model, from 2 on."""

    def begin(self, block: str) -> None:
        """Show a draft of one's own as a message on its way, until it is submitted."""
        self.sending[block] = None
        self._redraw([block], moved=(block,))

    def cancel(self, block: str) -> None:
        """Show the message as a draft again: the kernel has not accepted it."""
        if block in self.sending:
            del self.sending[block]
            self._redraw([block], moved=(block,))

    def finish(self, block: str) -> bool:
        """Let go of a message that has been submitted; return whether it was on its way."""
        is_finished = block in self.sending and not self._document.is_draft(block)
        if is_finished:
            del self.sending[block]
        return is_finished

    def label(self, block: str) -> str:
        """Return the state of a message: `sending`, `queued · 2nd`, or nothing."""
        if block in self.sending:
            return "sending"
        position = self._queue.get(block)
        return "" if position is None else queue_label(position)

    def update_queue(self, states: Iterable[PresenceState]) -> set[str]:
        """Count the waiting messages of each model; return those whose position is another."""
        waiting = [
            (self._document.header(one.block).order, one.block, one.principal)
            for one in states
            if one.activity == Activity.WAITING and one.block in self._document and one.block
        ]
        answered: dict[str, int] = {}
        positions: dict[str, int] = {}
        for _, block, model in sorted(waiting):
            answered[model] = answered.get(model, 1) + 1
            positions[block] = max(positions.get(block, 0), answered[model])
        before, self._queue = self._queue, positions
        return {block for block, _ in before.items() ^ positions.items()}
