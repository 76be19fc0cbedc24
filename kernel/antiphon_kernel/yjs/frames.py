"""The frames of a sync connection: those of Yjs (sync, awareness, auth), and our own.

An awareness update says who is there, as JSON states with a clock per client.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from antiphon_kernel.types.json_validation import parse_json, read_json
from antiphon_kernel.yjs.primitives import Reader, write_bytes, write_text, write_var_uint

MAX_DEPTH: Final = 64
"""Levels of nesting in a state."""


@dataclass(frozen=True, slots=True)
class SyncStep1:
    """State of the sender; the receiver answers with what is missing from it."""

    state_vector: bytes


@dataclass(frozen=True, slots=True)
class SyncStep2:
    """The answer to `SyncStep1`."""

    update: bytes


@dataclass(frozen=True, slots=True)
class SyncUpdate:
    """A change of the document."""

    update: bytes


@dataclass(frozen=True, slots=True)
class AwarenessUpdate:
    """Presence of one or more clients, as `encode_awareness` writes it."""

    update: bytes


@dataclass(frozen=True, slots=True)
class QueryAwareness:
    """A request for everyone's presence."""


@dataclass(frozen=True, slots=True)
class PermissionDenied:
    """The receiver may not do what it just did."""

    reason: str


@dataclass(frozen=True, slots=True)
class Ack:
    """So many of the receiver's update frames on this connection are on disk."""

    count: int


@dataclass(frozen=True, slots=True)
class Recent:
    """From now on an empty state vector asks for the last blocks of the document only."""

    blocks: int
    """How many at least."""


@dataclass(frozen=True, slots=True)
class Omitted:
    """The state that follows is to begin with, and may lack the oldest blocks.

    From a client: the document that it comes back with lacks them.
    """

    blocks: int
    """How many are left out; 0 if the state is whole."""
    meta: Mapping[str, str]
    """The map of this name, which may be left out with them."""
    members: Mapping[str, str]
    """Its member records, likewise: principal id to JSON."""


Frame = (
    SyncStep1
    | SyncStep2
    | SyncUpdate
    | AwarenessUpdate
    | QueryAwareness
    | PermissionDenied
    | Ack
    | Recent
    | Omitted
)


def _read_strings(reader: Reader) -> dict[str, str]:
    found = read_json(reader.text())
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        raise ValueError("an object of strings is expected")
    return found


_FORMS: Final[Mapping[type[Frame], tuple[bytes, tuple[Callable[[Reader], Any], ...]]]] = {
    SyncUpdate: (b"\x00\x02", (Reader.block,)),
    SyncStep1: (b"\x00\x00", (Reader.block,)),
    SyncStep2: (b"\x00\x01", (Reader.block,)),
    AwarenessUpdate: (b"\x01", (Reader.block,)),
    PermissionDenied: (b"\x02\x00", (Reader.text,)),
    QueryAwareness: (b"\x03", ()),
    Ack: (b"\x64", (Reader.uint,)),
    Recent: (b"\x65", (Reader.uint,)),
    Omitted: (b"\x66", (Reader.uint, _read_strings, _read_strings)),
}
"""Of each frame the numbers that it begins with, and how its fields are read."""
_KINDS: Final = {begin: kind for kind, (begin, _) in _FORMS.items()}


def decode_frame(data: bytes) -> Frame:
    """Read one frame.

    Raises:
        ValueError: if the bytes are not exactly one frame of a known type.
    """
    kind = _KINDS.get(data[:2]) or _KINDS.get(data[:1])
    if kind is None:
        raise ValueError(f"{data[:2].hex(' ')} is not the beginning of a frame")
    begin, fields = _FORMS[kind]
    reader = Reader(data)
    reader.at = len(begin)
    frame = kind(*[read(reader) for read in fields])
    reader.end()
    return frame


def encode_frame(frame: Frame) -> bytes:
    """The bytes of a frame."""
    begin, _ = _FORMS[type(frame)]
    return begin + b"".join(_write(getattr(frame, name)) for name in frame.__slots__)


def _write(value: bytes | int | str | Mapping[str, str]) -> bytes:
    match value:
        case bytes():
            return write_bytes(value)
        case int():
            return write_var_uint(value)
        case str():
            return write_text(value)
    return write_text(json.dumps(value, ensure_ascii=False))


class AwarenessEntry(NamedTuple):
    """The state of one client; None says that it has gone."""

    client: int
    clock: int
    state: Mapping[str, Any] | None


def encode_awareness(entries: Iterable[AwarenessEntry]) -> bytes:
    """The entries as the Yjs awareness protocol writes them."""
    written = [
        write_var_uint(client)
        + write_var_uint(clock)
        + write_text(json.dumps(state, separators=(",", ":"), allow_nan=False))
        for client, clock, state in entries
    ]
    return write_var_uint(len(written)) + b"".join(written)


def decode_awareness(
    data: bytes, max_size: int | None = None, max_depth: int = MAX_DEPTH
) -> tuple[AwarenessEntry, ...]:
    """The inverse of `encode_awareness`.

    Args:
        max_size: bytes of one state as JSON; None for no limit.
        max_depth: how deep a state may be nested.

    Raises:
        ValueError: if the bytes are not an awareness update whose states are JSON objects or null,
            or a state is too large or too deep.
    """
    reader = Reader(data)
    entries = []
    for _ in range(reader.count()):
        client, clock, text = reader.uint(), reader.uint(), reader.text()
        if max_size is not None and len(text) > max_size:
            raise ValueError(f"an awareness state of {len(text)} characters is too long")
        state = parse_json(text)
        if state is not None and not isinstance(state, dict):
            raise ValueError("an awareness state must be a JSON object or null")
        if not _is_within(state, max_depth):
            raise ValueError(f"an awareness state is nested deeper than {max_depth} levels")
        entries.append(AwarenessEntry(client, clock, state))
    reader.end()
    return tuple(entries)


def _is_within(value: object, depth: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(_is_within(one, depth - 1) for one in inner)
