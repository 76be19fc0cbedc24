"""Joining many small updates, or many small items of one, into few.

A fast writer sends many updates at once in which one client only goes on typing. Each costs the
same to check, to apply and to store, whether it brings a character or a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, cast

from pycrdt import merge_updates

from antiphon_kernel.yjs.id_set import normalise
from antiphon_kernel.yjs.primitives import Reader, write_var_uint
from antiphon_kernel.yjs.update import (
    MAX_CLOCK,
    ContentKind,
    DecodedUpdate,
    ItemId,
    Struct,
    decode_single,
    utf16_length,
)
from antiphon_kernel.yjs.update_writer import encode_struct, encode_update

FAN_IN: Final = 100
"""How many updates are merged at once: the engine's cost grows with the square of it."""

_ONE: Final = b"\x01"
_NONE: Final = b"\x00"

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
    runs: list[_TypedRun] = []
    for update in updates:
        run = runs[-1] if runs else None
        if run is not None and (run.texts or len(runs) == 1):
            text = _continuation(update, run.first, run.end)
            if text is not None:
                run.type_on(text)
                continue
        try:
            single = decode_single(update)
        except ValueError:
            break
        if single is None or single[0].kind is not ContentKind.STRING:
            break
        first, written = single
        if run is not None:
            if first.client != run.first.client or first.clock != run.end:
                break
            origin = first.origin
            if origin is not None and origin.clock == run.end - 1:
                is_same = first.right_origin == run.first.right_origin
                if is_same and origin.client == first.client:
                    run.type_on(str(first.content))
                    continue
        runs.append(_TypedRun(first, written, first.clock + first.length))
    if len(runs) < _PLACES:
        del runs[1:]
    count = sum(1 + len(run.texts) for run in runs)
    if count < 2 or runs[-1].end > MAX_CLOCK:
        return MergedUpdate(updates[0])
    for run in runs:
        run.join()
    begin = map(write_var_uint, (1, len(runs), runs[0].first.client, runs[0].first.clock))
    update = b"".join((*begin, *[run.written for run in runs], _NONE))
    return MergedUpdate(update, count, DecodedUpdate(tuple([run.first for run in runs]), ()))


@dataclass(slots=True)
class _TypedRun:
    """Text that was typed on at one place."""

    first: Struct
    written: bytes
    """The first struct as it stands in an update."""
    end: int
    texts: list[str] = field(default_factory=list)
    """The texts behind the first."""

    def type_on(self, text: str) -> None:
        """Add text behind the last."""
        self.texts.append(text)
        self.end += utf16_length(text)

    def join(self) -> None:
        """Make the first struct one for all of it."""
        if self.texts:
            content = "".join((str(self.first.content), *self.texts))
            length = self.end - self.first.clock
            self.first = self.first._replace(length=length, content=content)
            self.written = encode_struct(self.first)


def _continuation(update: bytes, first: Struct, end: int) -> str | None:
    """The text of an update that types on at clock `end`; None if it does anything else."""
    client = write_var_uint(first.client)
    start = b"".join((_ONE, _ONE, client, write_var_uint(end)))
    last = client + write_var_uint(end - 1)
    if first.right_origin is None:
        start += bytes((ContentKind.STRING | 0x80,)) + last
    else:
        after = write_var_uint(first.right_origin.client), write_var_uint(first.right_origin.clock)
        start += b"".join((bytes((ContentKind.STRING | 0xC0,)), last, *after))
    if not update.startswith(start) or not update.endswith(_NONE):
        return None
    reader = Reader(update[len(start) : -1])
    try:
        text = reader.text()
        reader.end()
    except ValueError:
        return None
    return text or None


def continuations(structs: Iterable[Struct]) -> int:
    """Count the structs that continue the one before them."""
    count = 0
    before: Struct | None = None
    for one in structs:
        if before is not None and _continues(before, one):
            count += 1
        before = one
    return count


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
