"""Index of the block, and the place in it, of every CRDT item of a document.

An update names an item's parent only if the item has no neighbour; so this has to be known of all
items to say what a raw update touches. Ids are kept as coalesced runs per CRDT client: a block
written in one go takes two entries, however long its text is.
"""

from __future__ import annotations

import json
import re
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from sys import intern
from typing import Final

from antiphon_kernel.document.header import CONTENT
from antiphon_kernel.validation.text_order import TextOrder
from antiphon_kernel.yjs.causal_order import CausalQueue
from antiphon_kernel.yjs.id_set import IdIntervals, IdRange
from antiphon_kernel.yjs.update import (
    ContentKind,
    DecodedUpdate,
    ItemId,
    SharedType,
    Struct,
    decode_in_parts,
)

BLOCKS: Final = "blocks"
STATUS: Final = "status"
"""The key of a block's status."""

_ENDS: Final = (("done",), ("error",))
_ASTRAL: Final = re.compile("[\U00010000-\U0010ffff]")
_PART: Final = 500
"""Structs decoded at a time: about 3 ms."""

_FORMAT: Final = b"columns1"
"""First bytes of an index that is kept; whatever begins otherwise is not read."""

_LEVEL: Final = 1
"""Of compression: most of the numbers are small."""


class ItemRole(Enum):
    """Role of an item for a client that would write."""

    FRAME = "frame"
    """Roots, blocks and header fields: written by tools, apart from drafts."""
    ITEM = "item"
    """Items of lists, logs, maps and counters, and shared types in a content: for tools only."""
    VALUE = "value"
    """A character of a text."""
    MARK = "mark"
    """A format mark in a text; without meaning."""
    NOTHING = "nothing"
    """An item that was collected before it came here."""


_IN_TEXTS: Final = (ItemRole.VALUE, ItemRole.MARK)


@dataclass(eq=False, slots=True)
class ItemLocation:
    """Location of items; compared by identity."""

    container: Container
    nature: ItemRole


class Container(ItemLocation):
    """One shared type; the location of what is in it, of the characters of a text."""

    __slots__ = ("_frame", "_mark", "block", "path", "statuses", "written")

    def __init__(
        self, block: str | None, path: tuple[str, ...] | None, *, is_text: bool = False
    ) -> None:
        others = ItemRole.FRAME if path is None else ItemRole.ITEM
        super().__init__(self, ItemRole.VALUE if is_text else others)
        self.block = block
        """The block it is in; None outside of blocks."""
        self.path = path
        """The path in the block's content; None for its header and outside of blocks."""
        self.statuses: tuple[ItemId, ...] = ()
        """Of a header: see `ItemIndex.statuses`."""
        self._frame: ItemLocation | None = None if is_text else self
        self._mark: ItemLocation | None = self._frame
        self.written = 0
        """UTF-16 units that have come into a text: never less than there are."""

    @property
    def is_text(self) -> bool:
        return self.nature is ItemRole.VALUE

    @property
    def frame(self) -> ItemLocation:
        """The location of anything but characters and format marks, which few texts hold."""
        if self._frame is None:
            self._frame = ItemLocation(self, ItemRole.ITEM)
        return self._frame

    @property
    def mark(self) -> ItemLocation:
        """The location of format marks."""
        if self._mark is None:
            self._mark = ItemLocation(self, ItemRole.MARK)
        return self._mark

    def at(self, part: int) -> ItemLocation:
        """Return a location by the number that it is kept as: see `part_of`."""
        return self.mark if part == 2 else self if part else self.frame

    def part_of(self, location: ItemLocation) -> int:
        """Return the number of one of its locations."""
        nature = location.nature
        return 1 if nature is ItemRole.VALUE else 2 if nature is ItemRole.MARK else 0

    def release(self) -> None:
        """Let its locations refer to it no more."""
        for location in (self, self._frame, self._mark):
            if location is not None:
                location.container = OUTSIDE
        self._frame = self._mark = None


OUTSIDE: Final = Container(None, None)
"""Roots that hold no blocks, and whatever has no place."""

NOWHERE: Final = ItemLocation(OUTSIDE, ItemRole.NOTHING)

_NOWHERE: Final = 1
"""How it is kept; a place of a container is kept as three times its number, or one or two more."""


class _ClientRuns:
    """The items of one CRDT client, from clock `first` up to `end`."""

    __slots__ = ("end", "first", "made", "making", "places", "starts", "torn")

    def __init__(self, first: int) -> None:
        self.first = self.end = first
        self.starts = array("Q")
        self.places: list[ItemLocation] = []
        self.torn = array("Q")
        """Clocks at which a cut would go through a surrogate pair."""
        self.making = array("Q")
        """Clocks of the items that created shared types."""
        self.made: list[Container] = []

    def add(self, end: int, place: ItemLocation) -> None:
        if not self.places or self.places[-1] is not place:
            self.starts.append(self.end)
            self.places.append(place)
        self.end = end

    def tear(self, item: Struct) -> None:
        """Record the surrogate pairs in the new part of a text."""
        for units, match in enumerate(_ASTRAL.finditer(str(item.content)), item.clock + 1):
            if (at := match.start() + units) >= self.end:
                self.torn.append(at)

    def place(self, clock: int) -> ItemLocation:
        return self.places[bisect_right(self.starts, clock) - 1]

    def made_by(self, clock: int) -> Container | None:
        at = bisect_left(self.making, clock)
        return self.made[at] if at < len(self.made) and self.making[at] == clock else None

    def splits_surrogates(self, clock: int) -> bool:
        """Return whether a cut before the item `clock` would split a surrogate pair."""
        torn = self.torn
        if not torn:
            return False
        at = bisect_left(torn, clock)
        return at < len(torn) and torn[at] == clock

    def extend(self, later: _ClientRuns) -> None:
        ends = [*later.starts[1:], later.end]
        for end, place in zip(ends, later.places, strict=True):
            self.add(end, place)
        self.torn.extend(later.torn)
        self.making.extend(later.making)
        self.made += later.made


class ItemIndex:
    """The places of all items of a document, as of the updates it has followed.

    With `below`, what would be if an update were applied to the document that `below` describes;
    `below` supposes nothing itself.
    """

    def __init__(self, below: ItemIndex | None = None) -> None:
        self._below = below
        self.lines: dict[int, _ClientRuns] = {}
        """By client what was added here, not in `below`."""
        self._lines_below: dict[int, _ClientRuns] = below.lines if below is not None else {}
        self._blocks: dict[str, Container] = {}
        self._statuses: dict[Container, tuple[ItemId, ...]] = {}
        """The statuses of headers that were changed here, until this is adopted."""
        self.grown: dict[Container, int] = {}
        """The lengths that came into texts, until this is adopted."""
        self._queue: CausalQueue | None = None
        """Items that `ready` has held back; made when first needed."""
        self.deletions: tuple[IdRange, ...] = ()
        """Ids supposed to be gone with what was added here, until this is adopted."""
        self.order: TextOrder = TextOrder() if below is None else below.order
        self.staged: list[tuple[Struct, int]] = []
        """Items of texts that were added here and are not in `order`, each with the clock from
        which on it is new. Empty without `below`."""
        self.deleted: IdIntervals = IdIntervals() if below is None else below.deleted
        """Ids that are gone; with `below`, those that are gone there."""

    # Following

    def follow(self, update: bytes) -> None:
        """Take in an update that has been applied."""
        for _ in self.follow_in_parts(update):
            pass

    def follow_in_parts(self, update: bytes) -> Iterator[None]:
        """The same, pausing every few milliseconds."""
        for part in decode_in_parts(update, _PART):
            for item in self.ready(part.structs):
                self.add(item, self.place_of(item))
            for ids in part.deletions:
                self.deleted.add(ids)
            yield

    # Keeping

    def encode(self) -> bytes | None:
        """Return all of it as bytes; None while it waits for something, or something is checked."""
        if self.missing is not None or not self.order.is_settled:
            return None
        containers: dict[Container, int] = {OUTSIDE: 0}
        texts: list[str] = []
        numbers: list[int] = []

        def number_of(container: Container) -> int:
            return containers.setdefault(container, len(containers))

        def code_of(place: ItemLocation) -> int:
            if place is NOWHERE:
                return _NOWHERE
            container = place.container
            return 3 * number_of(container) + container.part_of(place)

        numbers.append(len(self.lines))
        for client, line in self.lines.items():
            numbers += (client, line.first, line.end, len(line.starts), len(line.torn))
            numbers += line.starts
            numbers += map(code_of, line.places)
            numbers += line.torn
        numbers.append(sum(len(line.made) for line in self.lines.values()))
        for client, line in self.lines.items():
            for clock, container in zip(line.making, line.made, strict=True):
                numbers += (client, clock, number_of(container))
        numbers.append(len(self._blocks))
        for key, container in self._blocks.items():
            texts.append(key)
            numbers.append(number_of(container))
        stated = [(block, one.statuses) for block, one in self._blocks.items() if one.statuses]
        numbers.append(len(stated))
        for block, items in stated:
            texts.append(block)
            numbers.append(len(items))
            for item in items:
                numbers += item
        gone = list(self.deleted)
        numbers.append(len(gone))
        for ids in gone:
            numbers += ids
        self.order.write(numbers)
        kept: list[int] = [len(containers) - 1]
        named: list[str] = []
        for container in list(containers)[1:]:
            path = container.path
            kept += (container.is_text, container.written, container.block is not None)
            kept.append(0 if path is None else len(path) + 1)
            named += (container.block,) if container.block is not None else ()
            named += path or ()
        return _encode_columns([*kept, *numbers], [*named, *texts])

    def decode_in_parts(self, data: bytes) -> Iterator[None]:
        """Take over what `encode` has made, into an index that is empty; pauses now and then.

        Raises:
            ValueError: if it is anything else.
        """
        try:
            yield from self._read(*_decode_columns(data))
        except (StopIteration, RuntimeError, IndexError, KeyError) as error:
            raise ValueError(f"an index of items cannot be read: {error}") from error

    def _read(self, numbers: Iterator[int], texts: Iterator[str]) -> Iterator[None]:
        containers = [OUTSIDE]
        for count in range(next(numbers)):
            is_text, written = bool(next(numbers)), next(numbers)
            has_block, length = next(numbers), next(numbers)
            block = intern(next(texts)) if has_block else None
            path = tuple(next(texts) for _ in range(length - 1)) if length else None
            container = Container(block, path, is_text=is_text)
            container.written = written
            containers.append(container)
            if count % _PART == 0:
                yield
        for _ in range(next(numbers)):
            client = next(numbers)
            line = self.lines[client] = _ClientRuns(next(numbers))
            line.end, starts, torn = next(numbers), next(numbers), next(numbers)
            line.starts.extend(islice(numbers, starts))
            line.places = [
                NOWHERE if code == _NOWHERE else containers[code // 3].at(code % 3)
                for code in islice(numbers, starts)
            ]
            line.torn.extend(islice(numbers, torn))
            yield
        clients = {client: client for client in self.lines}
        for count in range(next(numbers)):
            line = self.lines[next(numbers)]
            line.making.append(next(numbers))
            line.made.append(containers[next(numbers)])
            if count % _PART == 0:
                yield
        for _ in range(next(numbers)):
            self._blocks[intern(next(texts))] = containers[next(numbers)]
        yield
        for _ in range(next(numbers)):
            items = [ItemId(clients[next(numbers)], next(numbers)) for _ in range(next(numbers))]
            self._blocks[next(texts)].statuses = tuple(items)
        yield
        for _ in range(next(numbers)):
            self.deleted.add(IdRange(next(numbers), next(numbers), next(numbers)))
        yield
        yield from self.order.read(numbers, clients)

    def ends(self) -> dict[int, int]:
        """Return the clock after the last item of each client."""
        return {client: line.end for client, line in self.lines.items()}

    # Adopting

    def commit(self, above: ItemIndex) -> None:
        """Merge the staged changes of `above` (made over this one)."""
        for client, line in above.lines.items():
            own = self.lines.get(client)
            if own is None:
                self.lines[client] = line
            else:
                own.extend(line)
        self._blocks.update(above._blocks)
        for container, statuses in above._statuses.items():
            container.statuses = statuses
        for container, size in above.grown.items():
            container.written += size
        for ids in above.deletions:
            self.deleted.add(ids)
        self.order.adopt(above.staged)

    def add(self, item: Struct, place: ItemLocation) -> None:
        """Add an item, or what is new of it."""
        client, end = item.client, item.clock + item.length
        line = self.lines.get(client)
        if line is None:
            below = self._lines_below.get(client)
            line = self.lines[client] = _ClientRuns(below.end if below is not None else 0)
        if item.kind is ContentKind.STRING:
            if len(str(item.content)) != item.length:
                line.tear(item)
        elif item.kind is ContentKind.TYPE:
            line.making.append(item.clock)
            line.made.append(self._make(item, place))
        elif place.nature is ItemRole.FRAME and place.container.block is not None:
            self._record_status(item, place.container)
        start = max(item.clock, line.end)
        container, grows = place.container, place.nature is ItemRole.VALUE
        if self._below is None:
            container.written += end - start if grows else 0
            self.order.add(item, start)
        else:
            if grows:
                self.grown[container] = self.grown.get(container, 0) + end - start
            if container.is_text or item.kind is ContentKind.TYPE:
                self.staged.append((item, start))
        line.add(end, place)

    def add_typed(self, item: Struct) -> bool:
        """Add the next text of a client, which goes between items of one text.

        Return False if these are not known, or a surrogate pair would be split.
        """
        origin, after = item.origin, item.right_origin
        beside = origin or after
        line = self.line(beside.client, beside.clock) if beside is not None else None
        if line is None or beside is None:
            return False
        place = line.place(beside.clock)
        text = place.container
        if not text.is_text or place.nature is ItemRole.ITEM:
            return False
        if origin is not None and line.splits_surrogates(origin.clock + 1):
            return False
        if after is not None:
            line = self.line(after.client, after.clock)
            if line is None or line.place(after.clock).container is not text:
                return False
            if line.splits_surrogates(after.clock):
                return False
        line = self.lines.get(item.client)
        if line is None:
            line = self.lines[item.client] = _ClientRuns(item.clock)
        if len(str(item.content)) != item.length:
            line.tear(item)
        self.grown[text] = self.grown.get(text, 0) + item.length
        self.staged.append((item, item.clock))
        line.add(item.clock + item.length, text)
        return True

    def _record_status(self, item: Struct, header: Container) -> None:
        statuses = self._statuses.get(header, header.statuses)
        if item.key == STATUS or item.origin in statuses:
            # What a block has ended with is built on by nobody but the kernel.
            ended = item.kind is ContentKind.ANY and item.content in _ENDS
            statuses = (*(() if ended else statuses), ItemId(item.client, item.clock))
            if self._below is None:
                header.statuses = statuses
            else:
                self._statuses[header] = statuses

    def _make(self, item: Struct, place: ItemLocation) -> Container:
        is_text = item.content is SharedType.TEXT
        made = OUTSIDE
        if item.parent == BLOCKS and item.key is not None:
            made = place.container
            self._blocks[made.block or item.key] = made
        elif (container := self._container_of(item)).block is not None and container.path is None:
            if item.key == CONTENT:
                made = Container(container.block, (), is_text=is_text)
        elif container.path is not None and item.key is not None:
            made = Container(container.block, (*container.path, item.key), is_text=is_text)
        return made

    def release(self) -> None:
        """Break the links between what is in it, so that its memory is free at once."""
        self.order.release()
        for line in self.lines.values():
            for container in line.made:
                container.release()

    # Asking

    def edits_texts(self, update: DecodedUpdate) -> bool:
        """Return whether an update inserts text beside known text, or removes some, and no more.

        What has come before is not looked at.
        """
        staged = ItemIndex(self)
        for item in update.structs:
            end = staged.end(item.client)
            if item.clock + item.length <= end:
                continue
            is_next = item.clock == end
            if item.kind is not ContentKind.STRING or not is_next or not staged.add_typed(item):
                return False
        return all(
            ids.end <= staged.end(ids.client)
            and all(
                place.nature is ItemRole.VALUE and place.container.is_text
                for _, place in staged.runs(ids)
            )
            for ids in update.deletions
        )

    def end(self, client: int) -> int:
        """The clock after the last item of a client."""
        line = self.lines.get(client) or self._lines_below.get(client)
        return line.end if line is not None else 0

    def overtaken(self) -> ItemId | None:
        """An item that has come `below` though its number was given to another here."""
        for client, line in self.lines.items():
            if self._below is not None and self._below.end(client) != line.first:
                return ItemId(client, line.first)
        return None

    @property
    def missing(self) -> ItemId | None:
        """An id that has not come, though something that has come builds on it."""
        return self._queue.missing if self._queue is not None else None

    def ready(self, items: Iterable[Struct]) -> Iterator[Struct]:
        """The new ones of `items`, each behind all that it builds on; see `CausalQueue`."""
        if self._queue is None:
            self._queue = CausalQueue()
        return self._queue.ready(items, self.end)

    def place_of(self, item: Struct) -> ItemLocation:
        """Return the location for an item whose neighbours and parent are known."""
        kind, parent = item.kind, item.parent
        if kind is ContentKind.GC:
            return NOWHERE
        if parent is None:
            beside = self._beside(item)
            container = beside.container
            if beside.nature not in _IN_TEXTS:
                return beside
        else:
            container = self._container_of(item)
            if item.key is not None:
                return container.frame
        if kind is ContentKind.TYPE:
            return container.frame
        return container.mark if kind is ContentKind.FORMAT else container

    def _beside(self, item: Struct) -> ItemLocation:
        beside = item.origin or item.right_origin
        return self.place(beside) if beside is not None else OUTSIDE.frame

    def _container_of(self, item: Struct) -> Container:
        parent = item.parent
        if isinstance(parent, ItemId):
            return self.made_by(parent) or OUTSIDE
        if parent == BLOCKS and item.key is not None:
            return self.block(item.key) or Container(intern(item.key), None)
        return OUTSIDE if parent is not None else self._beside(item).container

    def block(self, key: str) -> Container | None:
        """The header of a block; None if there is no such block."""
        block = self._blocks.get(key)
        if block is None and self._below is not None:
            return self._below.block(key)
        return block

    def statuses(self, block: str) -> tuple[ItemId, ...]:
        """The items that hold the status of a block: the last, and those it may have replaced."""
        header = self.block(block)
        return self._statuses.get(header, header.statuses) if header is not None else ()

    def made_by(self, item: ItemId) -> Container | None:
        """The shared type that an item created; None if it created none."""
        line = self.line(item.client, item.clock)
        return line.made_by(item.clock) if line is not None else None

    def place(self, item: ItemId) -> ItemLocation:
        """Return the location of an item; `NOWHERE` if it is not known."""
        line = self.line(item.client, item.clock)
        return line.place(item.clock) if line is not None else NOWHERE

    def runs(self, ids: IdRange) -> Iterator[tuple[IdRange, ItemLocation]]:
        """A range of items cut by the places that they are in."""
        client, start, end = ids
        while start < end:
            line = self.line(client, start)
            if line is None:
                return
            at = bisect_right(line.starts, start) - 1
            upto = line.starts[at + 1] if at + 1 < len(line.starts) else line.end
            yield IdRange(client, start, min(upto, end)), line.places[at]
            start = upto

    def splits_surrogates(self, client: int, clock: int) -> bool:
        """Return whether a cut before the item `clock` would split a surrogate pair."""
        line = self.line(client, clock)
        return line is not None and line.splits_surrogates(clock)

    def line(self, client: int, clock: int) -> _ClientRuns | None:
        """The line that an item is in."""
        line = self.lines.get(client)
        if line is None or clock < line.first:
            line = self._lines_below.get(client)
        return line if line is not None and clock < line.end else None


def _encode_columns(numbers: Sequence[int], texts: Sequence[str]) -> bytes:
    """Return numbers from 0 to 2^64 - 1, and texts, as bytes."""
    named = json.dumps(texts).encode()
    head = len(named).to_bytes(8, "little")
    return _FORMAT + zlib.compress(head + named + array("Q", numbers).tobytes(), _LEVEL)


def _decode_columns(data: bytes) -> tuple[Iterator[int], Iterator[str]]:
    """Return what `_encode_columns` has written, on a machine of the same kind.

    Both are to be taken one by one; equal texts are one object.

    Raises:
        ValueError: if it is anything else.
    """
    if not data.startswith(_FORMAT):
        raise ValueError("it has another format")
    try:
        held = zlib.decompress(data[len(_FORMAT) :])
    except zlib.error as error:
        raise ValueError(f"it cannot be read: {error}") from error
    end = 8 + int.from_bytes(held[:8], "little")
    numbers, known = array("Q"), dict[str, str]()
    numbers.frombytes(held[end:])
    return iter(numbers), (known.setdefault(text, text) for text in json.loads(held[8:end]))
