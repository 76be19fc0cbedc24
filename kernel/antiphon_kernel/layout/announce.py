"""Announcement to a model before each of its requests: never stored, never cached."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from antiphon_kernel.types.clock import iso_time

_RANGES_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class BudgetShare:
    """Part of a budget that is used: of tokens, money or seconds."""

    used: float
    limit: float
    unit: str
    """`tokens`, `USD`, `s`."""


@dataclass(frozen=True, slots=True)
class PresentReader:
    """Somebody who is here beside the model."""

    name: str
    place: str | None = None
    """Path or name of the block they are in."""
    activity: str | None = None
    """Their activity there: `typing`, `streaming`."""


@dataclass(frozen=True, slots=True)
class ChangedLines:
    """Lines of a text as it is now, counted from 0, both included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ChangedBlock:
    """Part of one block that one author has changed."""

    place: str
    """Path or name of the block."""
    author: str
    lines: tuple[ChangedLines, ...] = ()
    """Lines with text that is new, and lines in or before which text was removed; none of a content
    that is no text."""
    removed: int = 0
    """Code points that were removed."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """State of a turn and of its context at one moment."""

    time: int
    """Milliseconds since the epoch."""
    round: int | None = None
    """Number of the round that begins, from 1."""
    max_rounds: int | None = None
    budget: tuple[BudgetShare, ...] = ()
    present: tuple[PresentReader, ...] = ()
    changes: tuple[ChangedBlock, ...] = ()
    """Changes by others since the model last looked, of blocks that it had read."""
    unlisted: int = 0
    """Further blocks that others have changed."""


def announcement_text(announced: Announcement) -> str:
    """Return an announcement as models read it."""
    lines = ["[ANNOUNCE]", f"time: {iso_time(announced.time)}"]
    if announced.round is not None:
        of = f" of {announced.max_rounds}" if announced.max_rounds is not None else ""
        lines.append(f"round: {announced.round}{of}")
    if announced.budget:
        lines.append(f"budget: {', '.join(map(_share, announced.budget))}")
    lines.append(f"here: {', '.join(map(_reader, announced.present)) or 'nobody else'}")
    if announced.changes:
        lines.append("changed by others since you last looked (lines count from 0):")
        lines += [f"- {_change(one)}" for one in announced.changes]
        if announced.unlisted:
            lines.append(f"- and {announced.unlisted} more blocks")
    return "\n".join(lines)


def _share(share: BudgetShare) -> str:
    return f"{_number(share.used)} of {_number(share.limit)} {share.unit}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.4f}".rstrip("0")


def _reader(reader: PresentReader) -> str:
    if reader.place is None:
        return reader.name
    activity = f"{reader.activity} " if reader.activity is not None else ""
    return f"{reader.name} ({activity}in {reader.place})"


def _change(change: ChangedBlock) -> str:
    said = [f"{change.place} by {change.author}"]
    if change.lines:
        word = "line" if _is_one(change.lines) else "lines"
        said.append(f"{word} {_ranges(change.lines)}")
    elif not change.removed:
        said.append("its content")
    if change.removed:
        said.append(f"{change.removed} characters removed")
    return ": ".join((said[0], ", ".join(said[1:])))


def _is_one(lines: tuple[ChangedLines, ...]) -> bool:
    return len(lines) == 1 and lines[0].first == lines[0].last


def _ranges(lines: Iterable[ChangedLines]) -> str:
    every = [
        str(one.first) if one.first == one.last else f"{one.first}-{one.last}" for one in lines
    ]
    more = len(every) - _RANGES_SHOWN
    shown = ", ".join(every[:_RANGES_SHOWN])
    return f"{shown} and {more} more places" if more > 0 else shown
