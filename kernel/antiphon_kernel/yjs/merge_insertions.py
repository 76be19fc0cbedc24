"""Updates in which one client only goes on typing, as one update.

A fast writer sends many such updates at once. Each costs the same to check, to apply and to store,
whether it brings a character or a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from antiphon_kernel.yjs.reader import Reader
from antiphon_kernel.yjs.update import (
    MAX_CLOCK,
    ContentKind,
    DecodedUpdate,
    Struct,
    decode_single,
)
from antiphon_kernel.yjs.update_writer import encode_struct
from antiphon_kernel.yjs.utf16 import utf16_length
from antiphon_kernel.yjs.varint import write_var_uint

_ONE: Final = b"\x01"
_NONE: Final = b"\x00"

_PLACES: Final = 4
"""Places from which on they are joined: fewer are undone one by one."""


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
