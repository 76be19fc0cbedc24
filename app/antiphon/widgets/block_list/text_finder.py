"""Occurrences of a text in the cells, kept up to date while they change."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from time import monotonic
from typing import Final, NamedTuple

from antiphon.widgets.block_list.cell_model import CellChange, CellModel
from antiphon_kernel.document.changes import TextChange
from antiphon_kernel.document.schema import TEXT
from antiphon_kernel.text.transform import shift_through
from antiphon_kernel.types.signal import Signal

SLICE_SECONDS: Final = 0.004
"""How long `step` searches before it lets go."""

_BATCH: Final = 32


class Hit(NamedTuple):
    """A hit in a text, in code points; `end` is exclusive."""

    start: int
    end: int


class HitPlace(NamedTuple):
    """A code point of a cell."""

    block: str
    offset: int


class TextFinder:
    """Finds exactly these characters; lower case finds both cases.

    Nothing is found before `step` has been called until it returns False.
    """

    def __init__(self, source: CellModel) -> None:
        self._source = source
        self._pattern: re.Pattern[str] | None = None
        self._length = 0
        self._hits: dict[str, tuple[Hit, ...]] = {}
        self._pending: dict[str, int] = {}
        """Blocks to search, and from which code point on."""
        self._scope: str | None = None
        self.query = ""
        self.changed = Signal[frozenset[str]]()
        """Cells whose hits are others now."""
        self.close: Final = source.changed.listen(self._cells_changed)
        """Ends the following of the cells."""

    # Searching

    def search(self, query: str, *, first: str | None = None, scope: str | None = None) -> None:
        """Look for another text, or none, from the cell `first` on or only in `scope`."""
        before = frozenset(self._hits)
        self.query, self._scope, self._length = query, scope, len(query)
        self._hits, self._pending = {}, {}
        flags = re.IGNORECASE if query == query.lower() else re.NOFLAG
        self._pattern = re.compile(re.escape(query), flags) if query else None
        if self._pattern is not None:
            ids = [scope] if scope is not None else list(self._source.ids())
            start = ids.index(first) if first is not None and first in ids else 0
            self._pending = dict.fromkeys((*ids[start:], *ids[:start]), 0)
        self.changed.notify(before)

    @property
    def is_searching(self) -> bool:
        """Whether there is text that has not been searched yet."""
        return bool(self._pending)

    def step(self, seconds: float = SLICE_SECONDS) -> bool:
        """Search for a moment; return whether there is more to search."""
        end = monotonic() + seconds
        found: set[str] = set()
        while self._pending:
            for block in tuple(islice(self._pending, _BATCH)):
                if self._search(block, self._pending.pop(block)):
                    found.add(block)
            if monotonic() >= end:
                break
        if found:
            self.changed.notify(frozenset(found))
        return bool(self._pending)

    def _search(self, block: str, start: int) -> bool:
        """Search a cell from a code point on; return whether its hits are others now."""
        if self._pattern is None or block not in self._source.document:
            return False
        document = self._source.document
        is_plain = document.schema(block) == TEXT
        text = document.peek_text(block) if is_plain else self._source.text(block)
        before = self._hits.get(block, ())
        kept = before[: bisect_right(before, start, key=lambda hit: hit.end)]
        begin = max(kept[-1].end if kept else 0, start - self._length + 1, 0)
        found = (Hit(*one.span()) for one in self._pattern.finditer(text, begin))
        after = (*kept, *found)
        if after == before:
            return False
        if after:
            self._hits[block] = after
        else:
            del self._hits[block]
        return True

    # Following

    def _cells_changed(self, change: CellChange) -> None:
        if self._pattern is None:
            return
        found: set[str] = set()
        document = self._source.document
        for text in change.texts:
            if self._is_searched(text.block) and self._follow(text):
                found.add(text.block)
        structured = {
            block
            for block in change.changed
            if block in document and document.schema(block) != TEXT
        }
        for block in {*change.added, *structured} - self._pending.keys():
            if self._is_searched(block):
                self._pending[block] = 0
        # Whoever steps is told that there is something to search.
        if found or self._pending:
            self.changed.notify(frozenset(found))

    def _is_searched(self, block: str) -> bool:
        return self._scope is None or block == self._scope

    def _follow(self, text: TextChange) -> bool:
        """Shift the hits until what a change has touched is searched; return whether any are."""
        block, splices = text.block, text.splices
        start = min((one.offset for one in splices), default=0)
        self._pending[block] = min(start, self._pending.get(block, start))
        hits = self._hits.get(block, ())
        at = bisect_right(hits, start, key=lambda hit: hit.end)
        ends = ((shift_through(one.start, splices, stick="right"), one.end) for one in hits[at:])
        shifted = [Hit(start, shift_through(end, splices, stick="left")) for start, end in ends]
        if not shifted:
            return False
        self._hits[block] = (
            *hits[:at],
            *(hit for hit in shifted if hit.end - hit.start == self._length),
        )
        return True

    # Reading

    def of(self, block: str) -> tuple[Hit, ...]:
        return self._hits.get(block, ())

    def __iter__(self) -> Iterator[tuple[str, Sequence[Hit]]]:
        """Yield each cell with hits, in order, and its hits."""
        for block in self._source.ids():
            if hits := self._seen(block):
                yield block, hits

    @property
    def count(self) -> int:
        return sum(len(hits) for _, hits in self)

    def number(self, place: HitPlace) -> int:
        """Return how many hits begin no later than a place, itself included."""
        number = 0
        for block in self._source.ids():
            hits = self._seen(block)
            if block == place.block:
                return number + bisect_right(hits, place.offset, key=lambda hit: hit.start)
            number += len(hits)
        return number

    def hit_at(self, place: HitPlace) -> Hit | None:
        """Return the hit that begins at a place."""
        hits = self.of(place.block)
        at = bisect_left(hits, place.offset, key=lambda hit: hit.start)
        return hits[at] if at < len(hits) and hits[at].start == place.offset else None

    def beside(self, place: HitPlace, direction: int) -> HitPlace | None:
        """Return the next hit behind (1) or before (-1) a place, around the ends."""
        hits, bisect = self._seen(place.block), bisect_right if direction > 0 else bisect_left
        at = bisect(hits, place.offset, key=lambda hit: hit.start)
        rest = hits[at:] if direction > 0 else hits[:at]
        block: str | None = place.block
        if not rest:
            # The nearest other cell with hits, or this one again.
            ids = self._source.ids()
            at = ids.index(place.block) + (direction > 0)
            around = (*ids[at:], *ids[:at])
            block = next(filter(self._seen, around[::direction]), None) if self._hits else None
        if block is None:
            return None
        return HitPlace(block, (rest or self.of(block))[0 if direction > 0 else -1].start)

    def _seen(self, block: str) -> tuple[Hit, ...]:
        hits = self.of(block)
        return hits if hits and not self._source.is_hidden(block) else ()
