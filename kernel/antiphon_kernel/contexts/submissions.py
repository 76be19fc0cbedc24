"""Drafts that have become part of the conversation, and who wants to know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from antiphon_kernel.contexts.context import Context
from antiphon_kernel.types.records import Actor


@dataclass(frozen=True, slots=True)
class Submission:
    """A person's draft has become part of the conversation."""

    context: Context
    block: str
    text: str
    """Its text at that moment; others may have edited it since."""
    actor: Actor


class Submissions:
    """Tells everybody who waits for submissions."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[Submission], None]] = []

    def listen(self, listener: Callable[[Submission], None]) -> None:
        """Call `listener` with every submission from now on."""
        self._listeners.append(listener)

    def notify(self, submission: Submission) -> None:
        """It is on disk."""
        for listener in tuple(self._listeners):
            listener(submission)
