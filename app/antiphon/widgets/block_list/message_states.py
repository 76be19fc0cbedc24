"""States of messages: on their way, waiting for a model, and their place among branches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from antiphon.render.status_label import queue_label, sibling_label
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.enums import Activity, Role
from antiphon_kernel.types.presence import PresenceState


class Deliveries:
    """States of messages until they are answered."""

    def __init__(
        self, document: Document, redraw: Callable[[Iterable[str], tuple[str, ...]], None]
    ) -> None:
        self._document = document
        self._redraw = redraw
        self.sending: dict[str, None] = {}
        """Drafts of one's own that are shown as messages on their way, in their order."""
        self._queue: Mapping[str, int] = {}
        """Messages that wait for their answer, by their place among those of a model, from 2 on."""

    def begin(self, block: str) -> None:
        """Show a draft of one's own as a message on its way, until it is submitted."""
        self.sending[block] = None
        self._redraw([block], (block,))

    def cancel(self, block: str) -> None:
        """Show the message as a draft again: the kernel has not accepted it."""
        if block in self.sending:
            del self.sending[block]
            self._redraw([block], (block,))

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


_ANSWER_DEPTH: Final = 2
"""Steps from a block of an answer to the message that it answers: a result is below its call."""


@dataclass(frozen=True, slots=True)
class MessageLocation:
    """A message in its context."""

    context: str
    block: str

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> MessageLocation:
        """Return the message that the result of a tool is about."""
        return cls(told["context_id"], told["message_id"])


@dataclass(frozen=True, slots=True)
class Siblings:
    """The messages that stand in one place in the branches of a conversation."""

    position: int
    """The one that is shown, from 0."""
    places: tuple[MessageLocation, ...]
    """Of all of them, oldest branch first."""


class Branches:
    """Siblings of the messages of a document, as the kernel listed them last."""

    def __init__(self, document: Document, redraw: Callable[[Iterable[str]], None]) -> None:
        self._document = document
        self._redraw = redraw
        self._siblings: Mapping[str, Siblings] = {}
        """Of each block of a message that has some."""
        self._answers: dict[str, Siblings] = {}
        """Siblings of the first answer that has some, by the message that is answered."""
        self._labels: Mapping[str, str] = {}
        """By the last block of the message."""

    def siblings(self, block: str) -> Siblings | None:
        """Return the siblings of the message that a block is of; None if it has none.

        An answer is several messages, with thinking and calls: those of the first that has some.
        """
        found = self._siblings.get(block)
        for _ in range(_ANSWER_DEPTH):
            if found is not None or block not in self._document:
                break
            header = self._document.header(block)
            if header.role == Role.USER or header.parent is None:
                break
            block = header.parent
            found = self._answers.get(block)
        return found

    def label(self, block: str) -> str:
        """Return the place among its siblings of the message that ends here: `‹ 2/3 ›`."""
        return self._labels.get(block, "")

    def show(self, found: Mapping[tuple[str, ...], Siblings]) -> None:
        """Mark messages, each given as its blocks, that have siblings; all others have none."""
        self._siblings = {block: one for blocks, one in found.items() for block in blocks}
        self._answers = {}
        for block, one in self._siblings.items():
            header = self._document.header(block) if block in self._document else None
            if header is not None and header.parent is not None and header.role != Role.USER:
                self._answers.setdefault(header.parent, one)
        labels = {
            blocks[-1]: sibling_label(one.position, len(one.places))
            for blocks, one in found.items()
        }
        changed = {block for block, _ in self._labels.items() ^ labels.items()}
        self._labels = labels
        self._redraw(block for block in changed if block in self._document)
