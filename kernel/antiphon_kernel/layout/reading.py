"""Reading of a layout by one model: items, cache points, messages.

Cache points are places of the stream up to which providers are to keep what they have read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, chain

from antiphon_kernel.layout.arrange import Layout, LayoutItem, rounds_of
from antiphon_kernel.layout.model_view import (
    BlockPosition,
    ModelView,
    file_sizes,
    file_tokens,
    join_views,
    model_view,
)
from antiphon_kernel.layout.tail import LayoutTail
from antiphon_kernel.layout.text_forms import LayoutReader, item_text
from antiphon_kernel.layout.visible import EVERYTHING, ContributionFilter, visible
from antiphon_kernel.messages import (
    JOIN,
    MESSAGE_COST,
    CorrelationError,
    Message,
    TextBlock,
    UserMessage,
    check_correlation,
    estimate_message,
    estimate_text,
    tool_uses,
)
from antiphon_kernel.types.lazy_fields import LazyFields

OFFSET_ROUNDS = 4
"""The pre-tail point stands so many rounds before the last one."""

MIN_ROUNDS = 2
"""With fewer rounds there is no pre-tail point."""


@dataclass(frozen=True, slots=True)
class CachePoints:
    """Indices of the items that end a part worth keeping; None where there is no such point."""

    previous_turn: int | None = None
    """The last item before the header of the current turn."""
    pre_tail: int | None = None
    """The end of a round some way back: models hide nothing up to here."""
    tail: int | None = None
    """The last item."""

    @property
    def indices(self) -> tuple[int, ...]:
        """Every point once, in the order of the stream."""
        points = (self.previous_turn, self.pre_tail, self.tail)
        return tuple(sorted({point for point in points if point is not None}))


def cache_points(
    items: Sequence[LayoutItem],
    *,
    live: str | None = None,
    exact: bool = False,
) -> CachePoints:
    """Return the cache points of a stream.

    A round ends at its last item, and rounds are ordered by their first; without any, items are
    counted instead. A point between a call and the last of its results moves before the call.

    Args:
        live: id of the current turn; the last one if absent.
        exact: leave points where they are, also between a call and its results.
    """
    if not items:
        return CachePoints()
    rounds = list(rounds_of(items).values())
    ends = [indices[-1] for indices in rounds] or list(range(len(items)))
    pre_tail = ends[max(0, len(ends) - 1 - OFFSET_ROUNDS)] if len(ends) >= MIN_ROUNDS else None
    headers = [
        index for index, item in enumerate(items) if not item.is_block and live in (None, item.turn)
    ]
    previous_turn = headers[-1] - 1 if headers and headers[-1] > 0 else None
    points = (previous_turn, pre_tail, len(items) - 1)
    if exact:
        return CachePoints(*points)
    spans = sorted(filter(None, (_span(items, indices) for indices in rounds)), reverse=True)
    return CachePoints(*(_outside(point, spans) for point in points))


def _outside(point: int | None, spans: Iterable[tuple[int, int]]) -> int | None:
    """Return the point itself, or that before the calls which it would part from their results."""
    if point is None:
        return None
    for first, last in spans:
        if first <= point < last:
            point = first - 1
    return point if point >= 0 else None


def _span(items: Sequence[LayoutItem], indices: Sequence[int]) -> tuple[int, int] | None:
    """Return the indices of a call and of its last result, which may be still to come."""
    exchange = [index for index in indices if items[index].is_exchange]
    if not exchange:
        return None
    is_open = not all(items[index].block.is_finished for index in exchange)
    return exchange[0], len(items) if is_open else exchange[-1]


def why_not_hidden(items: Sequence[LayoutItem], block: str) -> str | None:
    """Return why a model may not hide a block; None if it may.

    Args:
        items: as they are read now.
        block: its id.
    """
    index = next(
        (index for index, item in enumerate(items) if item.is_block and item.block.id == block),
        None,
    )
    if index is None:
        return "models do not read this block now, so there is nothing to hide"
    item = items[index]
    if item.is_exchange:
        index = next(
            first
            for first, other in enumerate(items)
            if other.is_exchange and other.round == item.round
        )
    pre_tail = cache_points(items).pre_tail
    if pre_tail is None or index > pre_tail:
        return None
    last = items[pre_tail]
    return (
        f"{item.path} stands before the pre-tail cache point, which is at {last.path or last.turn}:"
        " hiding it would change what providers keep in their caches. Hide a later block, or ask a"
        " person to exclude this one"
    )


@dataclass(frozen=True, slots=True)
class ReadPart(LazyFields):
    """One turn, or the summary, as one model reads it; what is made of it is made once."""

    items: tuple[LayoutItem, ...]
    reader: LayoutReader
    view: ModelView = field(init=False, repr=False, compare=False)
    """Its messages."""
    call_ids: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """Ids of the calls in its messages; asking raises CorrelationError if one has no result."""
    text_tokens: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """Estimate of each of its items, with the files that are attached."""
    code_points: int = field(init=False, repr=False, compare=False)
    """Length of its items in the text stream."""
    message_tokens: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """Estimate of each of its messages."""
    rounds: int = field(init=False, repr=False, compare=False)
    """Number of its rounds."""
    is_open: bool = field(init=False, repr=False, compare=False)
    """Whether one of its calls is still without a result, or has one that is being written."""

    def _make_view(self) -> ModelView:
        return model_view(self.items, self.reader)

    def _make_call_ids(self) -> tuple[str, ...]:
        check_correlation(self.view.messages)
        return tuple([use.id for message in self.view.messages for use in tool_uses(message)])

    def _make_text_tokens(self) -> tuple[int, ...]:
        return tuple(
            [estimate_text(item_text(item, self.reader)) + file_tokens(item) for item in self.items]
        )

    def _make_code_points(self) -> int:
        return sum([len(item_text(item, self.reader)) for item in self.items])

    def _make_message_tokens(self) -> tuple[int, ...]:
        sizes = file_sizes(self.items)
        return tuple([estimate_message(message, sizes) for message in self.view.messages])

    def _make_rounds(self) -> int:
        return len(rounds_of(self.items))

    def _make_is_open(self) -> bool:
        return any(item.is_exchange and not item.block.is_finished for item in self.items)


@dataclass(frozen=True)
class LayoutReading:
    """Part of a layout that one model reads, as it reads it."""

    reader: LayoutReader
    admitted: ContributionFilter
    shown: Layout
    parts: tuple[ReadPart, ...]
    """The summary, if there is one, and each turn."""
    points: CachePoints
    tail: LayoutTail = field(default_factory=LayoutTail)

    @cached_property
    def items(self) -> tuple[LayoutItem, ...]:
        """The items in the order in which they are read."""
        return tuple(chain.from_iterable(part.items for part in self.parts))

    def text(self, item: LayoutItem) -> str:
        """Return an item of the text stream."""
        return item_text(item, self.reader)

    @cached_property
    def _stream(self) -> tuple[tuple[Message, ...], tuple[tuple[int, int], ...]]:
        """The messages without the tail, and the message and block where each part begins."""
        return join_views([part.view for part in self.parts])

    def request(self) -> ModelRequest:
        """Return the messages of a request, with what is marked for the cache.

        Raises:
            CorrelationError: if a call is without its result; never of what `visible` gives.
        """
        messages = _with_tail(self._stream[0], self.tail)
        if not self._is_correlated():
            check_correlation(messages)
        ends = list(accumulate([len(part.items) for part in self.parts]))
        marks = dict.fromkeys(self._mark(point, ends) for point in self.points.indices)
        marked = tuple(mark for mark in marks if mark is not None)
        return ModelRequest(messages, marked, self.reader.join)

    def message_tokens(self) -> list[int]:
        """Return the estimate of each message of the request."""
        messages, starts = self._stream
        tokens = [0] * len(messages)
        for (first, _), part in zip(starts, self.parts, strict=True):
            for index, estimate in enumerate(part.message_tokens, first):
                tokens[index] += estimate if not tokens[index] else estimate - MESSAGE_COST
        if texts := self.tail.texts:
            if not messages or not isinstance(messages[-1], UserMessage):
                tokens.append(MESSAGE_COST)
            tokens[-1] += sum(map(estimate_text, texts))
        return tokens

    def _is_correlated(self) -> bool:
        """Return whether calls and results match in each part, and no part has a call of another.

        Parts are checked once; the messages of all of them would be checked for each request.
        """
        try:
            ids = [part.call_ids for part in self.parts]
        except CorrelationError:
            return False
        return len(set().union(*ids)) == sum(map(len, ids))

    def _mark(self, point: int, ends: Sequence[int]) -> BlockPosition | None:
        """Return the content block at which an item ends.

        Args:
            ends: number of items up to the end of each part.
        """
        at = bisect_right(ends, point)
        end = self.parts[at].view.ends[point - ends[at] + len(self.parts[at].items)]
        while end is None and at > 0:
            at -= 1
            end = self.parts[at].view.ends[-1]
        if end is None:
            return None
        message, block = self._stream[1][at]
        return BlockPosition(message + end.message, end.block + (0 if end.message else block))


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Messages that are sent to a model."""

    messages: tuple[Message, ...] = ()
    marks: tuple[BlockPosition, ...] = ()
    """Content blocks up to which the provider is to keep what it has read."""
    join: str = JOIN
    """Between two texts of a message of the user; those of the model have `JOIN`."""


def _with_tail(messages: Sequence[Message], tail: LayoutTail) -> tuple[Message, ...]:
    """Return messages with the tail as the end of the last one, or as a message of its own."""
    blocks = tuple(map(TextBlock, tail.texts))
    if not blocks:
        return tuple(messages)
    if messages and isinstance(last := messages[-1], UserMessage):
        return (*messages[:-1], UserMessage((*last.content, *blocks)))
    return (*messages, UserMessage(blocks))


def read_layout(
    layout: Layout,
    model: str | None = None,
    admitted: ContributionFilter = EVERYTHING,
    *,
    live: str | None = None,
    exact: bool = False,
    is_plain: bool = False,
    before: LayoutReading | None = None,
) -> LayoutReading:
    """Return what a model reads.

    Args:
        layout: everything that there is, as `arrange` gives it.
        model: id of the model's principal; the only one that has written, if absent.
        live: id of the turn that is played; the last one if absent.
        exact: leave cache points between a call and its results.
        is_plain: leave out headers and paths: the model calls no tools.
        before: what was read of an earlier layout, from which the turns are taken that are the
            same objects and that this reader reads in the same way.
    """
    if before is not None and before.admitted != admitted:
        before = None
    shown = visible(layout, admitted, live=live, before=before.shown if before else None)
    reader = LayoutReader.of(layout, model, is_plain=is_plain)
    known: dict[int, ReadPart] = {}
    if before is not None and before.reader == reader:
        known = {id(part.items): part for part in before.parts}
    items = [turn.items for turn in shown.turns]
    if shown.summary is not None:
        items.insert(0, (shown.summary,))
    parts = tuple([known.get(id(one)) or ReadPart(one, reader) for one in items])
    points = _cache_points(parts, live, exact=exact)
    return LayoutReading(reader, admitted, shown, parts, points)


def _cache_points(parts: Sequence[ReadPart], live: str | None, *, exact: bool) -> CachePoints:
    """Return the cache points of all items, from no more of the last parts than it takes.

    These are the rounds that are counted, the part before the live turn, and whatever stands
    behind a call that is open.
    """
    begin = len(parts)
    rounds = 0
    while begin > 0 and (rounds <= OFFSET_ROUNDS or begin == len(parts)):
        begin -= 1
        rounds += parts[begin].rounds
    are_open = [index for index, part in enumerate(parts) if part.is_open]
    of_live = [index for index, part in enumerate(parts) if part.items[0].turn == live]
    begin = max(0, min([begin, *are_open, *of_live, len(parts) - 1]) - 1)
    skipped = sum([len(part.items) for part in parts[:begin]])
    items = list(chain.from_iterable(part.items for part in parts[begin:]))
    points = cache_points(items, live=live, exact=exact)
    return CachePoints(
        *(
            point + skipped if point is not None else None
            for point in (points.previous_turn, points.pre_tail, points.tail)
        )
    )
