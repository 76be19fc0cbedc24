"""Joining the items of an update that continue each other, as the CRDT engine would itself.

Engines join such items one at a time, each time copying all that has been joined: an update of
300 KB in single characters costs seconds and gigabytes there, and milliseconds here.
"""

from __future__ import annotations

from collections.abc import Iterable

from antiphon_kernel.yjs.id_set import normalise
from antiphon_kernel.yjs.update import ContentKind, DecodedUpdate, ItemId, Struct
from antiphon_kernel.yjs.update_writer import encode_update

_JOINED = (ContentKind.STRING, ContentKind.DELETED, ContentKind.ANY, ContentKind.GC)


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
    """The same update, with every struct that continues another joined to it."""
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
        content = tuple(value for one in run for value in _values(one))
    return first._replace(length=sum(one.length for one in run), content=content)


def _values(one: Struct) -> tuple[object, ...]:
    assert isinstance(one.content, tuple)
    return one.content
