"""Sets of CRDT item ids as clock ranges per client; the encoding of a Yjs delete set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from antiphon_kernel.yjs.varint import read_var_uint, write_var_uint


class IdRange(NamedTuple):
    """The items `start <= clock < end` of one client. Clocks count UTF-16 units."""

    client: int
    start: int
    end: int


IdSet = tuple[IdRange, ...]
"""Normalised: sorted by client and start, no two ranges touch."""

_NOTHING: Final = b"\x00"
"""The empty set, which most transactions remove."""


def normalise(ranges: Iterable[IdRange]) -> IdSet:
    """The same ids in as few ranges as possible."""
    merged: list[IdRange] = []
    for client, start, end in sorted(ranges):
        if start >= end:
            continue
        if merged and merged[-1].client == client and start <= merged[-1].end:
            last = merged[-1]
            merged[-1] = IdRange(client, last.start, max(last.end, end))
        else:
            merged.append(IdRange(client, start, end))
    return tuple(merged)


def encode_id_set(ranges: IdSet) -> bytes:
    """The ids as Yjs writes a delete set (clients from the highest down)."""
    by_client: dict[int, list[IdRange]] = {}
    for item in ranges:
        by_client.setdefault(item.client, []).append(item)
    out = bytearray(write_var_uint(len(by_client)))
    for client in sorted(by_client, reverse=True):
        out += write_var_uint(client)
        out += write_var_uint(len(by_client[client]))
        for item in by_client[client]:
            out += write_var_uint(item.start)
            out += write_var_uint(item.end - item.start)
    return bytes(out)


def decode_id_set(data: bytes) -> IdSet:
    """The inverse of `encode_id_set`.

    Raises:
        ValueError: if the bytes are not an id set.
    """
    if data == _NOTHING:
        return ()
    count, at = read_var_uint(data, 0)
    ranges: list[IdRange] = []
    if count > len(data):
        raise ValueError("an id set names more clients than it has bytes for")
    for _ in range(count):
        client, at = read_var_uint(data, at)
        size, at = read_var_uint(data, at)
        if size * 2 > len(data) - at:
            raise ValueError("an id set names more ranges than it has bytes for")
        for _ in range(size):
            start, at = read_var_uint(data, at)
            length, at = read_var_uint(data, at)
            ranges.append(IdRange(client, start, start + length))
    return normalise(ranges)
