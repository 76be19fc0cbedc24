"""The frames of a sync connection: Yjs sync, awareness and auth messages, and our own ACK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from antiphon_kernel.yjs.reader import Reader
from antiphon_kernel.yjs.varint import write_bytes, write_text, write_var_uint

SYNC: Final = 0
AWARENESS: Final = 1
AUTH: Final = 2
QUERY_AWARENESS: Final = 3
ACK: Final = 100

_STEP_1: Final = 0
_STEP_2: Final = 1
_UPDATE: Final = 2
_PERMISSION_DENIED: Final = 0


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
    """Presence of one or more clients, see `antiphon_kernel.yjs.awareness`."""

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


Frame = (
    SyncStep1 | SyncStep2 | SyncUpdate | AwarenessUpdate | QueryAwareness | PermissionDenied | Ack
)


def decode_frame(data: bytes) -> Frame:
    """Read one frame.

    Raises:
        ValueError: if the bytes are not exactly one frame of a known type.
    """
    reader = Reader(data)
    kind = reader.uint()
    frame: Frame
    if kind == SYNC:
        step = reader.uint()
        payload = reader.block()
        if step == _UPDATE:
            frame = SyncUpdate(payload)
        elif step == _STEP_1:
            frame = SyncStep1(payload)
        elif step == _STEP_2:
            frame = SyncStep2(payload)
        else:
            raise ValueError(f"{step} is not the number of a sync message")
    elif kind == AWARENESS:
        frame = AwarenessUpdate(reader.block())
    elif kind == ACK:
        frame = Ack(reader.uint())
    elif kind == QUERY_AWARENESS:
        frame = QueryAwareness()
    elif kind == AUTH:
        if reader.uint() != _PERMISSION_DENIED:
            raise ValueError("only `permission denied` is known of the auth messages")
        frame = PermissionDenied(reader.text())
    else:
        raise ValueError(f"{kind} is not the number of a frame")
    reader.end()
    return frame


def encode_frame(frame: Frame) -> bytes:
    """The bytes of a frame."""
    match frame:
        case SyncUpdate(update):
            return b"\x00\x02" + write_bytes(update)
        case SyncStep1(state_vector):
            return b"\x00\x00" + write_bytes(state_vector)
        case SyncStep2(update):
            return b"\x00\x01" + write_bytes(update)
        case AwarenessUpdate(update):
            return b"\x01" + write_bytes(update)
        case Ack(count):
            return write_var_uint(ACK) + write_var_uint(count)
        case QueryAwareness():
            return write_var_uint(QUERY_AWARENESS)
        case PermissionDenied(reason):
            return write_var_uint(AUTH) + b"\x00" + write_text(reason)
