"""Reading of a layout by one model: items, cache points, and the messages that it is given.

Cache points are places of the stream up to which providers are to keep what they have read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import accumulate, chain
from typing import Final, NamedTuple

from antiphon_kernel.layout.arrange import ItemType, Layout, LayoutBlock, LayoutItem, rounds_of
from antiphon_kernel.layout.text_forms import LayoutReader, item_text, shortened, tool_name
from antiphon_kernel.layout.visible import (
    EVERYTHING,
    SIGNATURE,
    SIGNED_TEXT,
    ContributionFilter,
    visible,
)
from antiphon_kernel.messages import (
    JOIN,
    MESSAGE_COST,
    AssistantMessage,
    DocumentBlock,
    ImageBlock,
    InputBlock,
    Message,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UserMessage,
    estimate_block,
    estimate_message,
    estimate_text,
    stated_pages,
)
from antiphon_kernel.types.block_metadata import CALL_SIGNATURE
from antiphon_kernel.types.constants import INTERRUPTED
from antiphon_kernel.types.media_types import is_text_type

ROUND: Final = "round"
"""Key of `metadata` of a call: in which round of its turn the model made it, with others or not."""

STILL_RUNNING: Final = "(still running)"
CANCELLED: Final = "(cancelled)"
NO_OUTPUT: Final = "(no output)"


@dataclass(frozen=True, slots=True)
class BlockPosition:
    """Position of a content block in a list of messages."""

    message: int
    """Index of the message."""
    block: int
    """Index in its content."""


_position: Final = lru_cache(1_024)(BlockPosition)
"""Most turns have the same few positions: as one object, each."""


@dataclass(frozen=True, slots=True)
class ModelView:
    """Messages that a model is given, valid by construction."""

    messages: tuple[Message, ...]
    ends: tuple[BlockPosition | None, ...]
    """For each item, the last content block up to its end that may be marked for the cache."""


def model_view(items: Sequence[LayoutItem], reader: LayoutReader) -> ModelView:
    """Return the messages for a model, the same for the same items.

    Its own blocks are messages of the assistant. Calls that it made in one round are one message,
    directly followed by one message for the results of each. Everything else is a message of the
    user, in the form of the text stream.

    Args:
        items: of a layout that parts no call from its results (see `visible`).
    """
    building = _Messages()
    ends: list[BlockPosition | None] = []
    results: dict[str, list[LayoutItem]] = {}
    for item in items:
        if item.type is ItemType.TOOL_RESULT and item.round is not None:
            results.setdefault(item.round, []).append(item)
    for item in items:
        match item.type:
            case ItemType.NOTES | ItemType.ASSISTANT_COMPLETION if reader.wrote(item.block):
                building.say(TextBlock(item.block.text))
            case ItemType.THINKING if reader.wrote(item.block):
                text = item.block.text
                if (signature := valid_signature(text, item.block.metadata)) is not None:
                    building.say(Thinking(text, signature))
            case ItemType.THINKING if not item.block.text.strip():
                pass
            case ItemType.TOOL_CALL if reader.wrote(item.block) and item.round is not None:
                building.call(item, results.get(item.round, ()))
            case ItemType.TOOL_RESULT if item.round in building.answers:
                building.end = building.answers[item.round]
            case _:
                if text := item_text(item, reader):
                    building.hear(TextBlock(text))
                if (file := attached_file(item.block)) is not None:
                    building.hear(file)
        ends.append(building.end)
    building.close()
    return ModelView(tuple(building.messages), tuple(ends))


def join_views(
    views: Iterable[ModelView],
) -> tuple[tuple[Message, ...], tuple[tuple[int, int], ...]]:
    """Return the messages of the turns of a layout as one list, and where each turn begins in it.

    That is the index of a message and of a block in it: the last message of a turn and the first
    one of the next are one if they are of one side.
    """
    messages: list[Message] = []
    starts: list[tuple[int, int]] = []
    last: list[Message] = []
    """The last message, in the pieces that the turns have of it."""
    blocks = 0
    for view in views:
        first = view.messages[0] if view.messages else None
        if first is not None and last and type(first) is not type(last[0]):
            messages.append(last[0] if len(last) == 1 else _joined(last))
            last, blocks = [], 0
        starts.append((len(messages), blocks))
        if first is None:
            continue
        last.append(first)
        blocks += len(first.content)
        if len(view.messages) > 1:
            messages.append(first if len(last) == 1 else _joined(last))
            messages.extend(view.messages[1:-1])
            last, blocks = [view.messages[-1]], len(view.messages[-1].content)
    if last:
        messages.append(_joined(last))
    return tuple(messages), tuple(starts)


def _joined(pieces: Sequence[Message]) -> Message:
    """Return messages of people, or of the model, as one."""
    if len(pieces) == 1:
        return pieces[0]
    content = chain.from_iterable(one.content for one in pieces)
    if isinstance(pieces[0], AssistantMessage):
        return AssistantMessage(tuple(content))
    return UserMessage(tuple(block for block in content if isinstance(block, InputBlock)))


def signature_metadata(thinking: Thinking) -> dict[str, object]:
    """Return what the metadata of a thinking block says about its signature."""
    if thinking.signature is None:
        return {}
    return {SIGNATURE: thinking.signature, SIGNED_TEXT: _digest(thinking.text)}


def valid_signature(text: str, metadata: Mapping[str, object]) -> str | None:
    """Return the signature of a thinking block; None if there is none of this very text."""
    signature = metadata.get(SIGNATURE)
    is_unchanged = _digest(text) == metadata.get(SIGNED_TEXT)
    return signature if isinstance(signature, str) and is_unchanged else None


def call_signature(metadata: Mapping[str, object]) -> str | None:
    """Return the signature of a call."""
    signature = metadata.get(CALL_SIGNATURE)
    return signature if isinstance(signature, str) else None


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def attached_file(block: LayoutBlock) -> ImageBlock | DocumentBlock | None:
    """Return the image or document that was attached with a block; None of a text."""
    kind, digest = block.media_type, block.blob
    if kind is None or digest is None or is_text_type(kind):
        return None
    content = ImageBlock if kind.startswith("image/") else DocumentBlock
    return content(kind, digest)


def file_tokens(item: LayoutItem) -> int:
    """Estimate the tokens of the image or document of an item."""
    file = attached_file(item.block) if item.is_block else None
    return estimate_block(file, _document_pages((item,))) if file is not None else 0


def _document_pages(items: Iterable[LayoutItem]) -> dict[str, int]:
    """Return the pages of documents by their hashes, where they are known."""
    blocks = [item.block for item in items]
    pages = {block.blob: stated_pages(block.metadata) for block in blocks if block.blob is not None}
    return {blob: count for blob, count in pages.items() if count is not None}


@dataclass(slots=True)
class _Messages:
    """Messages while they are put together; those of one side in a row are one."""

    messages: list[Message] = field(default_factory=list)
    answers: dict[str, BlockPosition] = field(default_factory=dict)
    """End of the results of each call."""
    end: BlockPosition | None = None
    _said: list[TextBlock | Thinking | ToolUse] = field(default_factory=list)
    _results: list[ToolMessage] = field(default_factory=list)
    """Of the calls that are the last of what was said."""
    _round: tuple[str, object] | None = None
    """Turn and round of these calls."""
    _heard: list[InputBlock] = field(default_factory=list)

    def say(self, block: TextBlock | Thinking | ToolUse) -> None:
        if self._heard or self._results:
            self.close()
        self._append(block)

    def hear(self, block: InputBlock) -> None:
        if self._said:
            self.close()
        self._heard.append(block)
        self.end = _position(len(self.messages), len(self._heard) - 1)

    def call(self, item: LayoutItem, results: Sequence[LayoutItem]) -> None:
        call, made_in = item.block, (item.turn, item.block.metadata.get(ROUND))
        signature = call_signature(call.metadata)
        use = ToolUse(item.round or "", tool_name(item), call.parameters, signature)
        if self._heard or (self._results and (made_in != self._round or made_in[1] is None)):
            self.close()
        self._append(use)
        self._round = made_in
        content: list[InputBlock] = []
        for one in results:
            file = attached_file(one.block)
            if file is None or one.block.text.strip():
                content.append(TextBlock(result_text(one)))
            if file is not None:
                content.append(file)
        failed = call.is_error or any(one.block.is_error for one in results)
        answer = tuple(content) or (TextBlock(_without_output(call)),)
        self._results.append(ToolMessage(answer, use.id, failed))
        index = len(self.messages) + len(self._results)
        self.answers[use.id] = _position(index, len(answer) - 1)
        if not results:
            self.end = self.answers[use.id]

    def _append(self, block: TextBlock | Thinking | ToolUse) -> None:
        self._said.append(block)
        if not isinstance(block, Thinking):
            self.end = _position(len(self.messages), len(self._said) - 1)

    def close(self) -> None:
        if self._said:
            self.messages.append(AssistantMessage(tuple(self._said)))
        if self._heard:
            self.messages.append(UserMessage(tuple(self._heard)))
        self.messages += self._results
        self._said.clear()
        self._heard.clear()
        self._results.clear()


def result_text(item: LayoutItem) -> str:
    """Return a result as the model that made the call is given it."""
    block = item.block
    text = shortened(block.text, item.path)
    lines = [text if text.strip() else _without_output(block)]
    if block.exit_code:
        lines.append(f"(exit code {block.exit_code})")
    if block.truncated:
        lines.append("(the output was longer than what is kept)")
    return lines[0] if len(lines) == 1 else "\n".join([lines[0].rstrip("\n"), *lines[1:]])


def _without_output(block: LayoutBlock) -> str:
    if not block.is_finished:
        return STILL_RUNNING
    return CANCELLED if block.stop_reason == INTERRUPTED else NO_OUTPUT


OFFSET_ROUNDS = 4
"""The pre-tail point stands so many rounds before the last one."""

MIN_ROUNDS = 2
"""With fewer rounds there is no pre-tail point."""


class CachePoints(NamedTuple):
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
        return tuple(sorted({point for point in self if point is not None}))


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
    places = {item.block.id: index for index, item in enumerate(items) if item.is_block}
    if block not in places:
        return "models do not read this block now, so there is nothing to hide"
    index, item = places[block], items[places[block]]
    if item.is_exchange:  # it is hidden with its call
        round_of = [other.round if other.is_exchange else None for other in items]
        index = round_of.index(item.round)
    pre_tail = cache_points(items).pre_tail
    if pre_tail is None or index > pre_tail:
        return None
    last = items[pre_tail]
    return (
        f"{item.path} stands before the pre-tail cache point, which is at {last.path or last.turn}:"
        " hiding it would change what providers keep in their caches. Hide a later block, or ask a"
        " person to exclude this one"
    )


@dataclass(frozen=True)
class ReadPart:
    """One turn, or the summary, as one model reads it; what is made of it is made once."""

    items: tuple[LayoutItem, ...]
    reader: LayoutReader

    @cached_property
    def view(self) -> ModelView:
        """Return its messages."""
        return model_view(self.items, self.reader)

    @cached_property
    def text_tokens(self) -> tuple[int, ...]:
        """Return the estimate of each of its items, with the files that are attached."""
        return tuple(
            [estimate_text(item_text(item, self.reader)) + file_tokens(item) for item in self.items]
        )

    @cached_property
    def message_tokens(self) -> tuple[int, ...]:
        """Return the estimate of each of its messages."""
        pages = _document_pages(self.items)
        return tuple([estimate_message(message, pages) for message in self.view.messages])

    @cached_property
    def is_open(self) -> bool:
        """Return whether a call is still without a result, or has one that is being written."""
        return any(item.is_exchange and not item.block.is_finished for item in self.items)


@dataclass(frozen=True)
class LayoutReading:
    """Part of a layout that one model reads, as it reads it."""

    reader: LayoutReader
    shown: Layout
    parts: tuple[ReadPart, ...]
    """The summary, if there is one, and each turn."""
    points: CachePoints
    tail: tuple[str, ...] = ()
    """Texts behind the stream."""

    @cached_property
    def items(self) -> tuple[LayoutItem, ...]:
        """The items in the order in which they are read."""
        return tuple(chain.from_iterable(part.items for part in self.parts))

    @cached_property
    def _stream(self) -> tuple[tuple[Message, ...], tuple[tuple[int, int], ...]]:
        """The messages without the tail, and the message and block where each part begins."""
        return join_views([part.view for part in self.parts])

    def request(self) -> ModelRequest:
        """Return the messages of a request, with what is marked for the cache."""
        messages = self._stream[0]
        if blocks := tuple(map(TextBlock, self.tail)):
            # They are the end of the last message, or a message of their own.
            if messages and isinstance(last := messages[-1], UserMessage):
                messages = (*messages[:-1], UserMessage((*last.content, *blocks)))
            else:
                messages = (*messages, UserMessage(blocks))
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
        if self.tail:
            if not messages or not isinstance(messages[-1], UserMessage):
                tokens.append(MESSAGE_COST)
            tokens[-1] += sum(map(estimate_text, self.tail))
        return tokens

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
        before: what was read of an earlier layout with the same filter, from which the turns are
            taken that are the same objects and that this reader reads in the same way.
    """
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
    return LayoutReading(reader, shown, parts, points)


def _cache_points(parts: Sequence[ReadPart], live: str | None, *, exact: bool) -> CachePoints:
    """Return the cache points of all items, from no more of the last parts than it takes.

    These are the rounds that are counted, the part before the live turn, and whatever stands
    behind a call that is open.
    """
    begin = len(parts)
    rounds = 0
    while begin > 0 and (rounds <= OFFSET_ROUNDS or begin == len(parts)):
        begin -= 1
        rounds += len(rounds_of(parts[begin].items))
    are_open = [index for index, part in enumerate(parts) if part.is_open]
    of_live = [index for index, part in enumerate(parts) if part.items[0].turn == live]
    begin = max(0, min([begin, *are_open, *of_live, len(parts) - 1]) - 1)
    skipped = sum([len(part.items) for part in parts[:begin]])
    items = list(chain.from_iterable(part.items for part in parts[begin:]))
    points = cache_points(items, live=live, exact=exact)
    return CachePoints(*(None if point is None else point + skipped for point in points))
