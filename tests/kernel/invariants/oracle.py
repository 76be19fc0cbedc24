"""Expected text of a context, from who wrote what and what has been undone.

Each character has one unit that created it and a set of units that deleted it. It is visible if
the first is active and none of the others is; undo and redo turn units. Which characters came and
went in a transaction is taken from the journal, so following it also proves what is on disk.

A `Model` reads it: the Yjs text algorithm in the plainest Python, unit by unit. It reads the same
updates as the kernel and shares nothing with the engine. One item is one UTF-16 unit; deleted items
stay, so that the place of every character that ever was is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from antiphon_kernel.yjs.update import (
    ContentKind,
    ItemId,
    SharedType,
    Struct,
    decode_update,
)


@dataclass(eq=False, slots=True)
class Item:
    """One UTF-16 unit of a text, or one thing that is no character."""

    id: ItemId
    origin: ItemId | None
    right_origin: ItemId | None
    text: Sequence | None
    """The text it stands in; None for what is no part of a text."""
    value: str
    """The character; empty for the second half of one, and for what is no character."""
    deleted: bool = False
    left: Item | None = None
    right: Item | None = None


class Sequence:
    """The items of one text, in order."""

    def __init__(self, block: str) -> None:
        self.block = block
        self.first: Item | None = None

    def items(self) -> Iterator[Item]:
        at = self.first
        while at is not None:
            yield at
            at = at.right

    def visible(self) -> list[Item]:
        return [item for item in self.items() if item.value and not item.deleted]

    def text(self) -> str:
        return "".join(item.value for item in self.visible())


@dataclass(frozen=True, slots=True)
class Effect:
    """Characters that one update made and removed."""

    inserted: list[Item] = field(default_factory=list)
    deleted: list[Item] = field(default_factory=list)


class Model:
    """The texts of one document."""

    def __init__(self) -> None:
        self.texts: dict[str, Sequence] = {}
        self._items: dict[ItemId, Item] = {}
        self._state: dict[int, int] = {}
        self._blocks: dict[ItemId, str] = {}
        self._sequences: dict[ItemId, Sequence] = {}

    @property
    def state(self) -> dict[int, int]:
        """Client id to next clock."""
        return dict(self._state)

    def apply(self, update: bytes) -> Effect:
        """Follow an update; everything it builds on must be known.

        Raises:
            ValueError: if something it builds on is missing.
        """
        decoded = decode_update(update)
        effect = Effect()
        waiting = [one for one in decoded.structs if one.kind is not ContentKind.SKIP]
        while waiting:
            left = [one for one in waiting if not self._integrate(one, effect)]
            if len(left) == len(waiting):
                raise ValueError(f"an update with a gap: {left[0]}")
            waiting = left
        for client, start, end in decoded.deletions:
            for clock in range(start, end):
                item = self._items.get(ItemId(client, clock))
                if item is None:
                    raise ValueError(f"an update deletes the unknown item {client}:{clock}")
                if not item.deleted:
                    item.deleted = True
                    if item.value:
                        effect.deleted.append(item)
        new = set(map(id, effect.inserted))
        return Effect(
            [one for one in effect.inserted if not one.deleted],
            [one for one in effect.deleted if id(one) not in new],
        )

    def _integrate(self, struct: Struct, effect: Effect) -> bool:
        """Take one struct in; False if something it builds on has not come yet."""
        known = self._state.get(struct.client, 0)
        if struct.clock > known:
            return False
        if struct.clock + struct.length <= known:
            return True
        for one in (struct.origin, struct.right_origin, struct.parent):
            if isinstance(one, ItemId) and one not in self._items:
                return False
        text = self._text_of(struct)
        for at, value in enumerate(_units(struct)):
            here = ItemId(struct.client, struct.clock + at)
            if here in self._items:
                continue
            origin = ItemId(struct.client, here.clock - 1) if at else struct.origin
            item = Item(here, origin, struct.right_origin, text, value)
            item.deleted = struct.kind is ContentKind.DELETED
            self._items[here] = item
            if text is not None:
                self._place(item, text)
                if item.value:
                    effect.inserted.append(item)
        self._state[struct.client] = struct.clock + struct.length
        return True

    def _text_of(self, struct: Struct) -> Sequence | None:
        own = ItemId(struct.client, struct.clock)
        if struct.parent == "blocks" and struct.key is not None:
            self._blocks[own] = struct.key
            return None
        if isinstance(struct.parent, ItemId):
            block = self._blocks.get(struct.parent)
            if block is not None and struct.content is SharedType.TEXT:
                self._sequences[own] = self.texts[block] = Sequence(block)
                return None
            return self._sequences.get(struct.parent) if struct.key is None else None
        for beside in (struct.origin, struct.right_origin):
            if beside is not None:
                return self._items[beside].text
        return None

    def _place(self, item: Item, text: Sequence) -> None:
        """Yjs' rule for items that were written at one place at the same time."""
        left = self._items[item.origin] if item.origin is not None else None
        stop = self._items[item.right_origin] if item.right_origin is not None else None
        at = left.right if left is not None else text.first
        passed: set[ItemId] = set()
        rivals: set[ItemId] = set()
        while at is not None and at is not stop:
            passed.add(at.id)
            rivals.add(at.id)
            if at.origin == item.origin:
                if at.id.client < item.id.client:
                    left = at
                    rivals.clear()
                elif at.right_origin == item.right_origin:
                    break
            elif at.origin is not None and at.origin in passed:
                if at.origin not in rivals:
                    left = at
                    rivals.clear()
            else:
                break
            at = at.right
        item.left = left
        if left is None:
            item.right, text.first = text.first, item
        else:
            item.right, left.right = left.right, item
        if item.right is not None:
            item.right.left = item


def _units(struct: Struct) -> list[str]:
    if struct.kind is not ContentKind.STRING:
        return [""] * struct.length
    units: list[str] = []
    for char in str(struct.content):
        units.append(char)
        if ord(char) > 0xFFFF:
            units.append("")
    return units


class Violation(AssertionError):
    """An invariant does not hold."""


@dataclass(frozen=True, slots=True)
class Op:
    """One row of the journal."""

    seq: int
    time: int
    principal: str
    session: str
    operation: str
    unit: int | None
    versions: dict[str, int]
    """Block to the version this transaction made."""
    update: bytes


@dataclass(eq=False, slots=True)
class Unit:
    """Changes that are undone at once."""

    number: int
    principal: str
    block: str
    active: bool = True


@dataclass(eq=False, slots=True)
class Char:
    """One character that was typed once, however often it has gone and come back."""

    value: str
    block: str
    op: Op
    """The transaction in which it was typed."""
    created: Unit | None
    """None if it cannot be undone."""
    first: Item
    """As it was typed."""
    item: Item
    """Its last incarnation."""
    bit: int
    deleted: set[Unit] = field(default_factory=set)
    gone: bool = False
    """Deleted by something that cannot be undone."""
    before: int = 0
    """Bits of the characters of its block that have been seen to the left of it."""

    @property
    def principal(self) -> str:
        return self.op.principal

    @property
    def visible(self) -> bool:
        created = self.created is None or self.created.active
        return created and not self.gone and not any(unit.active for unit in self.deleted)


class Oracle:
    """Follows the journal of one context and says what must be."""

    def __init__(self, is_draft: Callable[[str], bool]) -> None:
        """`is_draft`: whether a block is a draft, which is undone only if it is named."""
        self._is_draft = is_draft
        self.model = Model()
        self.chars: dict[str, list[Char]] = {}
        """Every character of each block, in the order of their first appearance."""
        self.versions: dict[str, dict[int, list[Char]]] = {}
        """The text of each block at each of its versions."""
        self.changes: dict[str, list[Op]] = {}
        """The transactions that touched each block."""
        self.seq = 0
        self.units: dict[tuple[int, str], Unit] = {}
        self._of: dict[Item, Char] = {}
        self._undo: dict[str, list[Unit]] = {}
        self._redo: dict[str, list[Unit]] = {}

    # What must be

    def text(self, block: str) -> str:
        sequence = self.model.texts.get(block)
        return sequence.text() if sequence is not None else ""

    def visible(self, block: str) -> list[Char]:
        sequence = self.model.texts.get(block)
        return [self._of[item] for item in sequence.visible()] if sequence is not None else []

    def blocks(self) -> list[str]:
        return list(self.model.texts)

    def can_turn(self, principal: str, stack: str, block: str | None) -> bool:
        """Whether an undo (or redo) of this principal has anything to change."""
        return self._target(principal, stack, block) is not None

    def turned_blocks(self, principal: str, stack: str, block: str | None) -> tuple[str, ...]:
        """The block of the unit that an undo (or redo) of this principal would turn."""
        unit = self._target(principal, stack, block)
        return (unit.block,) if unit is not None else ()

    def _all(self) -> Iterator[Char]:
        for chars in self.chars.values():
            yield from chars

    # Following the journal

    def follow(self, op: Op, turn: tuple[str, str | None] | None = None) -> None:
        """Take one transaction in.

        Args:
            turn: for an undo or redo: whose, and within which block.

        Raises:
            Violation: if it did what it must not.
        """
        if op.seq != self.seq + 1:
            raise Violation(f"seq {op.seq} follows {self.seq}")
        self.seq = op.seq
        effect = self.model.apply(op.update)
        if op.operation in ("undo", "redo"):
            if turn is None:
                raise Violation(f"nobody asked for the {op.operation} of seq {op.seq}")
            self._follow_turn(op, effect, *turn)
        else:
            self._follow_edit(op, effect)
        for block in {item.text.block for item in _both(effect) if item.text is not None}:
            self.check(block, f"after {op.operation}, seq {op.seq}")
        for block, version in op.versions.items():
            self.versions.setdefault(block, {})[version] = self.visible(block)
            self.changes.setdefault(block, []).append(op)

    def _follow_edit(self, op: Op, effect: Effect) -> None:
        units = self._units_of(op)
        for item in effect.inserted:
            assert item.text is not None
            block = item.text.block
            unit = units.get(block)
            chars = self.chars.setdefault(block, [])
            char = Char(item.value, block, op, unit, item, item, 1 << len(chars))
            chars.append(char)
            self._of[item] = char
        for item in effect.deleted:
            char = self._of[item]
            unit = units.get(char.block)
            if unit is None:
                char.gone = True
            else:
                char.deleted.add(unit)

    def _units_of(self, op: Op) -> dict[str, Unit]:
        """Return the unit of each block that a transaction has touched."""
        if op.unit is None:
            return {}
        for undone in self._redo.pop(op.principal, []):
            undone.active = False
        return {block: self._unit(op, op.unit, block) for block in sorted(op.versions)}

    def _unit(self, op: Op, number: int, block: str) -> Unit:
        unit = self.units.get((number, block))
        if unit is None:
            if number != op.seq:
                raise Violation(f"seq {op.seq} continues unit {number}, which is of another block")
            unit = self.units[number, block] = Unit(number, op.principal, block)
            self._undo.setdefault(op.principal, []).append(unit)
        if unit.principal != op.principal:
            raise Violation(f"unit {number} of {unit.principal} is continued by {op.principal}")
        if not unit.active:
            raise Violation(f"seq {op.seq} continues unit {number}, which has been undone")
        return unit

    def _follow_turn(self, op: Op, effect: Effect, whose: str, block: str | None) -> None:
        expected = self.turn(whose, op.operation, block)
        if expected is None:
            raise Violation(f"seq {op.seq}: an {op.operation} where there is nothing to turn")
        unit, on, off = expected
        where = f"{op.operation} of unit {unit.number}, seq {op.seq}"
        if op.unit != unit.number or set(op.versions) != {unit.block}:
            raise Violation(f"{where}: the journal says unit {op.unit} of {set(op.versions)}")
        removed = {self._of[item] for item in effect.deleted}
        if removed != set(off):
            raise Violation(
                f"{where}: removed {_show(removed - set(off))} which must stay,"
                f" left {_show(set(off) - removed)} which must go"
            )
        places = {
            item: at
            for text in {char.item.text for char in on if char.item.text is not None}
            for at, item in enumerate(text.items())
        }
        back = sorted(on, key=lambda char: (char.block, places[char.item]))
        places = {
            item: at
            for text in {item.text for item in effect.inserted if item.text is not None}
            for at, item in enumerate(text.items())
        }
        came = sorted(effect.inserted, key=lambda i: (i.text.block if i.text else "", places[i]))
        if [item.value for item in came] != [char.value for char in back]:
            same = Counter(item.value for item in came) == Counter(char.value for char in back)
            raise Violation(
                f"{where}: {_show(back)} must come back, {[item.value for item in came]!r} came"
                + (" (in another order)" if same else "")
            )
        for char, item in zip(back, came, strict=True):
            char.item = item
            self._of[item] = char

    def turn(
        self, principal: str, stack: str, block: str | None
    ) -> tuple[Unit, list[Char], list[Char]] | None:
        """Turn the unit that an undo (or redo) must turn.

        That is the last one that still changes something (in `block`, if one is named): one whose
        text others have removed keeps its place. Returns the unit, what comes back, and what goes;
        None if there is none.
        """
        unit = self._target(principal, stack, block)
        if unit is None:
            return None
        before = {char for char in self._all() if char.visible}
        unit.active = stack == "redo"
        after = {char for char in self._all() if char.visible}
        own, other = (self._undo, self._redo) if stack == "undo" else (self._redo, self._undo)
        own[principal].remove(unit)
        other.setdefault(principal, []).append(unit)
        return unit, list(after - before), list(before - after)

    def _target(self, principal: str, stack: str, block: str | None) -> Unit | None:
        chars = list(self._all()) if block is None else self.chars.get(block, [])
        before = [char.visible for char in chars]
        for unit in reversed((self._undo if stack == "undo" else self._redo).get(principal, [])):
            if unit.block != block and (block is not None or self._is_draft(unit.block)):
                continue
            unit.active = stack == "redo"
            changes = [char.visible for char in chars] != before
            unit.active = stack == "undo"
            if changes:
                return unit
        return None

    def check(self, block: str, when: str) -> None:
        """Exactly the characters that must be there are, in the order they have always had.

        Raises:
            Violation: if not.
        """
        there = self.visible(block)
        due = {char for char in self.chars.get(block, []) if char.visible}
        if set(there) != due:
            raise Violation(
                f"{when}: {_show(due - set(there))} is missing, {_show(set(there) - due)} is there"
            )
        left = 0
        after = 0
        for char in reversed(there):
            if char.before & after:
                raise Violation(
                    f"{when}: {char.value!r} has changed places in {self.text(block)!r}"
                )
            after |= char.bit
        for char in there:
            char.before |= left
            left |= char.bit


def _both(effect: Effect) -> Iterator[Item]:
    yield from effect.inserted
    yield from effect.deleted


def _show(chars: Iterable[Char]) -> str:
    return repr("".join(char.value for char in chars))
