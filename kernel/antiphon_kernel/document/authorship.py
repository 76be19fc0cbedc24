"""Who wrote each character: runs of one author, carried along by every change of the text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from antiphon_kernel.document.block_text import TextMirror
from antiphon_kernel.types.records import TextSplice


@dataclass(frozen=True, slots=True)
class Stamp:
    """One change: who made it, when, and which version of the block it made."""

    principal: str
    version: int
    time: int
    """Milliseconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Run:
    """So many code points in a row that one change wrote."""

    length: int
    stamp: Stamp


class Authorship:
    """The runs of one block's text, in order; together they are as long as the text."""

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._removed: dict[str, tuple[Run, ...]] = {}
        self._text = TextMirror("")
        self._length = 0

    @property
    def runs(self) -> Sequence[Run]:
        return self._runs

    def apply(self, splices: Iterable[TextSplice], stamp: Stamp, *, restores: bool) -> None:
        """Follow one change.

        Args:
            restores: whether it is an undo or redo: text that comes back to the letter stays with
                its first author.
        """
        for one in splices:
            gone = self._text.text[one.offset : one.offset + one.deleted] if one.deleted else ""
            at, removed = self._cut(one.offset, one.deleted)
            self._text.splice(one)
            if gone:
                self._removed[gone] = removed
            come: tuple[Run, ...] = ()
            if one.inserted:
                come = (Run(len(one.inserted), stamp),)
                if restores:
                    come = self._removed.get(one.inserted, come)
            self._runs[at:at] = come
            self._length += len(one.inserted)
            self._join(at, at + len(come))

    def _cut(self, offset: int, length: int) -> tuple[int, tuple[Run, ...]]:
        """Take code points out; where the gap is among the runs, and the runs that were there."""
        start = self._split(offset)
        end = self._split(offset + length)
        removed = tuple(self._runs[start:end])
        del self._runs[start:end]
        self._length -= length
        return start, removed

    def _split(self, offset: int) -> int:
        """Make a run begin at `offset`; its index."""
        # Most changes are at or near the end of a text.
        at = len(self._runs)
        begin = self._length
        while at and begin > offset:
            at -= 1
            begin -= self._runs[at].length
        if begin == offset or at == len(self._runs):
            return at
        run = self._runs[at]
        head = offset - begin
        self._runs[at : at + 1] = [
            replace(run, length=head),
            replace(run, length=run.length - head),
        ]
        return at + 1

    def _join(self, start: int, end: int) -> None:
        """Neighbours of one change become one run again, around the given indices."""
        at = max(start - 1, 0)
        while at < min(end + 1, len(self._runs)) and at + 1 < len(self._runs):
            this, following = self._runs[at], self._runs[at + 1]
            if this.stamp == following.stamp:
                self._runs[at : at + 2] = [Run(this.length + following.length, this.stamp)]
                end -= 1
            else:
                at += 1
