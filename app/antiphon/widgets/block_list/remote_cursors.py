"""Text that others have just written, and their cursors, moved along with the text that arrives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, NamedTuple

from antiphon.render.cell_theme import INK_STEPS
from antiphon.render.display import displayable_in_a_row
from antiphon.widgets.editor import InkRange, RemoteCursor
from antiphon_kernel.document.changes import TextChange
from antiphon_kernel.text.transform import shift_through
from antiphon_kernel.types.clock import Clock
from antiphon_kernel.types.enums import ANSWERING_KINDS, Activity, BlockKind, Status
from antiphon_kernel.types.presence import PresenceState, TextPlace
from antiphon_kernel.types.records import BlockHeader, TextSplice

INK_SECONDS: Final = 2.0
"""How long new text is drawn differently."""

STEP_SECONDS: Final = INK_SECONDS / INK_STEPS

_TOGETHER: Final = 0.25
"""Text that came within so many seconds fades together."""

SOONEST: Final = 0.01
"""A timer of Textual divides by its time, and never calls if it is late when it begins."""

_MOST: Final = 64
"""Ranges that one block has at most; the oldest go first."""


_WRITTEN: Final = frozenset({BlockKind.TEXT, BlockKind.THINKING, BlockKind.FILE})
"""Kinds of blocks that people and models write, as opposed to what commands print."""

_BULK_TEXT: Final = 4000
"""So many characters at once were not written a moment ago, but brought from elsewhere."""

_FLASH_SECONDS: Final = 3.0
"""How long it may take from an undo to its change."""

_FLASH_AROUND: Final = 8
"""Characters on both sides of removed text that are shown as changed."""


class _Written(NamedTuple):
    start: int
    end: int
    colour: int | None
    at: float


class Ink:
    """Ranges of new text by block, carried along with what is written around them."""

    def __init__(self, clock: Clock) -> None:
        self.is_shown = True
        """New text of others is told apart for a moment."""
        self._clock = clock
        self._blocks: dict[str, list[_Written]] = {}
        self._flashing: dict[str, float] = {}
        """Blocks whose next change is shown whoever made it, and until when it may come."""

    def of(self, block: str) -> tuple[InkRange, ...]:
        """Return the new text of a block as it is now, in order and apart."""
        written = self._blocks.get(block)
        if not written or not self.is_shown:
            return ()
        now = self._clock.monotonic()
        aged = ((one, int((now - one.at) / STEP_SECONDS)) for one in written)
        return tuple(
            InkRange(one.start, one.end, one.colour, step) for one, step in aged if step < INK_STEPS
        )

    def flash(self, block: str) -> None:
        """Show what the next change of a block changes, though a person here has asked for it."""
        self._flashing[block] = self._clock.monotonic() + _FLASH_SECONDS

    def follow(
        self,
        change: TextChange,
        header: BlockHeader | None,
        length: int,
        colour_at: Callable[[str, int], int | None],
        text_of: Callable[[str], str],
    ) -> None:
        """Carry new text along; mark what has come now, if somebody has just written it.

        Args:
            header: of the block; None if nothing of the change is marked.
            length: of its text before the change, in code points.
            colour_at: who seems to have written at a place of a block.
        """
        block = change.block
        is_new = header is not None and header.kind in _WRITTEN
        is_running = header is not None and header.status == Status.RUNNING
        is_flash = is_new and self._flashing.get(block, 0.0) >= self._clock.monotonic()
        for splice in change.splices:
            start, end = splice.offset, splice.offset + len(splice.inserted)
            colour = colour_at(block, start)
            self.carry(block, splice)
            is_append = is_running and start == length and not splice.deleted
            length += end - start - splice.deleted
            if not is_new or end - start > _BULK_TEXT:
                continue
            if is_flash and not is_append:
                self._flashing.pop(block, None)
                colour = None
                if not splice.inserted:
                    # The text beside the place, within its line.
                    text, at = text_of(block), start
                    start = max(text.rfind("\n", 0, at) + 1, at - _FLASH_AROUND)
                    end = at + len(text[at : at + _FLASH_AROUND].partition("\n")[0])
            self.add(block, start, end, colour)

    def carry(self, block: str, splice: TextSplice) -> None:
        written = [part for one in self._blocks.pop(block, ()) for part in _carried(one, splice)]
        if written:
            self._blocks[block] = written

    def add(self, block: str, start: int, end: int, colour: int | None) -> None:
        """Mark text that is there already as new."""
        if start >= end:
            return
        at = self._clock.monotonic() // _TOGETHER * _TOGETHER
        written = self._blocks.setdefault(block, [])
        if written and written[-1] == (written[-1].start, start, colour, at):
            written[-1] = written[-1]._replace(end=end)
            return
        rest = [part for one in written for part in _without(one, start, end)]
        self._blocks[block] = sorted([*rest, _Written(start, end, colour, at)])[-_MOST:]

    @property
    def next_fade(self) -> float | None:
        """Seconds until something looks older; None if nothing does."""
        now = self._clock.monotonic()
        ages = [now - one.at for written in self._blocks.values() for one in written]
        next_step = min((STEP_SECONDS - age % STEP_SECONDS for age in ages), default=None)
        return None if next_step is None else max(SOONEST, next_step)

    def fade(self) -> set[str]:
        """Let go of what is not new any more; returns the blocks that look different."""
        touched = set(self._blocks)
        oldest = self._clock.monotonic() - INK_SECONDS
        kept = {
            block: [one for one in written if one.at > oldest]
            for block, written in self._blocks.items()
        }
        self._blocks = {block: written for block, written in kept.items() if written}
        return touched


def _carried(one: _Written, splice: TextSplice) -> Iterator[_Written]:
    """Yield what a splice leaves of new text: what it inserts is no part of it."""
    end = splice.offset + splice.deleted
    for part in _without(one, splice.offset, end):
        grown = len(splice.inserted) - splice.deleted if part.start >= end else 0
        yield part._replace(start=part.start + grown, end=part.end + grown)


def _without(one: _Written, start: int, end: int) -> Iterator[_Written]:
    if one.start < min(one.end, start):
        yield one._replace(end=min(one.end, start))
    if max(one.start, end) < one.end:
        yield one._replace(start=max(one.start, end))


FLAG_SECONDS: Final = 1.0
"""How long after its last movement the name of a cursor may cover text."""

_POINTER: Final = "▾"

_LATE_CHARACTERS: Final = 64
"""So far from its cursor may be what somebody has written of whom it is not known yet."""


class Writer(NamedTuple):
    """Somebody who is writing, and the block they are writing in."""

    block: str
    cursor: RemoteCursor


class RemoteCursors:
    """Cursors by block. A person's stays left of text that others insert at it, a model's right."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._moved_at: dict[int, float] = {}
        """Of the cursors that have moved a moment ago."""
        self._reported: dict[int, PresenceState] = {}
        self._blocks: dict[str, dict[int, RemoteCursor]] = {}
        self._pointers: dict[int, TextPlace] = {}
        self._writers: dict[int, str] = {}
        """Blocks of those who are writing, who has begun last at the end."""

    def writers(self) -> list[Writer]:
        """Return those who are writing, who has begun last first."""
        return [
            Writer(block, self._blocks[block][client])
            for client, block in reversed(self._writers.items())
        ]

    def of(self, block: str) -> tuple[RemoteCursor, ...]:
        return tuple(self._blocks.get(block, {}).values())

    def places(self) -> Iterator[tuple[str, int, int]]:
        """Yield the block, the offset and the colour of everybody who is in a block."""
        for block, cursors in self._blocks.items():
            for cursor in cursors.values():
                yield block, cursor.offset, cursor.colour
        for state in self._reported.values():
            if state.block is not None and state.cursor is None:
                yield state.block, 0, state.colour

    def colour_at(self, block: str, offset: int) -> int | None:
        """Return the colour of who seems to have written at a place; None if nobody is there."""

        def rank(one: RemoteCursor) -> tuple[bool, bool, int]:
            # That somebody has begun to write is told behind their first text.
            distance = abs(one.offset - offset)
            return distance > _LATE_CHARACTERS, not one.is_writing, distance

        cursors = [one for one in self._blocks.get(block, {}).values() if one.client >= 0]
        nearest = min(cursors, key=rank, default=None)
        if nearest is None or rank(nearest)[:2] == (True, True):
            return None
        return nearest.colour

    @property
    def next_fade(self) -> float | None:
        """Seconds until a cursor has not moved for a while; None if none has moved lately."""
        first = min(self._moved_at.values(), default=None)
        if first is None:
            return None
        return max(SOONEST, first + FLAG_SECONDS - self._clock.monotonic())

    def fade(self) -> set[str]:
        """Return the blocks with cursors whose last movement has become old."""
        old = self._clock.monotonic() - FLAG_SECONDS
        faded = {client for client, moved in self._moved_at.items() if moved <= old}
        touched = set()
        for client in faded:
            del self._moved_at[client]
        for block, cursors in self._blocks.items():
            for client in cursors.keys() & faded:
                cursors[client] = replace(cursors[client], has_moved=False)
                touched.add(block)
        return touched

    def move_to_end(self, block: str, length: int) -> None:
        """The text of a block changed in a way that is not known: append points are at its end."""
        cursors = self._blocks.get(block, {})
        for client, cursor in cursors.items():
            offset = length if cursor.streaming else min(cursor.offset, length)
            cursors[client] = replace(cursor, offset=offset)

    def update_presence(self, states: Mapping[int, PresenceState]) -> tuple[set[str], bool]:
        """Return the blocks that look different now, and whether that is all the doing of models.

        A state that says the same as before is not news: its cursor has moved on with the text.
        """
        touched: set[str] = set()
        only_models = True
        for client in [client for client in self._reported if client not in states]:
            only_models = False
            touched |= self._drop(client) | self.point(client, None)
            self._moved_at.pop(client, None)
            self._writers.pop(client, None)
        for client, state in states.items():
            state = replace(state, view=None)
            if self._reported.get(client) == state:
                continue
            touched |= self.point(
                client, state.pointer, displayable_in_a_row(state.username), state.colour
            )
            only_models = only_models and state.activity == Activity.STREAMING
            before = self._reported.get(client)
            place = state.block, state.cursor, state.anchor
            has_moved = before is None or (before.block, before.cursor, before.anchor) != place
            shown = self._blocks.get(state.block or "", {}).get(client)
            # Who says where the cursor has come to with the text has not moved it.
            if shown is not None and (shown.offset, shown.anchor or shown.offset) == (
                state.cursor,
                state.anchor or state.cursor,
            ):
                has_moved = False
            if has_moved:
                self._moved_at.pop(client, None)
            touched |= self._drop(client)
            self._reported[client] = state
            cursor = _cursor(client, state, has_moved=has_moved or client in self._moved_at)
            if cursor is not None and state.block is not None:
                if cursor.has_moved and has_moved:
                    self._moved_at[client] = self._clock.monotonic()
                self._blocks.setdefault(state.block, {})[client] = cursor
                touched.add(state.block)
            if cursor is not None and cursor.is_writing and state.block is not None:
                self._writers[client] = state.block
            else:
                self._writers.pop(client, None)
        return touched, only_models

    def point(
        self, client: int, place: TextPlace | None, name: str = "", colour: int = 0
    ) -> set[str]:
        """Mark the text that somebody points at; return the blocks that look different."""
        before = self._pointers.get(client)
        if before == place:
            return set()
        mark, touched = -1 - client, set[str]()
        if before is not None:
            del self._pointers[client]
            touched |= self._remove(before.block, mark)
        if place is not None:
            self._pointers[client] = place
            cursor = RemoteCursor(
                mark, "", f"{_POINTER} {name}", colour, place.start, place.end, has_moved=True
            )
            self._blocks.setdefault(place.block, {})[mark] = cursor
            touched.add(place.block)
        return touched

    def shift(self, block: str, splices: Sequence[TextSplice]) -> None:
        cursors = self._blocks.get(block, {})
        for client, cursor in cursors.items():
            stick: Literal["left", "right"] = "right" if cursor.streaming else "left"
            offset = shift_through(cursor.offset, splices, stick=stick)
            anchor = cursor.anchor and shift_through(cursor.anchor, splices, stick="left")
            cursors[client] = replace(cursor, offset=offset, anchor=anchor)

    def _drop(self, client: int) -> set[str]:
        state = self._reported.pop(client, None)
        return set() if state is None or state.block is None else self._remove(state.block, client)

    def _remove(self, block: str, client: int) -> set[str]:
        cursors = self._blocks.get(block)
        if cursors is None or cursors.pop(client, None) is None:
            return set()
        if not cursors:
            del self._blocks[block]
        return {block}


def _cursor(client: int, state: PresenceState, *, has_moved: bool) -> RemoteCursor | None:
    """The cursor to draw; None for one that is nowhere, and for a model that is not writing."""
    if state.cursor is None:
        return None
    streaming = state.activity == Activity.STREAMING
    if state.kind in ANSWERING_KINDS and not streaming:
        return None
    return RemoteCursor(
        client=client,
        principal=state.principal,
        username=displayable_in_a_row(state.username),
        colour=state.colour,
        offset=state.cursor,
        anchor=state.anchor if state.anchor != state.cursor else None,
        streaming=streaming,
        # Names of those who write on and on would cover text all the time.
        has_moved=has_moved and not streaming,
        is_writing=state.activity in (Activity.STREAMING, Activity.TYPING),
    )
