"""A large update in parts: nobody has to wait until all of it is checked and applied.

It is checked as a whole, a few milliseconds at a time, and cut. Then there is one moment at which
it is accepted or refused: what others can have changed meanwhile is looked at again, all at once.
The parts of an accepted update are applied as they are; nothing refuses one of them any more.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.validation.client_rules import UpdateScope
from antiphon_kernel.validation.item_index import ItemIndex
from antiphon_kernel.validation.update_validator import (
    UpdateValidator,
    ValidatedUpdate,
    reject_long,
    unreadable,
)
from antiphon_kernel.yjs.id_set import IdIntervals, IdRange, ItemRuns, normalise
from antiphon_kernel.yjs.merge import squash
from antiphon_kernel.yjs.update import DecodedUpdate, Struct, decode_in_parts

T = TypeVar("T")

_PART: Final = 250
"""Items and deletions of one part: some 10 ms on a busy machine."""

_SLICE: Final = 0.004
"""Seconds of work before the rest of the program gets as many."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some items of a large update, each behind those that it builds on, and some deletions."""

    structs: Sequence[Struct]
    deletions: Sequence[IdRange]
    validated: ValidatedUpdate
    """The update to apply, not placed yet; with the client ids that nobody has written with
    and that are in no part before."""

    def placed(self, item_index: ItemIndex) -> ItemIndex:
        """Return an index of its items over `item_index`, that of all items."""
        staged = ItemIndex(item_index)
        for item in staged.ready(self.structs):
            staged.add(item, staged.place_of(item))
        staged.deletions = tuple(self.deletions)
        return staged


async def validate_incrementally(
    scope: UpdateScope, update: bytes, *, catching_up: bool
) -> tuple[UpdateValidator, deque[Chunk]] | None:
    """Check an update that is long in bytes; None if it has so few items that `validate` may do it.

    Returns also the parts, all of which are to be applied in this order, once the validator has
    confirmed at the moment of acceptance that others have not changed what the update rests on.

    Raises:
        AntiphonError: what `validate` refuses.
    """
    reject_long(update, scope.limits, catching_up=catching_up)
    decoded = await _run_in_slices(_decode(update))
    if len(decoded.structs) + len(decoded.deletions) <= _PART:
        return None
    check = UpdateValidator(scope)
    validated = await _run_in_slices(check.steps(decoded))
    if validated.placed is None:
        return check, deque()
    return check, deque(await _run_in_slices(_cut(check)))


async def _run_in_slices(steps: Generator[None, None, T]) -> T:
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
    deletions: list[IdRange] = []
    try:
        for part in decode_in_parts(update, 200):
            structs += part.structs
            deletions += part.deletions
            yield
    except ValueError as error:
        raise unreadable(error) from error
    return DecodedUpdate(tuple(structs), tuple(deletions))


def _cut(check: UpdateValidator) -> Generator[None, None, Sequence[Chunk]]:
    order, owners = check.order, check.scope.owners
    ends = yield from _ends(check)
    pieces = [order[start:end] for start, end in zip((0, *ends), ends, strict=False)]
    own, rest = yield from _assign(pieces, check.deletions)
    drafts = yield from _by_chunk(check.created, ends)
    submitted = yield from _by_chunk(check.submitted, ends)
    seen: set[int] = set()
    replaced = IdIntervals(check.replaced)
    # What is deleted of earlier text goes first: a draft then says what it says when it is sent.
    parts = list(_deleting([one for ids in rest for one in replaced.lacks(ids)]))
    yield
    for number, (structs, ranges) in enumerate(zip(pieces, own, strict=True)):
        new = {one.client for one in structs} - seen
        seen |= new
        start = ends[number] - len(structs)
        validated = ValidatedUpdate(
            _encode(structs, ranges),
            None,
            tuple(drafts.get(number, ())),
            tuple(submitted.get(number, ())),
            tuple(client for client in new if client not in owners),
            not ranges and all(check.texts[start : ends[number]]),
        )
        parts.append(Chunk(structs, ranges, validated))
        yield
    parts += _deleting(check.replaced)
    return parts


def _deleting(deletions: Sequence[IdRange]) -> Iterator[Chunk]:
    for begin in range(0, len(deletions), _PART):
        ranges = normalise(deletions[begin : begin + _PART])
        yield Chunk((), ranges, ValidatedUpdate(_encode((), ranges)))


def _ends(check: UpdateValidator) -> Generator[None, None, list[int]]:
    """Return the ends of the parts in the order: some items each, more for what stays together."""
    ends: list[int] = []
    start, together_until = 0, -1
    limit = check.scope.limits.draft_structs
    for index in range(len(check.order)):
        together_until = max(together_until, check.together.get(index, -1))
        if index - start >= limit:
            raise AntiphonError(
                ErrorCode.TOO_LARGE,
                f"An update writes the header of a draft on both sides of {limit} other items:"
                " write headers when drafts are created.",
                limit=limit,
                limit_name="draft_structs",
            )
        if index - start + 1 >= _PART and index >= together_until:
            ends.append(index + 1)
            start = index + 1
        if not index % _PART:
            yield
    if start < len(check.order):
        ends.append(len(check.order))
    return ends


def _by_chunk(
    blocks: Mapping[str, int], ends: Sequence[int]
) -> Generator[None, None, dict[int, list[str]]]:
    """By number of a part the blocks that have their place in it."""
    found: dict[int, list[str]] = {}
    for count, (block, index) in enumerate(blocks.items()):
        found.setdefault(bisect_right(ends, index), []).append(block)
        if not count % _PART:
            yield
    return found


def _encode(structs: Sequence[Struct], ranges: Sequence[IdRange]) -> bytes:
    """As bytes that cost the engine no more than they should."""
    by_client = sorted(structs, key=lambda one: one.client)
    return squash(DecodedUpdate(tuple(by_client), tuple(ranges)))


def _assign(
    pieces: Sequence[Sequence[Struct]], deletions: Sequence[IdRange]
) -> Generator[None, None, tuple[list[list[IdRange]], list[IdRange]]]:
    """The deletions of what each piece brings, and those of what was there before."""
    runs = ItemRuns()
    for number, structs in enumerate(pieces, 1):
        for one in structs:
            runs.add(IdRange(one.client, one.clock, one.clock + one.length), number)
        yield
    own: list[list[IdRange]] = [[] for _ in pieces]
    rest: list[IdRange] = []
    for count, ids in enumerate(deletions):
        for part, number in runs.within(ids):
            (own[number - 1] if number else rest).append(part)
        if not count % _PART:
            yield
    return own, rest
