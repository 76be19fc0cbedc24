"""A draft that nobody else sees: its undo, of which the kernel knows nothing, and its file."""

from __future__ import annotations

import fcntl
import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

from antiphon_kernel.client.private_files import write_private
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


FOLDER: Final = "drafts"

WINDOWS: Final = 16
"""Windows of one person that can have a private draft in one context at once."""


class PrivateDraftFile:
    """The text of one window's private draft; held from `take` to `close`."""

    def __init__(self, folder: Path, place: str) -> None:
        """`place` names the kernel, for which the state `folder` holds a file for each context."""
        self._folder = folder / FOLDER
        self._place = place
        self._path: Path | None = None
        self._lock: int | None = None

    def take(self, context: str) -> str:
        """Take a file that no other window has, one with a text if there is one; return its text.

        Raises:
            OSError: if there is none to be had.
        """
        name = sha256(f"{self._place}\n{context}".encode()).hexdigest()[:32]
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        files = [self._folder / f"{name}-{number}.txt" for number in range(WINDOWS)]
        # `sorted` keeps the order of equals: those with a text come first.
        for path in sorted(files, key=lambda one: not one.exists()):
            lock = _lock(path.with_suffix(".lock"))
            if lock is not None:
                self._path, self._lock = path, lock
                return path.read_text("utf-8") if path.exists() else ""
        raise OSError(0, f"{WINDOWS} other windows have private drafts here")

    @property
    def is_held(self) -> bool:
        return self._path is not None

    def write(self, text: str) -> None:
        """Keep a text; none if it is empty.

        Raises:
            OSError: if it cannot be written.
        """
        if self._path is None:
            return
        if text:
            write_private(self._path, text)
        else:
            self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Leave the file to other windows."""
        if self._lock is not None:
            os.close(self._lock)
            self._path = self._lock = None


def _lock(path: Path) -> int | None:
    """Return a lock on a file that is held until it is closed; None if somebody else has one."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
