"""Updates in which one client only goes on typing, as one update.

A fast writer sends many such updates at once. Each costs the same to check, to apply and to store,
whether it brings a character or a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from antiphon_kernel.yjs.reader import Reader
from antiphon_kernel.yjs.update import (
    MAX_CLOCK,
    ContentKind,
    DecodedUpdate,
    Struct,
    decode_update,
)
from antiphon_kernel.yjs.update_writer import encode_update
from antiphon_kernel.yjs.utf16 import utf16_length
from antiphon_kernel.yjs.varint import write_var_uint

_ONE: Final = b"\x01"
_NONE: Final = b"\x00"

_PLACES: Final = 8
"""Places from which on they are joined: fewer are undone one by one."""


def merge_insertions(updates: Sequence[bytes]) -> tuple[bytes, int]:
    """An update that says what the first of `updates` says, and those behind it that go on typing.

    Where the client types on is mostly where the one before stopped. If there are so many other
    places that no person has typed them, these are one update too.

    Returns:
        the update, and for how many of `updates` it stands: one at least.
    """
    runs: list[_TypedRun] = []
    for update in updates:
        text = _continuation(update, runs[-1].first, runs[-1].end) if runs else None
        if text is not None:
            runs[-1].texts.append(text)
            runs[-1].end += utf16_length(text)
            continue
        first = _typed(update)
        if first is None:
            break
        if runs and (first.client, first.clock) != (runs[-1].first.client, runs[-1].end):
            break
        runs.append(_TypedRun(first, [str(first.content)], first.clock + first.length))
    if len(runs) < _PLACES:
        del runs[1:]
    count = sum(len(run.texts) for run in runs)
    if count < 2 or runs[-1].end > MAX_CLOCK:
        return updates[0], 1
    return encode_update([run.joined() for run in runs], ()), count


@dataclass(slots=True)
class _TypedRun:
    """Text that was typed on at one place."""

    first: Struct
    texts: list[str]
    end: int

    def joined(self) -> Struct:
        length = self.end - self.first.clock
        return self.first._replace(length=length, content="".join(self.texts))


def _typed(update: bytes) -> Struct | None:
    """The one piece of text that an update brings; None if it brings anything else."""
    try:
        decoded = decode_update(update)
    except ValueError:
        decoded = DecodedUpdate((), ())
    if len(decoded.structs) != 1 or decoded.deletions:
        return None
    [struct] = decoded.structs
    return struct if struct.kind is ContentKind.STRING else None


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
