"""A large update in parts: nobody has to wait until all of it is checked and applied.

It is checked as a whole first, a few milliseconds at a time, so that it is refused whole. Then each
part is an update like any other, which is checked once more when it is applied.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_right
from collections.abc import Generator, Mapping, Sequence
from typing import Final, TypeVar

from antiphon_kernel.document.document import Document
from antiphon_kernel.kernel.admission.admission import UpdateCheck, refuse_long, unreadable
from antiphon_kernel.kernel.admission.placement import Placement
from antiphon_kernel.kernel.limits import Limits
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.wire.id_set import IdRange, normalise
from antiphon_kernel.wire.update import DecodedUpdate, Struct, decode_in_parts
from antiphon_kernel.wire.update_writer import encode_update

T = TypeVar("T")

_PART: Final = 250
"""Items and deletions of one part: some 10 ms on a busy machine."""

_LARGEST: Final = 10_000
"""Items that belong together: of a draft whose header is written all along."""

_SLICE: Final = 0.004
"""Seconds of work before the rest of the program gets as many."""


async def in_parts(
    document: Document,
    actor: Actor,
    update: bytes,
    owners: Mapping[int, str],
    placement: Placement,
    limits: Limits,
    *,
    catching_up: bool,
) -> Sequence[bytes]:
    """Updates that do together what `update` does, to be applied in this order.

    Raises:
        AntiphonError: what `admit` refuses.
    """
    refuse_long(update, limits, catching_up=catching_up)
    decoded = await _by_and_by(_decode(update))
    if len(decoded.structs) + len(decoded.deletions) <= _PART:
        return (update,)
    check = UpdateCheck(document, actor, owners, placement, limits)
    await _by_and_by(check.steps(decoded))
    return await _by_and_by(_cut(check, decoded.deletions))


async def _by_and_by(steps: Generator[None, None, T]) -> T:
    """Work in steps, half of the time: a keystroke takes several turns of the others."""
    began = time.perf_counter()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        worked = time.perf_counter() - began
        if worked >= _SLICE:
            await asyncio.sleep(worked)
            began = time.perf_counter()


def _decode(update: bytes) -> Generator[None, None, DecodedUpdate]:
    structs: list[Struct] = []
    deletions: tuple[IdRange, ...] = ()
    try:
        for part in decode_in_parts(update, 200):
            structs += part.structs
            deletions = part.deletions
            yield
    except ValueError as error:
        raise unreadable(error) from error
    return DecodedUpdate(tuple(structs), deletions)


def _cut(
    check: UpdateCheck, deletions: Sequence[IdRange]
) -> Generator[None, None, Sequence[bytes]]:
    parts: list[list[Struct]] = [[]]
    together_until = -1
    for index, item in enumerate(check.order):
        parts[-1].append(item)
        together_until = max(together_until, check.together.get(index, -1))
        if len(parts[-1]) > _LARGEST:
            raise AntiphonError(
                ErrorCode.TOO_LARGE,
                f"An update writes the header of a draft on both sides of {_LARGEST} other items:"
                " write headers when drafts are created.",
                limit=_LARGEST,
            )
        if len(parts[-1]) >= _PART and index >= together_until:
            parts.append([])
        if not index % _PART:
            yield
    if not parts[-1]:
        parts.pop()
    own, rest = yield from _assign(parts, deletions)
    made: list[bytes] = []
    for structs, ranges in zip(parts, own, strict=True):
        made.append(encode_update(structs, normalise(ranges)))
        yield
    for begin in range(0, len(rest), _PART):
        made.append(encode_update((), normalise(rest[begin : begin + _PART])))
        yield
    return made


def _assign(
    parts: Sequence[Sequence[Struct]], deletions: Sequence[IdRange]
) -> Generator[None, None, tuple[list[list[IdRange]], list[IdRange]]]:
    """The deletions of what each part brings, and those of what was there before."""
    runs: dict[int, tuple[list[int], list[int], list[int]]] = {}
    for number, structs in enumerate(parts):
        for one in structs:
            starts, ends, numbers = runs.setdefault(one.client, ([], [], []))
            if numbers and numbers[-1] == number:
                ends[-1] = one.clock + one.length
            else:
                starts.append(one.clock)
                ends.append(one.clock + one.length)
                numbers.append(number)
        yield
    own: list[list[IdRange]] = [[] for _ in parts]
    rest: list[IdRange] = []
    for count, (client, start, end) in enumerate(deletions):
        starts, ends, numbers = runs.get(client, ([], [], []))
        while start < end:
            at = bisect_right(starts, start) - 1
            if at >= 0 and start < ends[at]:
                upto = min(end, ends[at])
                own[numbers[at]].append(IdRange(client, start, upto))
            else:
                upto = min(end, starts[at + 1]) if at + 1 < len(starts) else end
                rest.append(IdRange(client, start, upto))
            start = upto
        if not count % _PART:
            yield
    return own, rest
