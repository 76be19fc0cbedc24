"""Awareness updates: who is there, as JSON states with a clock per client."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from antiphon_kernel.types.json_validation import parse_json
from antiphon_kernel.yjs.primitives import Reader, write_text, write_var_uint

MAX_DEPTH: Final = 64
"""Levels of nesting in a state."""


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
