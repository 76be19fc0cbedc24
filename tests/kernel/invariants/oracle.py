"""Expected text of a context, from who wrote what and what has been undone.

Each character has one unit that created it and a set of units that deleted it. It is visible if
the first is active and none of the others is; undo and redo turn units. Which characters came and
went in a transaction is taken from the journal, so following it also proves what is on disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from tests.kernel.invariants.crdt import Effect, Item, Model


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
