"""One text with everything it has been: each change followed, each character's life kept.

It is fed with the updates of the journal, one transaction at a time, and answers what a CRDT text
alone cannot: how the text read at an earlier version, who wrote each character first, which
characters an undo has to remove and bring back, and where a line of an earlier version is now.

An undo brings removed characters back as new items, because a CRDT cannot revive old ones. They
stay the same characters here: author, undo unit and the lines of earlier versions go with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from antiphon_kernel.document.history.causal import causal_order
from antiphon_kernel.document.history.sequence import ALIVE, Segment, utf16_length
from antiphon_kernel.document.history.sequence import Sequence as ItemSequence
from antiphon_kernel.types.records import TextAddress
from antiphon_kernel.wire.id_set import IdRange
from antiphon_kernel.wire.revivals import Revival
from antiphon_kernel.wire.text_update import PlacedText
from antiphon_kernel.wire.update import ContentKind, DecodedUpdate, ItemId, SharedType, Struct


class Turn(StrEnum):
    """Which way a unit is turned."""

    UNDO = "undo"
    REDO = "redo"


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


@dataclass(frozen=True, slots=True)
class Change:
    """One committed transaction, as a history follows it."""

    update: DecodedUpdate
    stamp: Stamp
    unit: int | None = None
    """The undo unit it belongs to, or turns."""
    turn: Turn | None = None
    revivals: tuple[Revival, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """How a text changes when a unit is undone or redone."""

    texts: tuple[PlacedText, ...] = ()
    """What comes back, in document order."""
    sources: tuple[IdRange, ...] = ()
    """The characters that all of it together is, in order."""
    deletions: tuple[IdRange, ...] = ()
    """What goes."""

    def __bool__(self) -> bool:
        """Whether anything changes."""
        return bool(self.texts or self.deletions)


@dataclass(slots=True)
class _Unit:
    """What a unit wrote and removed, as ids of characters written first."""

    made: list[IdRange] = field(default_factory=list)
    took: list[IdRange] = field(default_factory=list)


class TextHistory:
    """The history of one text, up to the last change that it was given."""

    def __init__(self, address: TextAddress) -> None:
        self.address = address
        self._path = ["content", *(address.section.split("/") if address.section else ())]
        self._containers: list[ItemId] = []
        self._sequence = ItemSequence()
        self._stamps: list[Stamp] = []
        self._inherited: list[Stamp] = []
        self._units: dict[int, _Unit] = {}
        self._length = 0

    # Following

    def follow(self, change: Change) -> None:
        """Take in the next change; one that does not touch this text does nothing."""
        at = len(self._stamps)
        self._stamps.append(change.stamp)
        touched = False
        for struct in causal_order(change.update.structs):
            if self._integrate(struct, at, change):
                touched = True
        for removed in change.update.deletions:
            for segment in self._sequence.within(*removed):
                if segment.alive:
                    self._remove(segment, at, change)
                    touched = True
        if change.turn is not None and change.unit in self._units:
            self._mark(change.unit, change.turn)
        if not touched:
            self._stamps.pop()

    def _integrate(self, struct: Struct, at: int, change: Change) -> bool:
        if struct.kind is ContentKind.TYPE or struct.kind is ContentKind.SKIP:
            self._note_container(struct)
            return False
        if struct.key is not None or not self._belongs(struct):
            return False
        touched = False
        for new in self._unknown_parts(struct, at):
            for segment in self._as_revived(new, change):
                self._sequence.place(segment)
                touched = True
                if segment.text:
                    self._length += segment.code_points
                    self._note_made(segment, change)
                elif struct.kind is ContentKind.DELETED:
                    segment.died = at
        return touched

    def _note_container(self, struct: Struct) -> None:
        """Find the way down from the root to the text itself."""
        depth = len(self._containers)
        if depth > len(self._path):
            return
        parent: object = "blocks" if depth == 0 else self._containers[-1]
        key = self.address.block if depth == 0 else self._path[depth - 1]
        if struct.kind is ContentKind.TYPE and struct.parent == parent and struct.key == key:
            wanted = SharedType.TEXT if depth == len(self._path) else SharedType.MAP
            if struct.content is wanted:
                self._containers.append(ItemId(struct.client, struct.clock))

    def _belongs(self, struct: Struct) -> bool:
        if struct.parent is not None:
            found = len(self._containers) > len(self._path)
            return found and struct.parent == self._containers[-1]
        beside = struct.origin if struct.origin is not None else struct.right_origin
        return beside is not None and self._sequence.find(beside) is not None

    def _unknown_parts(self, struct: Struct, at: int) -> Iterator[Segment]:
        """What of a struct is new: what comes in again may overlap what is known."""
        start, end = struct.clock, struct.clock + struct.length
        known = self._sequence.find(ItemId(struct.client, start))
        while known is not None and known.end < end:
            start = known.end
            known = self._sequence.find(ItemId(struct.client, start))
        if known is not None:
            return
        text = struct.content if struct.kind is ContentKind.STRING else ""
        assert isinstance(text, str)
        whole = Segment(
            ItemId(struct.client, struct.clock),
            struct.length,
            text,
            struct.origin,
            struct.right_origin,
            at,
        )
        yield whole.beginning_at(start) if start > struct.clock else whole

    def _as_revived(self, new: Segment, change: Change) -> Iterator[Segment]:
        """Cut a new segment where the characters that it is come from different places."""
        rest: Segment | None = new
        for one in change.revivals:
            if rest is None or one.again.client != rest.client:
                continue
            end = one.again.clock + one.length
            if not one.again.clock <= rest.clock < end:
                continue
            part, rest = rest, rest.cut_off(end) if end < rest.end else None
            source = ItemId(one.source.client, one.source.clock + part.clock - one.again.clock)
            part.source = source
            for original in self._sequence.within(
                source.client, source.clock, source.clock + part.length
            ):
                skipped = original.clock - source.clock
                original.again = ItemId(part.client, part.clock + skipped)
            yield part
        if rest is not None:
            yield rest

    def _note_made(self, segment: Segment, change: Change) -> None:
        if change.unit is not None and change.turn is None:
            made = self._units.setdefault(change.unit, _Unit()).made
            made.append(IdRange(segment.client, segment.clock, segment.end))

    def _remove(self, segment: Segment, at: int, change: Change) -> None:
        segment.died = at
        self._length -= segment.code_points
        if not segment.text or change.turn is not None:
            return
        # Who removes without a unit removes for ever: no unit has a negative number.
        unit = change.unit if change.unit is not None else -1
        for original in self._sequence.originals(segment):
            original.removers |= {unit}
            if change.unit is not None:
                took = self._units.setdefault(unit, _Unit()).took
                took.append(IdRange(original.client, original.clock, original.end))

    def _mark(self, number: int, turn: Turn) -> None:
        unit = self._units[number]
        for original in self._each(unit.made):
            original.unmade = turn is Turn.UNDO
        for original in self._each(unit.took):
            if turn is Turn.UNDO:
                original.removers -= {number}
            else:
                original.removers |= {number}

    def _each(self, ranges: Iterable[IdRange]) -> Iterator[Segment]:
        for one in ranges:
            yield from self._sequence.within(*one)

    # Reading

    @property
    def version(self) -> int:
        """The version of the block that the last change of this text made; 0 before the first."""
        return self._stamps[-1].version if self._stamps else 0

    @property
    def length(self) -> int:
        """Code points of the text now."""
        return self._length

    def text(self, version: int | None = None) -> str:
        """The text now, or as of a version of its block."""
        if version is None:
            return "".join(segment.text for segment in self._sequence if segment.alive)
        at = self.position(version)
        return "".join(one.text for one in self._sequence if self.held(one, at))

    def as_of(self, version: int) -> list[Segment]:
        """The characters of a version, in order, as what they are now: alive or not."""
        at = self.position(version)
        held = [one for one in self._sequence if one.text and self.held(one, at)]
        for segment in held:
            for _ in self._sequence.as_now(segment):
                pass  # cut where characters have gone different ways since
        held = [one for one in self._sequence if one.text and self.held(one, at)]
        return [part for segment in held for part in self._sequence.as_now(segment)]

    def position(self, version: int) -> int:
        """The number of changes that had been made as of a version."""
        low, high = 0, len(self._stamps)
        while low < high:
            middle = (low + high) // 2
            if self._stamps[middle].version <= version:
                low = middle + 1
            else:
                high = middle
        return low

    @staticmethod
    def held(segment: Segment, position: int) -> bool:
        """Whether characters were in the text after so many changes."""
        return segment.born < position and (segment.died == ALIVE or segment.died >= position)

    @property
    def sequence(self) -> ItemSequence:
        return self._sequence

    def blame(self) -> list[Run]:
        """Who wrote the text: runs that together are as long as the text."""
        runs: list[Run] = []
        for segment in list(self._sequence):
            if not segment.alive or not segment.text:
                continue
            for original in self._sequence.originals(segment):
                length, stamp = original.code_points, self._author(original)
                if runs and runs[-1].stamp == stamp:
                    length += runs.pop().length
                runs.append(Run(length, stamp))
        return runs

    def _author(self, original: Segment) -> Stamp:
        if original.author is not None:
            return self._inherited[original.author]
        return self._stamps[original.born]

    def inherit(self, runs: Iterable[Run]) -> None:
        """The text now was written elsewhere before it was copied here, by these authors.

        Raises:
            ValueError: if the runs are longer than the text.
        """
        at = self._sequence.head
        for run in runs:
            left = run.length
            self._inherited.append(run.stamp)
            while left:
                while at is not None and not (at.alive and at.text):
                    at = at.right
                if at is None:
                    raise ValueError("the inherited authors wrote more than the text has")
                if at.code_points > left:
                    self._sequence.split(at, utf16_length(at.text[:left]))
                at.author = len(self._inherited) - 1
                left -= at.code_points
                at = at.right

    # Undoing

    def plan_turn(self, number: int, turn: Turn) -> TurnPlan:
        """What must change so that a unit is undone, or done again.

        A character is in the text if what wrote it is not undone and no unit that removed it is
        in force. So a unit takes along what it wrote, and gives back what it removed, unless
        somebody else has removed that as well, or its writer has taken it back.
        """
        unit = self._units.get(number)
        if unit is None:
            return TurnPlan()
        for _ in self._each([*unit.made, *unit.took]):
            pass  # cut where either of them has a border, so that each segment is all in or all out
        made = {id(one) for one in self._each(unit.made)}
        took = {id(one) for one in self._each(unit.took)}
        affected = list(self._each([*unit.made, *unit.took]))
        going: set[int] = set()
        coming: set[int] = set()
        for original in affected:
            unmade, removers = original.unmade, original.removers
            if id(original) in made:
                unmade = turn is Turn.UNDO
            if id(original) in took:
                removers = removers - {number} if turn is Turn.UNDO else removers | {number}
            there = not unmade and not removers
            for newest in self._sequence.newest(original):
                if newest.alive and not there:
                    going.add(id(newest))
                elif not newest.alive and there:
                    coming.add(id(newest))
        return self._as_plan(going, coming)

    def plan_restore(self, version: int) -> TurnPlan:
        """What must change so that the text reads as at a version; what comes is written anew."""
        staying: set[int] = set()
        coming: set[int] = set()
        for part in self.as_of(version):
            (staying if part.alive else coming).add(id(part))
        going = {
            id(one) for one in self._sequence if one.alive and one.text and id(one) not in staying
        }
        return self._as_plan(going, coming)

    def _as_plan(self, going: set[int], coming: set[int]) -> TurnPlan:
        """What comes back goes right behind what it was, so that nothing changes places."""
        texts: list[PlacedText] = []
        sources: list[IdRange] = []
        deletions: list[IdRange] = []
        waiting = ""
        for segment in self._sequence:
            if id(segment) in going:
                deletions.append(IdRange(segment.client, segment.clock, segment.end))
            elif id(segment) in coming:
                waiting += segment.text
                first = segment.source or segment.first
                sources.append(IdRange(first.client, first.clock, first.clock + segment.length))
                following = segment.right
                if following is None or id(following) not in coming:
                    beside = following.first if following is not None else None
                    parent = self._containers[-1]
                    texts.append(PlacedText(parent, segment.last, beside, waiting))
                    waiting = ""
        return TurnPlan(tuple(texts), tuple(sources), tuple(deletions))


def revivals_of(client: int, clock: int, sources: Iterable[IdRange]) -> tuple[Revival, ...]:
    """Which new ids are which characters come back.

    Args:
        clock: the first of the new ids of `client`.
        sources: the characters, in the order in which they are written.
    """
    found: list[Revival] = []
    for source in sources:
        length = source.end - source.start
        first = ItemId(source.client, source.start)
        found.append(Revival(ItemId(client, clock), first, length))
        clock += length
    return tuple(found)
