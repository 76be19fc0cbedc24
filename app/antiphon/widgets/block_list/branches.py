"""Messages that stand in one place in the branches of a conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from antiphon.render.status_label import sibling_label
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.enums import Role

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
