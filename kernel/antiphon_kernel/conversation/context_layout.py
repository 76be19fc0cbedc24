"""Layout of one context, kept up to date with its document, and announcements to its models."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Final

from antiphon_kernel.contexts import Context
from antiphon_kernel.conversation.sources_pool import find_pool, is_pool
from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.header import json_object
from antiphon_kernel.document.history.block_history import AuthoredChange
from antiphon_kernel.document.rendering import render
from antiphon_kernel.document.schema import TEXT
from antiphon_kernel.layout import (
    EVERYTHING,
    Announcement,
    BlockAuthor,
    BlockPath,
    ContributionFilter,
    Layout,
    LayoutBlock,
    LayoutItem,
    LayoutPath,
    LayoutReading,
    SourcesPath,
    arrange,
    change_text,
    read_layout,
    reader_text,
)
from antiphon_kernel.storage import ChangeRow
from antiphon_kernel.tasks import TimeSlice
from antiphon_kernel.types.block_metadata import FILE_REFERENCE
from antiphon_kernel.types.clock import moment_or_start
from antiphon_kernel.types.enums import Activity, BlockKind, PrincipalKind, Role
from antiphon_kernel.types.frozen_json import JsonObject
from antiphon_kernel.types.ids import SYSTEM, SYSTEM_NAME
from antiphon_kernel.types.memory import without_collection
from antiphon_kernel.types.records import BlockHeader

READERS_KEPT: Final = 4
"""Readings that are kept, of the readers that read last."""

_NO_PARAMETERS: Final = JsonObject()

_NAMED_OTHERWISE: Final = {"file": "path"}
_taken_over: Final = attrgetter(
    *(
        _NAMED_OTHERWISE.get(name, name)
        for name in LayoutBlock._fields[LayoutBlock._fields.index("parameters") + 1 :]
    )
)
"""Returns the fields of a header that a `LayoutBlock` has too, in its order."""

_TOGETHER: Final = 50
"""Blocks that are read between two looks at the time."""


def layout_of(context: Context) -> ContextLayout:
    """Return the layout of an open context."""
    return context.reading(ContextLayout)


async def current_layout(context: Context) -> Layout:
    """Return turns and rounds with all that has been written, streamed appends included."""
    await layout_of(context).load()
    context.appends.flush_all()
    return layout_of(context).arranged()


class ContextLayout:
    """The blocks of one document in turns and rounds; read when first asked for.

    Reading a block out of the document takes longer than all that is made of it, so what was read
    is kept until the block changes; so is, for each reader, what was made of a turn.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._blocks: dict[str, LayoutBlock] = {}
        self._arranged: Layout | None = None
        self._readings: dict[tuple[str | None, ContributionFilter, bool], LayoutReading] = {}
        """The last reading of each reader, the latest at the end."""
        self._given: dict[str, str] = {}
        """Texts of blocks that have none of their own, by block."""
        self._is_watching = False
        self._is_stale = False
        self._loading = asyncio.Lock()

    async def load(self) -> Layout:
        """Read what is not known yet, in short slices; then return what `arranged` does."""
        self._watch()
        authors, time_slice = dict[str, BlockAuthor](), TimeSlice()
        async with self._loading:
            unread = [block for block in self._document.block_ids() if block not in self._blocks]
            with without_collection():
                for begin in range(0, len(unread), _TOGETHER):
                    self._take(unread[begin : begin + _TOGETHER], authors)
                    await time_slice.pause()
                return self.arranged()

    async def prepare(self, model: str, *, is_plain: bool) -> None:
        """Make in short slices what `read` and the first request to a model need."""
        time_slice = TimeSlice()
        await self.load()
        for part in self.read(model, is_plain=is_plain).parts:
            _ = part.view
            await time_slice.pause()

    def arranged(self) -> Layout:
        """Return every block in its turn and round, as `arrange` does."""
        self._watch()
        if self._arranged is None or self._is_stale:
            known, blocks = self._blocks, self._document.block_ids()
            self._take([block for block in blocks if block not in known], {})
            read = [known[block] for block in blocks if block in known]
            self._arranged = arrange(read, self._arranged)
            self._is_stale = False
        return self._arranged

    def read(
        self,
        model: str | None = None,
        admitted: ContributionFilter = EVERYTHING,
        *,
        live: str | None = None,
        exact: bool = False,
        is_plain: bool = False,
    ) -> LayoutReading:
        """Return what a model reads now, as `read_layout` does."""
        reader = (model, admitted, is_plain)
        with without_collection():
            reading = read_layout(
                self.arranged(),
                model,
                admitted,
                live=live,
                exact=exact,
                is_plain=is_plain,
                before=self._readings.pop(reader, None),
            )
        self._readings[reader] = reading
        for forgotten in list(self._readings)[:-READERS_KEPT]:
            del self._readings[forgotten]
        return reading

    def block(self, block: str) -> LayoutBlock:
        """Return a block that is no draft."""
        self._watch()
        if block not in self._blocks:
            self._take([block], {})
        return self._blocks[block]

    def references(self) -> list[LayoutBlock]:
        """Return the blocks that refer to a file."""
        return [
            block
            for block in self._blocks.values()
            if block.kind == BlockKind.FILE and FILE_REFERENCE in block.metadata
        ]

    def give_text(self, block: str, text: str) -> None:
        """Let a block that has no text of its own be read with this one."""
        self._given[block] = text
        if (known := self._blocks.get(block)) is not None:
            self._blocks[block] = known._replace(text=text)
            self._is_stale = True

    def find(self, path: LayoutPath) -> str | None:
        """Return the id of the block of a path; None if there is none."""
        if isinstance(path, SourcesPath):
            return find_pool(self._document)
        turns = (turn for turn in self.arranged().turns if turn.id == path.turn)
        items = (item for turn in turns for item in turn.items)
        return next((item.block.id for item in items if item.path == path), None)

    def turn_of(self, block: str) -> str | None:
        """Return the id of a block's turn; None if there is no such block, or it is a draft."""
        turns = reversed(self.arranged().turns)
        known = self._blocks.get(block)
        if known is None:
            return None
        return next(turn.id for turn in turns if any(one is known for one in turn.blocks))

    def _watch(self) -> None:
        if not self._is_watching:
            self._is_watching = True
            self._document.watch(self._follow)

    def _take(self, blocks: Iterable[str], authors: dict[str, BlockAuthor]) -> None:
        """Read blocks out of the document; those that have gone meanwhile are left out."""
        document = self._document
        there = [block for block in blocks if block in document]
        stored = document.headers(there, keep=False)
        # A draft is not read yet, and the sources pool stands behind the stream.
        read = {
            header.id: header
            for header in stored
            if not (header.is_draft and document.is_draft(header.id))
            and not is_pool(document, header)
        }
        for header, text in zip(read.values(), document.plain_texts([*read]), strict=True):
            author = authors.get(header.author)
            if author is None:
                author = authors[header.author] = _author(document, header)
            block = LayoutBlock(
                header.id,
                author,
                moment_or_start(header.created),
                self._given.get(header.id)
                or (text if text is not None else render(document, header.id)),
                JsonObject(json_object(header.input)) if header.input else _NO_PARAMETERS,
                *_taken_over(header),
            )
            if (parent := self._blocks.get(block.parent or "")) is not None:
                block = block._replace(parent=parent.id)
            self._blocks[header.id] = block

    def _follow(self, change: DocumentChange) -> None:
        for block in change.touched:
            self._blocks.pop(block, None)
        self._is_stale = True


def _author(document: Document, header: BlockHeader) -> BlockAuthor:
    """Return the author; what is not known of one is read off the block."""
    if header.author == SYSTEM:
        return BlockAuthor(SYSTEM, SYSTEM_NAME, PrincipalKind.SYSTEM)
    member = document.member(header.author)
    if member is not None:
        return BlockAuthor(header.author, member.username, member.kind)
    is_model = header.role == Role.MODEL
    kind = PrincipalKind.MODEL if is_model else PrincipalKind.HUMAN
    return BlockAuthor(header.author, header.author, kind)


_BLOCKS_LISTED: Final = 20
"""Changed blocks whose histories are read, those that were changed last."""

_OF_HEADERS: Final = ("status", "move", "collapse", "exclude", "join", "attach")
"""Operations that change nothing of a content."""


async def read_announcement(
    context: Context,
    model: str | None,
    items: Sequence[LayoutItem],
    time: int,
    since: int | None = None,
) -> Announcement:
    """Return who is here, and what others have changed of the blocks that a model reads.

    Args:
        model: id of the model's principal.
        items: what it reads now.
        time: of now, in milliseconds.
        since: the version of the context at which it last looked; None if it has not yet.
    """
    places = {item.block.id: item.path for item in items if item.path is not None}
    present = _present(context, model, places)
    if since is None:
        return Announcement(time, present=present)
    await context.wait_persisted()
    others: dict[str, list[ChangeRow[str]]] = {}
    for block, made in (await context.journal.changes_since(since)).items():
        later = [
            one
            for one in made
            if one.principal not in (model, SYSTEM) and one.operation not in _OF_HEADERS
        ]
        if block in places and later and later[0].versions[block] > 1:
            others[block] = later
    latest = sorted(others, key=lambda block: others[block][-1].seq, reverse=True)
    changes: list[str] = []
    for block in latest[:_BLOCKS_LISTED]:
        changes += await _changed(context, block, str(places[block]), model, others[block])
    return Announcement(
        time, present=present, changes=tuple(changes), unlisted=len(latest[_BLOCKS_LISTED:])
    )


def _present(
    context: Context, model: str | None, places: Mapping[str, BlockPath]
) -> tuple[str, ...]:
    """Everybody but the model, each once, by name."""
    found: dict[str, tuple[str, str | None, str | None]] = {}
    for state in context.presence.states().values():
        if state.principal == model:
            continue
        block, activity = state.block, None
        if block is None or block not in context.document:
            place = None
        elif context.document.is_draft(block):
            place = "a message that is not sent yet"
        else:
            path = places.get(block)
            place = str(path) if path is not None else context.block_name(block)
            activity = str(state.activity) if state.activity != Activity.IDLE else None
        if state.principal not in found or found[state.principal][1] is None:
            found[state.principal] = state.username, place, activity
    return tuple(reader_text(*one) for one in sorted(found.values(), key=itemgetter(0)))


async def _changed(
    context: Context,
    block: str,
    place: str,
    model: str | None,
    changes: Sequence[ChangeRow[str]],
) -> list[str]:
    """Return what each author has changed of a block."""
    if context.document.schema(block) != TEXT:
        authors = dict.fromkeys(one.principal for one in changes)
        return [change_text(place, context.username(one)) for one in authors]
    history = await context.history(block)
    by_author: dict[str, list[AuthoredChange]] = {}
    for change in history.changes_since(None, changes[0].versions[block] - 1):
        if change.principal not in (model, SYSTEM):
            by_author.setdefault(change.principal, []).append(change)
    text = history.text()
    starts = [0, *(at + 1 for at, one in enumerate(text) if one == "\n")]
    return [
        change_text(
            place,
            context.username(author),
            _lines(starts, len(text), made),
            sum(one.removed for one in made),
        )
        for author, made in by_author.items()
    ]


def _lines(
    starts: Sequence[int], length: int, changes: Sequence[AuthoredChange]
) -> list[tuple[int, int]]:
    """Return the lines that changes in the order of the text touch, each run once."""
    ranges: list[tuple[int, int]] = []
    for change in changes:
        end = max(change.offset, change.offset + change.inserted - 1)
        first, last = (bisect_right(starts, min(at, length)) - 1 for at in (change.offset, end))
        if ranges and first <= ranges[-1][1] + 1:
            ranges[-1] = ranges[-1][0], max(last, ranges[-1][1])
        else:
            ranges.append((first, last))
    return ranges
