"""Awareness updates: who is there, as JSON states with a clock per client."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from antiphon_kernel.wire.reader import Reader
from antiphon_kernel.wire.varint import write_var_uint


class AwarenessEntry(NamedTuple):
    """The state of one client; None says that it has gone."""

    client: int
    clock: int
    state: Mapping[str, Any] | None


def encode_awareness(entries: Iterable[AwarenessEntry]) -> bytes:
    """The entries as the Yjs awareness protocol writes them."""
    out = bytearray()
    size = 0
    for client, clock, state in entries:
        size += 1
        text = json.dumps(state, separators=(",", ":"), allow_nan=False).encode()
        out += write_var_uint(client)
        out += write_var_uint(clock)
        out += write_var_uint(len(text))
        out += text
    return write_var_uint(size) + bytes(out)


def decode_awareness(data: bytes) -> tuple[AwarenessEntry, ...]:
    """The inverse of `encode_awareness`.

    Raises:
        ValueError: if the bytes are not an awareness update whose states are JSON objects or null.
    """
    reader = Reader(data)
    entries = []
    for _ in range(reader.count()):
        client = reader.uint()
        clock = reader.uint()
        entries.append(AwarenessEntry(client, clock, _read_state(reader.text())))
    reader.end()
    return tuple(entries)


def _read_state(text: str) -> Mapping[str, Any] | None:
    try:
        state = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise ValueError("an awareness state is nested too deeply") from None
    if state is not None and not isinstance(state, dict):
        raise ValueError("an awareness state must be a JSON object or null")
    return state


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large a number")
    return value
