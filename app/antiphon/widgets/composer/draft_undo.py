"""Undo and redo of a private draft, of which the kernel knows nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from antiphon_kernel.types.records import TextSplice
from antiphon_kernel.types.typing_run import KEYSTROKE_UNITS, may_go_on

STEPS: Final = 1_000
"""Steps that can be taken back."""


@dataclass(slots=True)
class _Step:
    """Changes that are taken back together."""

    begun: int
    last: int
    size: int = 0
    done: list[TextSplice] = field(default_factory=list)
    reverse: list[TextSplice] = field(default_factory=list)
    """The way back, the last change first."""


class DraftUndo:
    """Steps of one text that only one person changes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._undo: deque[_Step] = deque(maxlen=STEPS)
        self._redo: list[_Step] = []
        self._is_run = False
        """Whether typing may still go on with the last step."""

    def record(self, splices: Sequence[TextSplice], now: int) -> None:
        """Record changes that were made together at `now`, in milliseconds."""
        self._redo.clear()
        step = self._undo[-1] if self._undo else None
        is_key = len(splices) == 1 and _is_keystroke(splices[0])
        goes_on = (
            step is not None
            and self._is_run
            and is_key
            and may_go_on(begun=step.begun, last=step.last, now=now, size=step.size)
            and _follows(splices[0], step.done[-1])
        )
        if step is None or not goes_on:
            step = _Step(now, now)
            self._undo.append(step)
        step.last = now
        for splice in splices:
            step.done.append(splice)
            step.reverse.insert(0, self._apply(splice))
            step.size += len(splice.inserted) + splice.deleted
        self._is_run = is_key and "\n" not in splices[0].inserted

    def undo(self) -> Sequence[TextSplice]:
        """Return the changes that take the last step back; none if there is no step."""
        if not self._undo:
            return ()
        step = self._undo.pop()
        self._redo.append(step)
        return self._replay(step.reverse)

    def redo(self) -> Sequence[TextSplice]:
        """Return the changes that do again what was taken back last; none without."""
        if not self._redo:
            return ()
        step = self._redo.pop()
        self._undo.append(step)
        return self._replay(step.done)

    def _replay(self, splices: Sequence[TextSplice]) -> Sequence[TextSplice]:
        self._is_run = False
        for splice in splices:
            self._apply(splice)
        return splices

    def _apply(self, splice: TextSplice) -> TextSplice:
        """Change the text, and return what reverses that."""
        end = splice.offset + splice.deleted
        removed = self._text[splice.offset : end]
        self._text = self._text[: splice.offset] + splice.inserted + self._text[end:]
        return TextSplice(splice.offset, len(splice.inserted), removed)


def _is_keystroke(splice: TextSplice) -> bool:
    """Return whether it is a key's, not a paste, a cut or a replaced selection."""
    size = len(splice.inserted) + splice.deleted
    return size <= KEYSTROKE_UNITS and not (splice.inserted and splice.deleted)


def _follows(splice: TextSplice, last: TextSplice) -> bool:
    """Return whether it goes on where the last keystroke has left the cursor."""
    if splice.inserted:
        return not last.deleted and splice.offset == last.offset + len(last.inserted)
    return not last.inserted and last.offset in (splice.offset, splice.offset + splice.deleted)
