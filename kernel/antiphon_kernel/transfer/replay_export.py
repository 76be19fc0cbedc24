"""A context as it came to be, as the lines of `types.replay`.

The journal is read once more from its beginning. What is left out is known at its end only: the
blocks that are excluded then, and what belongs to them.
"""

from __future__ import annotations

import asyncio
import json
import re
from array import array
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Final

from antiphon_kernel.contexts import Context
from antiphon_kernel.contexts.lineage.forking import split_calls
from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.rendering import render
from antiphon_kernel.document.schema import TEXT
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.limits import Limits
from antiphon_kernel.messages import without
from antiphon_kernel.storage import ContextRow, CorruptContextError
from antiphon_kernel.tasks import TimeSlice
from antiphon_kernel.text.search import Query, line_end
from antiphon_kernel.text.splice_diff import plan_difference
from antiphon_kernel.transfer.exporting import header_fields
from antiphon_kernel.types.block_metadata import (
    AGENT_CALL,
    CHOICES,
    CUT_OUT,
    DRIFT,
    FILE_REFERENCE,
    SUMMARY_TYPE,
)
from antiphon_kernel.types.drift import is_drifted
from antiphon_kernel.types.enums import Activity, BlockKind
from antiphon_kernel.types.errors import AntiphonError, invalid_params
from antiphon_kernel.types.json_validation import read_json
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.types.replay import (
    ChangedHeader,
    CreatedBlock,
    ReplayChange,
    ReplayEdit,
    ReplayEnd,
    ReplayHeader,
    ReplayLine,
    ReplayPresence,
    ReplayPrincipal,
    SplicedText,
    write_replay_line,
)

_OPS_READ: Final = 200
_REDACTED: Final = "█"
_REGEX_SECONDS: Final = 60.0
_OVER_LINES: Final = re.compile(r"\\n|\(\?[a-zA-Z]*s[a-zA-Z]*[:)]")
"""Parts of patterns that are meant for several lines."""

_METADATA: Final = (AGENT_CALL, CHOICES, CUT_OUT, DRIFT, FILE_REFERENCE)
"""Keys of metadata that are told: those that a screen shows."""

_LeftOut = tuple[set[str], set[str]]
"""Blocks of which nothing is told, and calls of which metadata are not."""

_Step = ReplayChange | ReplayPresence
"""A line that changes something; while it is made, its time is that of the clock."""

_FREE_TEXT: Final = (
    *("input", "path", "tool_name", "language", "media_type", "stop_reason", "stopped_by"),
    *("decided_by", "metadata"),
)


async def replay_lines(
    kernel: Kernel, context: Context, redact: Sequence[str] = ()
) -> AsyncGenerator[str, None]:
    """Yield how a context came to be, up to now, as lines of JSON.

    Left out are blocks that are excluded now, or ephemeral, drafts that have not been sent, results
    of calls that are left out, and what is attached to a message or came with a drift that is.

    Args:
        redact: regular expressions; what matches one within a line is █ from its first moment on.

    Raises:
        AntiphonError: invalid_regex, invalid_params or regex_timeout for a pattern.
    """
    redaction, upto, row = _Redaction(redact, kernel.limits), context.seq, context.row
    left_out = await _find_left_out(context.document)
    await context.wait_persisted()
    if redact:
        async for page in _Follower(kernel, row, left_out).pages(upto):
            await asyncio.to_thread(redaction.follow, page)
    named, at, changes = set[str](), 0, 0
    about = {"label": redaction.hide(context.label), "started": row.created}
    lines: list[ReplayLine] = [ReplayHeader(context_id=context.id, **about)]
    async for page in _Follower(kernel, row, left_out).pages(upto):
        if redact:
            await asyncio.to_thread(redaction.apply, page)
        for line in page:
            edits = line.edits if isinstance(line, ReplayChange) else []
            changes += bool(edits)
            authors = [one.header["author"] for one in edits if isinstance(one, CreatedBlock)]
            for one in (line.by, *authors):
                member = context.document.member(one)
                if one not in named and member is not None:
                    named.add(one)
                    known = {"username": redaction.hide(member.username), "kind": str(member.kind)}
                    lines.append(ReplayPrincipal(id=one, colour=member.colour, **known))
            at = max(at, line.at - row.created)
            lines.append(line.model_copy(update={"at": at}))
        yield "".join(map(write_replay_line, lines))
        lines.clear()
    yield write_replay_line(ReplayEnd(changes=changes))


async def _find_left_out(document: Document) -> _LeftOut:
    slices, hidden, parents = TimeSlice(), set[str](), dict[str, str | None]()
    for block in tuple(document.block_ids()):
        header = document.header(block)
        if header.excluded or header.ephemeral or document.is_draft(block):
            hidden.add(block)
        elif header.kind in (BlockKind.TOOL_RESULT, BlockKind.FILE) or is_drifted(header.metadata):
            parents[block] = header.parent
        await slices.pause()
    torn = split_calls(document, [*hidden])
    hidden |= {result for _, result in torn}
    while parts := {one for one in parents.keys() - hidden if parents[one] in hidden}:
        hidden |= parts
    return hidden, {call for call, _ in torn}


class _Follower:
    """Changes of a document as edits of what has been told of its blocks."""

    def __init__(self, kernel: Kernel, row: ContextRow, left_out: _LeftOut) -> None:
        self._journal, self._row = kernel.journal, row
        self._hidden, self._bare_calls = left_out
        self._document = Document(kernel.ids.client_id())
        self._told: dict[str, tuple[dict[str, Any], str]] = {}
        """Header and text of each block that has been told of."""
        self._places: dict[str, ReplayPresence] = {}
        """By session, at no time."""

    async def pages(self, upto: int) -> AsyncGenerator[list[_Step], None]:
        """Yield what happened up to a version, that of some transactions at a time."""
        slices = TimeSlice()
        for after in range(0, upto, _OPS_READ):
            last, page = min(after + _OPS_READ, upto), list[_Step]()
            presences = await self._journal.presences(self._row, after, last)
            for op in await self._journal.ops(self._row, after=after, upto=last):
                try:
                    change = self._document.apply_update(op.update).change
                except ValueError as error:
                    what = f"its change cannot be applied ({error})"
                    raise CorruptContextError(self._row, what, op.seq) from error
                if edits := [*self._edits(change)]:
                    about = {"at": op.time, "by": op.principal, "operation": op.operation}
                    page.append(ReplayChange(version=op.seq, edits=edits, **about))
                page += self._moves(presences.get(op.seq, ()))
                await slices.pause()
            yield page
        self._document.close()

    def _edits(self, change: DocumentChange) -> Iterator[ReplayEdit]:
        document = self._document
        for block in sorted(change.touched, key=document.order.key):
            if block in self._hidden:
                continue
            header, text = self._fields(document.header(block)), render(document, block)
            told, before = self._told.get(block, (None, ""))
            self._told[block] = header, text
            if told is None:
                yield CreatedBlock(block=block, header=header, text=text)
                continue
            fields = {n: header.get(n) for n in {**told, **header} if told.get(n) != header.get(n)}
            if fields:
                yield ChangedHeader(block=block, fields=fields)
            splices = [one for text in change.texts if text.block == block for one in text.splices]
            if document.schema(block) != TEXT:
                splices = plan_difference(before, text)
            for one in splices:
                yield SplicedText(block=block, **asdict(one))

    def _fields(self, header: BlockHeader) -> dict[str, Any]:
        fields = without(header_fields(header), "blob", "runs_for", "source_context", "metadata")
        told = header.metadata if header.id not in self._bare_calls else {}
        shown = {
            name: said
            for name, said in told.items()
            if name in _METADATA or (name, said) == ("type", SUMMARY_TYPE)
        }
        return fields | ({"metadata": shown} if shown else {})

    def _moves(self, places: Iterable[ReplayPresence]) -> Iterator[ReplayPresence]:
        """Changed places of sessions; in what is left out, only that they are there."""
        for place in places:
            if place.block not in self._told:
                about = place.model_dump(include={"at", "session", "by"})
                place = ReplayPresence(**about, activity=place.activity and Activity.IDLE)
            timeless = place.model_copy(update={"at": 0})
            if timeless != self._places.get(place.session):
                self._places[place.session] = timeless
                yield place


class _Redaction:
    """Characters that match a pattern in any version of their block.

    Each character of a block has a number, in the order in which they came.
    """

    def __init__(self, patterns: Sequence[str], limits: Limits) -> None:
        seconds = {"seconds": _REGEX_SECONDS, "line_seconds": limits.regex_line_seconds}
        with AntiphonError.with_details(field="redact"):
            for one in patterns:
                if _OVER_LINES.search(one):
                    what = f"{quote(one)} looks for more than a line, and would hide nothing"
                    raise invalid_params(f"{what}: give a pattern for each line.")
            self._queries = [Query(one, **seconds) for one in patterns]
        self._texts = defaultdict[str, str](str)
        self._numbers = defaultdict[str, "array[int]"](lambda: array("I"))
        """Of the characters of each text, as it is now."""
        self._matches = defaultdict[str, bytearray](bytearray)
        """By the number of a character: 1 if it is not to be told."""
        self._left: dict[str, Iterator[int]] = {}
        """The same of those that `apply` has not seen."""

    def follow(self, page: Iterable[_Step]) -> None:
        """Find what matches in the texts that change."""
        for line in page:
            for edit in line.edits if isinstance(line, ReplayChange) else ():
                if not isinstance(edit, ChangedHeader):
                    self._follow(edit)

    def _follow(self, edit: CreatedBlock | SplicedText) -> None:
        if isinstance(edit, CreatedBlock):
            edit = SplicedText(block=edit.block, offset=0, inserted=edit.text)
        at, end, inserted = edit.offset, edit.offset + edit.deleted, edit.inserted
        before, known = self._texts[edit.block], self._matches[edit.block]
        text = self._texts[edit.block] = before[:at] + inserted + before[end:]
        numbers = self._numbers[edit.block]
        numbers[at:end] = array("I", range(len(known), len(known) + len(inserted)))
        known.extend(bytes(len(inserted)))
        start = text.rfind("\n", 0, at) + 1
        for first, last in self._found(text[start : line_end(text, at + len(inserted))]):
            for number in numbers[start + first : start + last]:
                known[number] = 1

    def apply(self, page: Iterable[_Step]) -> None:
        """Hide in what happened next what is not to be told."""
        for line in page:
            if isinstance(line, ReplayChange):
                line.edits[:] = map(self._apply, line.edits)

    def _apply(self, edit: ReplayEdit) -> ReplayEdit:
        if isinstance(edit, ChangedHeader):
            return edit.model_copy(update={"fields": self._hide_fields(edit.fields)})
        if isinstance(edit, SplicedText):
            return edit.model_copy(update={"inserted": self._next(edit.block, edit.inserted)})
        header, text = self._hide_fields(edit.header), self._next(edit.block, edit.text)
        return edit.model_copy(update={"header": header, "text": text})

    def _next(self, block: str, inserted: str) -> str:
        """The next characters of a block."""
        left = self._left.setdefault(block, iter(self._matches[block]))
        pairs = zip(inserted, left, strict=False)
        return "".join([_REDACTED if is_hidden else one for one, is_hidden in pairs])

    def _hide_fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        shown = {name: self.hide(fields[name]) for name in _FREE_TEXT if name in fields}
        if fields.get("input"):
            with suppress(ValueError):  # strings are looked at as they are written, and as read
                value = self.hide(read_json(shown["input"]))
                shown["input"] = self.hide(json.dumps(value, ensure_ascii=False))
        return {**fields, **shown}

    def hide(self, value: Any) -> Any:
        """Return a value of one version without what matches in its strings."""
        match value:
            case str():
                shown = list(value)
                for at, to in self._found(value):
                    shown[at:to] = _REDACTED * (to - at)
                return "".join(shown)
            case Mapping():
                return {name: self.hide(one) for name, one in value.items()}
            case list():
                return [self.hide(one) for one in value]
        return value

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        """Start and end of each match; each lies within one line."""
        for query in self._queries:
            for start, end in query.lines(text):
                for at, to in query.matches(text[start:end]):
                    yield start + at, start + to
