"""State of a long document in parts: receivers would be busy with it for long as one update.

The engine can say what it holds from a clock on, not up to one. What lies between two clocks of a
client is what it says from the first one on without the end that it says from the second one on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from pycrdt import get_state

from antiphon_kernel.document.document import Document
from antiphon_kernel.yjs.id_set import decode_state_vector, encode_state_vector
from antiphon_kernel.yjs.primitives import Reader, write_var_uint
from antiphon_kernel.yjs.update import decode_first

_NOTHING_REMOVED: Final = b"\x00"
"""The end of an update that removes nothing."""


class _ClientStructs(NamedTuple):
    """Structs of one client, up to its last one and followed by the removed ids of all clients."""

    clock: int
    """Clock of the first struct."""
    number: int
    """Number of structs."""
    update: bytes
    start: int
    """Byte of the update at which the structs begin."""


def state_parts(document: Document, since: bytes | None, size: int) -> Iterator[bytes]:
    """Yield updates that say together what `update_since` does; what is removed is in the last one.

    The document may change between two parts: each tells how it is by then.

    Args:
        since: a state vector; None for all.
        size: bytes of a part, more or less: an item is in one part.
    """
    state = document.update_since(since)
    if len(state) <= size:
        yield state
        return
    has = decode_state_vector(since) if since is not None else {}
    now = decode_state_vector(document.state_vector())
    lacking = {client: now[client] - has.get(client, 0) for client in now}
    step = max(1, sum(lacking.values()) * size // len(state))
    del state
    group, grown = list[int](), 0
    for client in sorted(now, key=lambda one: lacking[one]):
        if lacking[client] > step:
            yield from _ranges(document, has, client, step)
            continue
        group.append(client)
        grown += max(0, lacking[client])
        if grown > step:
            yield _insertions(document, has, group)
            has |= {one: now[one] for one in group}
            group, grown = [], 0
    yield document.update_since(encode_state_vector(has))


def _insertions(document: Document, has: dict[int, int], clients: Sequence[int]) -> bytes:
    """Return the update that brings all that some clients have written, and removes nothing."""
    now = document.state_vector()
    lacking = decode_state_vector(now) | {one: has.get(one, 0) for one in clients}
    removed = len(document.update_since(now)) - 1
    return document.update_since(encode_state_vector(lacking))[:-removed] + _NOTHING_REMOVED


def _ranges(document: Document, has: dict[int, int], client: int, step: int) -> Iterator[bytes]:
    """Yield what one client has written, but for the last of it; `has` follows."""
    end = decode_state_vector(document.state_vector())[client]
    written, rest = b"", _ClientStructs(0, 0, b"", 0)
    while (start := has.get(client, 0)) + step < end:
        if document.state_vector() != written:  # since the part before
            written, rest = document.state_vector(), _structs_from(document, client, start)
        # Inside a surrogate pair the engine says nothing of its second half.
        cuts = (start + step, start + step + 1)
        found = (_part(client, rest, _structs_from(document, client, cut)) for cut in cuts)
        part, after = next(filter(None, found), (b"", rest))
        if after is rest:
            return
        yield part
        has[client], rest = after.clock, after


def _part(
    client: int, rest: _ClientStructs, after: _ClientStructs
) -> tuple[bytes, _ClientStructs] | None:
    """Return what is between the beginnings of two sections, and the second one.

    If that begins inside an item, it is without this item; None if that is not possible.
    """
    sections = [after]
    with suppress(ValueError):
        first, at = decode_first(after.update)
        sections.append(
            _ClientStructs(after.clock + first.length, after.number - 1, after.update, at)
        )
    for one in sections:
        number = rest.number - one.number
        end = len(rest.update) - (len(one.update) - one.start)
        content = rest.update[rest.start : end] + _NOTHING_REMOVED
        if _end(client, rest.clock, number, content) == {client: one.clock}:
            return _header(client, rest.clock, number) + content, one
    return None


def _end(client: int, clock: int, number: int, content: bytes) -> dict[int, int]:
    """Return the state vector of an update, as if all before its clock were there."""
    if clock:  # the engine counts from 0 on
        content = b"\x00" + write_var_uint(clock) + content
        number += 1
    try:
        return decode_state_vector(get_state(_header(client, 0, number) + content))
    except (ValueError, RuntimeError):
        return {}


def _header(client: int, clock: int, number: int) -> bytes:
    """Return the beginning of an update that brings so many structs of one client."""
    return b"".join(map(write_var_uint, (1, number, client, clock)))


def _structs_from(document: Document, client: int, clock: int) -> _ClientStructs:
    now = decode_state_vector(document.state_vector())
    update = document.update_since(encode_state_vector(now | {client: clock}))
    if update.startswith(b"\x00"):
        return _ClientStructs(clock, 0, update, 1)
    number = Reader(update[1:]).uint()
    return _ClientStructs(clock, number, update, len(_header(client, clock, number)))
