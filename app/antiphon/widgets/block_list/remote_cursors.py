"""Cursors of everybody else, moved along with the text that arrives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, NamedTuple

from antiphon.render.display import displayable_in_a_row
from antiphon.widgets.block_list.ink import SOONEST
from antiphon.widgets.editor import RemoteCursor
from antiphon_kernel.text.transform import shift_through
from antiphon_kernel.types.clock import Clock
from antiphon_kernel.types.enums import Activity, PrincipalKind
from antiphon_kernel.types.presence import PresenceState, TextPlace
from antiphon_kernel.types.records import TextSplice

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

    def of(self, block: str) -> Sequence[RemoteCursor]:
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

    def is_anybody_in(self, block: str) -> bool:
        return block in self._blocks

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
            has_moved = before is None or _place(before) != _place(state)
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
            offset, anchor = cursor.offset, cursor.anchor
            stick: Literal["left", "right"] = "right" if cursor.streaming else "left"
            offset = shift_through(offset, splices, stick=stick)
            if anchor is not None:
                anchor = shift_through(anchor, splices, stick="left")
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


def _place(state: PresenceState) -> tuple[str | None, int | None, int | None]:
    return state.block, state.cursor, state.anchor


def _cursor(client: int, state: PresenceState, *, has_moved: bool) -> RemoteCursor | None:
    """The cursor to draw; None for one that is nowhere, and for a model that is not writing."""
    if state.cursor is None:
        return None
    streaming = state.activity == Activity.STREAMING
    if state.kind == PrincipalKind.MODEL and not streaming:
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
