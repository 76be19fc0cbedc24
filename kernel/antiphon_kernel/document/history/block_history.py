"""The content of one block with everything it has been: each change followed, each life kept.

It is fed with the updates of the journal, one transaction at a time, and answers what a CRDT alone
cannot: how a text read at an earlier version, who wrote each character first, what an undo has to
remove and bring back, and where a line of an earlier version is now.

An undo brings removed characters back as new items, because a CRDT cannot revive old ones. They
stay the same characters here: author, undo unit and the lines of earlier versions go with them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import accumulate, pairwise
from typing import Any

from antiphon_kernel.document.content import Content, plain_json
from antiphon_kernel.document.counters import EXACT, as_number
from antiphon_kernel.document.history.item_index import (
    ALIVE,
    ContainerIndex,
    ItemContent,
    ItemKind,
    ItemList,
    ItemTable,
    Names,
    Segment,
    integrate,
)
from antiphon_kernel.document.history.undo_units import (
    NewItem,
    UndoDirection,
    UndoUnits,
    UpdatePlan,
    counted_to,
    plan_count,
    plan_difference,
    plan_sequence,
)
from antiphon_kernel.document.schema import (
    FieldType,
    Part,
    field_type_of,
    inner_parts,
    names_of,
    path_of,
    violations,
)
from antiphon_kernel.text.lines import line_count, out_of_range, split_lines
from antiphon_kernel.types.frozen_json import canonical_json
from antiphon_kernel.types.records import Run, Stamp, TextSplice
from antiphon_kernel.yjs.causal_order import in_causal_order
from antiphon_kernel.yjs.restored_ids import RestoredRange
from antiphon_kernel.yjs.update import ContentKind, DecodedUpdate, ItemId, Struct, utf16_length


@dataclass(frozen=True, slots=True)
class TimedText:
    """Characters in a row that one principal wrote and that were there at the same versions."""

    text: str
    principal: str
    since: int
    """The first version of the block that has them."""
    until: int | None
    """The first version after it that has them no more; None if they are there now."""


@dataclass(frozen=True, slots=True)
class AuthoredChange:
    """Code points that came into a text or went out of it, and by whom."""

    offset: int
    """Place in the text as it is now."""
    inserted: int
    removed: int
    principal: str


@dataclass(frozen=True, slots=True)
class HistoryChange:
    """One committed transaction, as a history follows it."""

    update: DecodedUpdate
    stamp: Stamp
    unit: int | None = None
    """The undo unit it belongs to, or turns."""
    turn: UndoDirection | None = None
    revivals: tuple[RestoredRange, ...] = ()


class BlockHistory:
    """The history of one block's content, up to the last change that it was given."""

    def __init__(self, block: str, counters: Collection[Names] = ()) -> None:
        """`counters`: where in the content counters are."""
        self.block = block
        self._items = ItemTable()
        self._belonging = ContainerIndex(block, self._items, counters)
        self._units = UndoUnits(self._items)
        self._stamps: list[Stamp] = []
        self._inherited: list[Stamp] = []

    def release(self) -> None:
        """Free the memory now, not when the collector comes by; the history is of no use then."""
        self._items.release()

    # Following

    def follow(self, change: HistoryChange) -> None:
        """Take in the next change; one that does not touch this content does nothing."""
        at = len(self._stamps)
        self._stamps.append(change.stamp)
        touched = False
        for struct in in_causal_order(change.update.structs):
            if struct.kind is ContentKind.TYPE:
                self._belonging.record(struct)
            elif struct.kind is not ContentKind.SKIP and self._integrate(struct, at, change):
                touched = True
        for removed in change.update.deletions:
            for segment in self._items.within(*removed):
                if segment.alive:
                    self._remove(segment, at, change)
                    touched = True
        if change.turn is not None and change.unit is not None:
            self._units.set_undone(change.unit, change.turn)
        if not touched:
            self._stamps.pop()

    def _integrate(self, struct: Struct, at: int, change: HistoryChange) -> bool:
        sequence = self._belonging.sequence_of(struct)
        if sequence is None:
            return False
        touched = False
        for new in self._unknown_parts(sequence, struct, at):
            for segment in self._as_revived(new, change):
                integrate(self._items, segment)
                touched = True
                if struct.kind is ContentKind.DELETED:
                    segment.deleted_at = at
                elif segment.size:
                    sequence.length += segment.size
                    if sequence.kind in (ItemKind.ENTRY, ItemKind.COUNTER):
                        self._supersede(segment, at, change)
                    elif change.turn is None:
                        self._units.units_inserting(change.unit, segment)
        return touched

    def _unknown_parts(self, sequence: ItemList, struct: Struct, at: int) -> Iterator[Segment]:
        """Yield the new parts of a struct: what comes in again may overlap what is known."""
        start, end = struct.clock, struct.clock + struct.length
        known = self._items.find(ItemId(struct.client, start))
        while known is not None and known.end < end:
            start = known.end
            known = self._items.find(ItemId(struct.client, start))
        if known is not None:
            return
        whole = Segment(
            sequence,
            struct.client,
            struct.clock,
            struct.length,
            _content(sequence, struct),
            struct.origin,
            struct.right_origin,
            at,
        )
        yield whole.beginning_at(start) if start > struct.clock else whole

    def _as_revived(self, new: Segment, change: HistoryChange) -> Iterator[Segment]:
        """Cut a new segment where what it is comes from different places."""
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
            for original in self._items.within(
                source.client, source.clock, source.clock + part.length
            ):
                skipped = original.clock - source.clock
                original.revived_as = ItemId(part.client, part.clock + skipped)
            yield part
        if rest is not None:
            yield rest

    def _supersede(self, segment: Segment, at: int, change: HistoryChange) -> None:
        """Of the values of a key only the last is there; that takes no deletion."""
        sequence = segment.sequence
        before = max(
            (one for one in sequence if one.alive and one.size and one is not segment),
            key=lambda one: one.inserted_at,
            default=None,
        )
        if change.turn is None:
            if sequence.kind is ItemKind.COUNTER:
                amount = counted_to(segment) - counted_to(before)
                self._units.counted(change.unit, sequence.container, amount)
            else:
                self._units.units_inserting(change.unit, segment)
        *earlier, _ = [one for one in sequence if one.size]
        for one in earlier:
            if one.alive:
                one.deleted_at = at
                sequence.length -= one.size

    def _remove(self, segment: Segment, at: int, change: HistoryChange) -> None:
        sequence = segment.sequence
        segment.deleted_at = at
        sequence.length -= segment.size
        if not segment.size or change.turn is not None or sequence.kind is ItemKind.COUNTER:
            return
        if sequence.kind is ItemKind.ENTRY:
            # A key that is removed has none of the values that it had before.
            for one in [one for one in sequence if one.source is None and one.size]:
                self._units.units_deleting(change.unit, one)
        else:
            self._units.units_deleting(change.unit, segment)

    # Reading

    @property
    def version(self) -> int:
        """The version that the last change of this content made; 0 before the first."""
        return self._stamps[-1].version if self._stamps else 0

    def sequence(self, section: str | None = None) -> ItemList | None:
        """The items of a text; None if there is none in that place."""
        return self._belonging.texts.get(names_of(section))

    def length(self, section: str | None = None) -> int:
        """Code points of a text now."""
        sequence = self.sequence(section)
        return sequence.length if sequence is not None else 0

    def text(self, section: str | None = None, version: int | None = None) -> str:
        """A text now, or as of a version of its block."""
        sequence, at = self.sequence(section), self._position(version)
        return "".join(str(one.content) for one in sequence or () if _held(one, at))

    def values(self, names: Names, version: int | None = None) -> list[Any]:
        """The items of a list, or the one value of a field, now or as of a version of its block."""
        at = self._position(version)
        held = (one for one in self._belonging.sequence(names) or () if _held(one, at))
        return [value for one in held for value in one.content]

    def counter(self, names: Names, version: int | None = None) -> Decimal:
        """The value of a counter; what cannot be read counts for nothing."""
        at = self._position(version)
        counter = self._belonging.counter_at(names)
        sums = self._belonging.sums(counter) if counter is not None else []
        total = Decimal(0)
        for one in (one for values in sums for one in values if _held(one, at)):
            total = EXACT.add(total, counted_to(one))
        return total

    def changes_since(self, section: str | None, version: int) -> list[AuthoredChange]:
        """Return what is new in a text and what is gone from it since a version, in order.

        Of what has come and gone since, or gone and come back, there is nothing.
        """
        sequence = self.sequence(section)
        held = {id(one) for one in self.as_of(sequence, version)}
        changes: list[AuthoredChange] = []
        at = 0
        for one in sequence or ():
            if one.size and one.alive and id(one) not in held:
                who = self._stamps[one.inserted_at].principal
                changes.append(AuthoredChange(at, one.size, 0, who))
            elif one.size and not one.alive and id(one) in held:
                who = self._stamps[one.deleted_at].principal
                changes.append(AuthoredChange(at, 0, one.size, who))
            at += one.size if one.alive else 0
        return changes

    def edits_since(self, section: str | None, version: int) -> tuple[str, list[TextSplice]]:
        """Return a text as of a version, and the script of what has come into it and gone since.

        The offsets all count in the earlier text. Characters that came back are the same ones.
        """
        sequence = self.sequence(section)
        parts = self.as_of(sequence, version)
        before = "".join(str(one.content) for one in parts)
        starts = accumulate((one.size for one in parts), initial=0)
        places = {id(one): start for one, start in zip(parts, starts, strict=False)}
        script: list[TextSplice] = []
        at, new = 0, ""
        for one in [one for one in sequence or () if one.alive and one.size]:
            start = places.get(id(one))
            if start is None:
                new += str(one.content)
                continue
            if new or start > at:
                script.append(TextSplice(at, start - at, new))
            at, new = start + one.size, ""
        if new or at < len(before):
            script.append(TextSplice(at, len(before) - at, new))
        return before, script

    def as_of(self, sequence: ItemList | None, version: int) -> list[Segment]:
        """The characters of a version, in order, as what they are now: alive or not."""
        at = self._position(version)
        for segment in [one for one in sequence or () if one.size and _held(one, at)]:
            for _ in self._items.current(segment):
                pass  # cut where characters have gone different ways since
        held = [one for one in sequence or () if one.size and _held(one, at)]
        return [part for segment in held for part in self._items.current(segment)]

    def _position(self, version: int | None) -> int:
        """Return how many changes there were by a version; None stands for now."""
        if version is None:
            return len(self._stamps)
        return bisect_right(self._stamps, version, key=lambda stamp: stamp.version)

    # Authors

    def blame(self, section: str | None = None, version: int | None = None) -> list[Run]:
        """Return the authors of a text, now or as of a version: runs together as long as it."""
        runs: list[Run] = []
        at = self._position(version)
        for segment in list(self.sequence(section) or ()):
            if not segment.size or not _held(segment, at):
                continue
            for original in self._items.originals(segment):
                length, stamp = original.size, self._author(original)
                if runs and runs[-1].stamp == stamp:
                    length += runs.pop().length
                runs.append(Run(length, stamp))
        return runs

    def timeline(self, section: str | None = None) -> list[TimedText]:
        """Return everything that a text has ever held, in the order of the text."""
        found: list[TimedText] = []
        for segment in list(self.sequence(section) or ()):
            since = self._stamps[segment.inserted_at].version
            until = None if segment.alive else self._stamps[segment.deleted_at].version
            if not segment.size or since == until:
                continue
            at = 0
            for original in self._items.originals(segment):
                text = str(segment.content)[at : at + original.size]
                new = TimedText(text, self._author(original).principal, since, until)
                at += original.size
                if found and found[-1] == replace(new, text=found[-1].text):
                    new = replace(new, text=found.pop().text + text)
                found.append(new)
        return found

    def _author(self, original: Segment) -> Stamp:
        if original.author is not None:
            return self._inherited[original.author]
        return self._stamps[original.inserted_at]

    def inherit(self, section: str | None, runs: Iterable[Run]) -> None:
        """Take over the authors of what the last change wrote into a text, and others had before.

        Raises:
            ValueError: if the runs are longer than what it wrote.
        """
        sequence, last = self.sequence(section), len(self._stamps) - 1
        at = sequence.head if sequence is not None else None
        for run in runs:
            left = run.length
            self._inherited.append(run.stamp)
            while left:
                while at is not None and not (at.size and at.inserted_at == last):
                    at = at.right
                if at is None:
                    raise ValueError("the inherited authors wrote more than the text has")
                if at.size > left:
                    self._items.split(at, utf16_length(str(at.content)[:left]))
                at.author = len(self._inherited) - 1
                left -= at.size
                at = at.right

    # Planning

    def plan_undo(self, unit: int, turn: UndoDirection, client: int) -> UpdatePlan:
        """Return the plan by which this client undoes a unit, or redoes it."""
        return plan_difference(self._units.difference(unit, turn), self._belonging, client)

    def changed_blocks(self, unit: int, turn: UndoDirection) -> list[tuple[str, ...]]:
        """Return the places a unit's undo or redo changes: names of sections, then of a field."""
        difference = self._units.difference(unit, turn)
        return [
            *(sequence.names for sequence in difference.sequences),
            *(self._belonging.names[counter] for counter, _ in difference.counted),
        ]

    def undo_texts(self, unit: int, turn: UndoDirection) -> tuple[str, str]:
        """Return the text that a unit's undo or redo removes, and the text that it restores."""
        difference = self._units.difference(unit, turn)
        segments = [
            one
            for sequence in difference.sequences
            if sequence.kind is ItemKind.TEXT
            for one in sequence
        ]
        removed = "".join(str(one.content) for one in segments if id(one) in difference.going)
        restored = "".join(str(one.content) for one in segments if id(one) in difference.coming)
        return removed, restored

    def plan_append(self, section: str | None, text: str) -> UpdatePlan:
        """Return the plan that writes `text` at the end, behind what has been removed."""
        sequence = self.sequence(section)
        if sequence is None or not text:
            return UpdatePlan()
        last = sequence.tail.last if sequence.tail is not None else None
        return UpdatePlan((NewItem(sequence.container, None, last, None, text),))

    def plan_restore(self, section: str | None, version: int) -> UpdatePlan:
        """Return the plan that restores a text, list or field to a version.

        What comes back is written as new.
        """
        sequence = self._belonging.sequence(names_of(section))
        if sequence is None:
            return UpdatePlan()
        staying: set[int] = set()
        coming: set[int] = set()
        for part in self.as_of(sequence, version):
            (staying if part.alive else coming).add(id(part))
        going = {id(one) for one in sequence if one.alive and one.size and id(one) not in staying}
        return plan_sequence(sequence, going, coming, anew=True)

    def plan_count(self, names: Names, version: int, client: int) -> UpdatePlan:
        """Return the plan by which this client brings a counter back to what it was."""
        amount = EXACT.subtract(self.counter(names, version), self.counter(names))
        counter = self._belonging.counter_at(names)
        if counter is None or not amount:
            return UpdatePlan()
        return UpdatePlan((plan_count(self._belonging, counter, amount, client),))


def _held(segment: Segment, position: int) -> bool:
    """Whether something was there after so many changes."""
    return segment.inserted_at < position and (
        segment.deleted_at == ALIVE or segment.deleted_at >= position
    )


def _content(sequence: ItemList, struct: Struct) -> ItemContent:
    """Return the content that an item adds to its sequence; empty for marks and other kinds."""
    if struct.kind is ContentKind.STRING and sequence.kind is ItemKind.TEXT:
        return str(struct.content)
    if struct.kind is ContentKind.ANY and sequence.kind is not ItemKind.TEXT:
        assert isinstance(struct.content, tuple)
        return struct.content
    return ""


def content_at(history: BlockHistory, part: Part, path: str | None, version: int) -> Content:
    """Return what the part at a path was at a version of its block."""
    value = _value(history, part, names_of(path), version)
    return Content(value, tuple(violations(part, value, path)))


def _value(history: BlockHistory, part: Part, names: Names, version: int) -> Any:
    match field_type_of(part):
        case FieldType.TEXT:
            return history.text(path_of(names), version)
        case FieldType.COUNTER:
            return as_number(history.counter(names, version))
        case FieldType.LIST:
            return [plain_json(one) for one in history.values(names, version)]
        case None:
            inner = inner_parts(part)
            return {name: _value(history, one, (*names, name), version) for name, one in inner}
        case _:
            values = history.values(names, version)
            return plain_json(values[0]) if values else None


def plan_content_at(
    history: BlockHistory, part: Part, names: Names, version: int, client: int
) -> Iterator[tuple[Names, UpdatePlan]]:
    """Yield the plan for each text, list, log, counter or field that is not what it was.

    Args:
        client: who will write it: counters are counted by client.
    """
    match field_type_of(part):
        case None:
            for name, one in inner_parts(part):
                yield from plan_content_at(history, one, (*names, name), version, client)
            return
        case FieldType.COUNTER:
            plan = history.plan_count(names, version, client)
        case FieldType.TEXT | FieldType.LIST:
            plan = history.plan_restore(path_of(names), version)
        case _:
            now, then = ([*map(plain_json, history.values(names, at))] for at in (None, version))
            same = canonical_json(now) == canonical_json(then)
            plan = UpdatePlan() if same else history.plan_restore(path_of(names), version)
    if plan:
        yield names, plan


class StaleError(Exception):
    """Error for content of the earlier version that has changed.

    `start` and `end` are code points of the text now: what stands in its place, as far as that
    can be told.
    """

    def __init__(self, start: int, end: int) -> None:
        super().__init__(f"changed since: {start} to {end}")
        self.start = start
        self.end = end


class VersionMap:
    """One earlier version of a text beside the text as it is now: where a place of it is now.

    A line of the earlier version is still there if all its characters are, side by side, from the
    start of a line to the end of one; its newline may be another one. A line that was removed and
    typed again is not the same line. A position is where the characters around it are.
    """

    def __init__(self, history: BlockHistory, section: str | None, version: int) -> None:
        self._parts = history.as_of(history.sequence(section), version)
        """The characters of the earlier version, as what they are now."""
        self._starts = list(accumulate((part.size for part in self._parts), initial=0))[:-1]
        self._offsets: dict[int, int] = {}
        offset = 0
        for segment in history.sequence(section) or ():
            self._offsets[id(segment)] = offset
            if segment.alive:
                offset += segment.size
        self.before = "".join(str(part.content) for part in self._parts)
        """The text of the earlier version."""
        self.now = history.text(section)
        """The text now."""
        lengths = (len(line) + 1 for line in split_lines(self.before))
        self._line_starts = list(accumulate(lengths, initial=0))[:-1]

    def lines(self, start: int, end: int) -> tuple[int, int]:
        """Return the current range of the lines from `start` to `end` (exclusive).

        Of an empty one the line is found above which something is put; the number of lines stands
        for the end, then as now.

        Raises:
            StaleError: if one of them has changed, or something stands between them.
            AntiphonError: line_out_of_range.
        """
        count = len(self._line_starts)
        for number in (start, end):
            if not 0 <= number <= count:
                raise out_of_range(number, count)
        if start >= end:
            at = self.lines(start, start + 1)[0] if start < count else line_count(self.now)
            return at, at
        found = [self._line(number) for number in range(start, end)]
        if None not in found:
            spans = [span for span in found if span is not None]
            if all(one[1] + 1 == other[0] for one, other in pairwise(spans)):
                first = self.now.count("\n", 0, spans[0][0])
                return first, first + end - start
        # What stands between the nearest lines that survived on both sides.
        above = next((s for s in map(self._line, range(start - 1, -1, -1)) if s), None)
        below = next((s for s in map(self._line, range(end, count)) if s), None)
        begin = min(above[1] + 1, len(self.now)) if above else 0
        last = below[0] if below else len(self.now)
        raise StaleError(begin, max(begin, last))

    def _line(self, number: int) -> tuple[int, int] | None:
        """Start and end now of a line that has survived."""
        start = self._line_starts[number]
        end = self.before.find("\n", start)
        if end < 0:
            end = len(self.before)
        if start == end:
            newline = self._place(start, start + 1)
            if newline is None or not self._begins_line(newline[0]):
                return None
            return newline[0], newline[0]
        span = self._place(start, end)
        if span is None or not self._begins_line(span[0]):
            return None
        ends_line = span[1] == len(self.now) or self.now[span[1]] == "\n"
        return span if ends_line else None

    def _begins_line(self, at: int) -> bool:
        return at == 0 or self.now[at - 1] == "\n"

    def splice(self, offset: int, deleted: int) -> int:
        """Return the current offset of a splice at `offset` of the earlier version.

        What others have inserted at the place stays before it.

        Raises:
            StaleError: if one of the `deleted` characters is gone or something stands among them.
        """
        if not deleted:
            return self._position(offset)
        span = self._place(offset, offset + deleted)
        if span is None:
            raise StaleError(self._position(offset), self._position(offset + deleted))
        return span[0]

    def _position(self, offset: int) -> int:
        """The offset now of the place before a character, be it there or not."""
        if offset >= len(self.before):
            return len(self.now)
        at = bisect_right(self._starts, offset) - 1
        part = self._parts[at]
        return self._offsets[id(part)] + (offset - self._starts[at] if part.alive else 0)

    def _place(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the range where these characters are now, if they all are, side by side."""
        at = bisect_right(self._starts, start) - 1
        first = reached = self._position(start)
        while at < len(self._parts) and self._starts[at] < end:
            part, begin = self._parts[at], self._starts[at]
            skipped = max(start - begin, 0)
            if not part.alive or self._offsets[id(part)] + skipped != reached:
                return None
            reached += min(end - begin, part.size) - skipped
            at += 1
        return first, reached
