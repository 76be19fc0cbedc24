"""Joining many small updates, or many small items of one, into few.

A fast writer sends many updates at once in which one client only goes on typing. Each costs the
same to check, to apply and to store, whether it brings a character or a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, cast

from pycrdt import merge_updates

from antiphon_kernel.yjs.id_set import normalise
from antiphon_kernel.yjs.update import (
    ContentKind,
    DecodedUpdate,
    ItemId,
    Struct,
    decode_single,
)
from antiphon_kernel.yjs.update_writer import encode_update

FAN_IN: Final = 100
"""How many updates are merged at once: the engine's cost grows with the square of it."""

_JOINED: Final = (ContentKind.STRING, ContentKind.DELETED, ContentKind.ANY, ContentKind.GC)
"""Kinds of items that continue others."""

_PLACES: Final = 4
"""Places from which on they are joined: fewer are undone one by one."""


def merge(updates: Sequence[bytes]) -> bytes:
    """One update that says what all of `updates` (at least one) say."""
    level = list(updates)
    while len(level) > 1:
        level = [
            merge_updates(*group) if len(group) > 1 else group[0]
            for group in (level[at : at + FAN_IN] for at in range(0, len(level), FAN_IN))
        ]
    return level[0]


class MergedUpdate(NamedTuple):
    """Update that stands for several."""

    update: bytes
    updates: int = 1
    """For how many it stands."""
    decoded: DecodedUpdate | None = None
    """All that it says, if that is known."""


def merge_insertions(updates: Sequence[bytes]) -> MergedUpdate:
    """An update that says what the first of `updates` says, and those behind it that go on typing.

    Where the client types on is mostly where the one before stopped. If there are so many other
    places that no person has typed them, these are one update too.
    """
    runs: list[list[Struct]] = []
    for update in updates:
        try:
            typed = decode_single(update)
        except ValueError:
            break
        if typed is None or typed.kind is not ContentKind.STRING:
            break
        last = runs[-1][-1] if runs else None
        if last and (typed.client, typed.clock) != (last.client, last.clock + last.length):
            break
        if last and _continues(last, typed):
            runs[-1].append(typed)
        else:
            runs.append([typed])
    if len(runs) < _PLACES:
        del runs[1:]
    count = sum(map(len, runs))
    if count < 2:
        return MergedUpdate(updates[0])
    structs = tuple(map(_join, runs))
    return MergedUpdate(encode_update(structs, ()), count, DecodedUpdate(structs, ()))


def continuations(structs: Iterable[Struct]) -> int:
    """Count the structs that continue the one before them."""
    return sum(_continues(one, later) for one, later in pairwise(structs))


def squash(decoded: DecodedUpdate) -> bytes:
    """The same update, with every struct that continues another joined to it.

    Engines join such items one at a time, each time copying all that has been joined: an update of
    300 KB in single characters costs seconds and gigabytes there, and milliseconds here.
    """
    joined: list[Struct] = []
    run: list[Struct] = []
    for one in decoded.structs:
        if run and not _continues(run[-1], one):
            joined.append(_join(run))
            run.clear()
        run.append(one)
    if run:
        joined.append(_join(run))
    return encode_update(joined, normalise(decoded.deletions))


def _continues(one: Struct, later: Struct) -> bool:
    if one.client != later.client or one.kind is not later.kind or one.kind not in _JOINED:
        return False
    if one.kind is ContentKind.GC:
        return True
    last = ItemId(one.client, one.clock + one.length - 1)
    return later.origin == last and later.right_origin == one.right_origin


def _join(run: list[Struct]) -> Struct:
    first = run[0]
    if len(run) == 1:
        return first
    content: object = None
    if first.kind is ContentKind.STRING:
        content = "".join(str(one.content) for one in run)
    elif first.kind is ContentKind.ANY:
        content = tuple(value for one in run for value in cast("tuple[object, ...]", one.content))
    return first._replace(length=sum(one.length for one in run), content=content)
