"""A context as it came to be, as the lines of `types.replay`.

The journal is read once more from its beginning. What is left out is known at its end only: the
blocks that are excluded then, and what belongs to them.
"""

from __future__ import annotations

import asyncio
import json
from array import array
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from antiphon_kernel.contexts import Context
from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.rendering import render
from antiphon_kernel.document.schema import TEXT
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.limits import Limits
from antiphon_kernel.storage import CorruptContextError, PresenceRow, StoredOp
from antiphon_kernel.text.search import RegexQuery, line_end
from antiphon_kernel.text.splice_diff import plan_difference
from antiphon_kernel.time_slice import TimeSlice
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
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.json_validation import read_json
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.types.replay import (
    ChangedHeader,
    CreatedBlock,
    ReplayChange,
    ReplayEdit,
    ReplayEnd,
    ReplayHeader,
    ReplayPresence,
    ReplayPrincipal,
    SplicedText,
    write_replay_line,
)

_OPS_READ: Final = 200
_LINES_TOGETHER: Final = 50
_REDACTED: Final = "█"
_REGEX_SECONDS: Final = 60.0

_UNTOLD: Final = {"id", "blob", "runs_for", "source_context"}
"""Header fields that nothing of a replay needs."""

_METADATA: Final = (AGENT_CALL, CHOICES, CUT_OUT, DRIFT, FILE_REFERENCE)
"""Keys of metadata that are told: those that a screen shows."""

_FREE_TEXT: Final = (
    *("input", "path", "tool_name", "language", "media_type", "stop_reason", "stopped_by"),
    *("decided_by", "metadata"),
)

_FIELDS: Final = [
    (name, BlockHeader._field_defaults.get(name))
    for name in BlockHeader._fields
    if name not in _UNTOLD
]


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
    redaction = _Redaction(redact, kernel.limits)
    upto, label = context.seq, redaction.hide(context.label)
    left_out = await _left_out(context.document)
    await context.wait_persisted()
    if redact:
        async for _, edits in _Follower(kernel, context, left_out).steps(upto):
            await asyncio.to_thread(redaction.follow, edits)
    system, sessions = kernel.system.principal.id, await kernel.journal.sessions()
    kernels = [one.opened for one in sessions if (one.principal, one.via) == (system, "kernel")]
    follower, presences = _Follower(kernel, context, left_out), deque[tuple[PresenceRow, str]]()
    writer, started = _LineWriter(kernel, context, redaction, kernels), context.row.created
    about = ReplayHeader(context_id=context.id, label=label, started=started)
    lines = [write_replay_line(about)]
    async for op, edits in follower.steps(upto):
        if op.seq % _OPS_READ == 1:
            last = min(op.seq + _OPS_READ - 1, upto)
            presences.extend(await kernel.journal.presences(context.row, op.seq, last))
        lines += writer.go_to(op.time)
        if edits:
            if redact:
                edits = await asyncio.to_thread(redaction.apply, edits)
            lines += writer.change(op, edits)
        while presences and presences[0][0].seq == op.seq:
            row, principal = presences.popleft()
            text = follower.text(row.block) if row.block is not None else None
            lines += [*writer.go_to(row.time), *writer.presence(row, principal, text)]
        if len(lines) >= _LINES_TOGETHER:
            yield "".join(lines)
            lines.clear()
    lines += writer.go_to(kernel.clock.now_ms())
    yield "".join([*lines, write_replay_line(ReplayEnd(changes=writer.changes))])


class _LineWriter:
    """Writer of the lines of a replay, in the order of their times."""

    def __init__(
        self, kernel: Kernel, context: Context, redaction: _Redaction, kernel_starts: list[int]
    ) -> None:
        self.changes = 0
        self._kernel = kernel
        self._context = context
        self._redaction = redaction
        self._kernel_starts = kernel_starts
        self._started, self._at = context.row.created, 0
        self._named: set[str] = set()
        self._present: dict[str, ReplayPresence] = {}
        """The last line of each session that is there."""

    def go_to(self, time: int) -> Iterator[str]:
        """Go on to a time; whoever was there when a kernel was killed has left with the next."""
        while self._kernel_starts and self._kernel_starts[0] <= time:
            self._at = max(self._at, self._kernel_starts.pop(0) - self._started)
            while self._present:
                session, one = self._present.popitem()
                gone = ReplayPresence(at=self._at, session=session, by=one.by, activity=None)
                yield write_replay_line(gone)
        self._at = max(self._at, time - self._started)

    def change(self, op: StoredOp, edits: list[ReplayEdit]) -> list[str]:
        self.changes += 1
        authors = [one.header["author"] for one in edits if isinstance(one, CreatedBlock)]
        about = {"version": op.seq, "by": op.principal, "operation": op.operation}
        line = ReplayChange(at=self._at, edits=edits, **about)
        return [*self._name([op.principal, *authors]), write_replay_line(line)]

    def presence(self, row: PresenceRow, principal: str, text: str | None) -> list[str]:
        """Tell where a session is; in a block that is left out, only that it is there.

        Args:
            text: of the block; None if it is left out, or not there yet.
        """
        now = ReplayPresence(at=0, session=row.session, by=principal, activity=row.activity)
        if text is not None:
            cursor, anchor = (None if at is None else min(at, len(text)) for at in row[-2:])
            where = {"block": row.block, "cursor": cursor, "anchor": anchor}
            now = now.model_copy(update=where)
        elif row.block is not None:
            now = now.model_copy(update={"activity": Activity.IDLE})
        before = self._present.pop(row.session, None)
        if row.activity is not None:
            self._present[row.session] = now
        if now == before or (row.activity is None and before is None):
            return []
        line = now.model_copy(update={"at": self._at})
        return [*self._name([principal]), write_replay_line(line)]

    def _name(self, principals: Iterable[str]) -> Iterator[str]:
        """Lines of those who have not been named."""
        for one in principals:
            if one not in self._named:
                self._named.add(one)
                member = self._context.document.member(one)
                with suppress(AntiphonError):  # a damaged header names nobody
                    known = member or self._kernel.members.find(one)
                    name, kind = self._redaction.hide(known.username), str(known.kind)
                    colour = member.colour if member is not None else 0
                    who = ReplayPrincipal(id=one, username=name, kind=kind, colour=colour)
                    yield write_replay_line(who)


async def _left_out(document: Document) -> Mapping[str, bool]:
    """Return the blocks of which nothing is told, and the calls of which metadata are not.

    The value says whether it is the whole block.
    """
    headers, slices, blocks = list[BlockHeader](), TimeSlice(), tuple(document.block_ids())
    for at in range(0, len(blocks), _OPS_READ):
        headers += document.headers(blocks[at : at + _OPS_READ], keep=False)
        await slices.pause()
    calls = {one.tool_call_id: one.id for one in headers if one.kind == BlockKind.TOOL_CALL}
    by_id = set(calls.values())
    hidden = {
        one.id: True
        for one in headers
        if one.excluded or one.ephemeral or document.is_draft(one.id)
    }
    belonging: list[tuple[str, str]] = []
    for one in headers:
        above = one.parent
        if one.kind == BlockKind.TOOL_RESULT and above not in by_id:
            above = calls.get(one.tool_call_id or "", above)
        is_part = one.kind in (BlockKind.TOOL_RESULT, BlockKind.FILE) or is_drifted(one.metadata)
        if is_part and above is not None:
            belonging.append((one.id, above))
    size = -1
    while size < len(hidden):  # what is attached to a result comes after it
        size = len(hidden)
        hidden.update((part, True) for part, whole in belonging if whole in hidden)
    for part, whole in belonging:
        if part in hidden:
            hidden.setdefault(whole, False)
    return hidden


class _Follower:
    """Changes of a document as edits of what has been told of its blocks."""

    def __init__(self, kernel: Kernel, context: Context, left_out: Mapping[str, bool]) -> None:
        self._journal = kernel.journal
        self._row = context.row
        self._document = Document(kernel.ids.client_id())
        self._left_out = left_out
        self._headers: dict[str, dict[str, Any]] = {}
        self._rendered: dict[str, str] = {}
        """Texts of blocks with a schema."""

    async def steps(self, upto: int) -> AsyncGenerator[tuple[StoredOp, list[ReplayEdit]], None]:
        """Yield each transaction up to a version, with its edits of blocks that are told of."""
        slices = TimeSlice()
        for after in range(0, upto, _OPS_READ):
            last = min(after + _OPS_READ, upto)
            for op in await self._journal.ops(self._row, after=after, upto=last):
                try:
                    change = self._document.apply_update(op.update).change
                except ValueError as error:
                    what = f"its change cannot be applied ({error})"
                    raise CorruptContextError(self._row, what, op.seq) from error
                yield op, list(self._edits(change))
                await slices.pause()
        self._document.close()

    def _edits(self, change: DocumentChange) -> Iterator[ReplayEdit]:
        document, texts = self._document, change.texts
        for block in sorted(change.touched, key=document.order.key):
            if self._left_out.get(block):
                continue
            header = self._fields(document.header(block))
            told = self._headers.get(block)
            self._headers[block] = header
            if told is None:
                yield CreatedBlock(block=block, header=header, text=self._read(block))
                continue
            if told != header:
                names = [name for name, _ in _FIELDS if told.get(name) != header.get(name)]
                fields = {name: header.get(name) for name in names}
                yield ChangedHeader(block=block, fields=fields)
            if (before := self._rendered.get(block)) is not None:
                splices = plan_difference(before, self._read(block))
            else:
                splices = [one for text in texts if text.block == block for one in text.splices]
            for one in splices:
                deleted, inserted = one.deleted, one.inserted
                yield SplicedText(
                    block=block, offset=one.offset, deleted=deleted, inserted=inserted
                )

    def _fields(self, header: BlockHeader) -> dict[str, Any]:
        values = ((name, getattr(header, name), default) for name, default in _FIELDS)
        fields = {name: value for name, value, default in values if value != default}
        said = fields.pop("metadata", {})
        shown = {name: said[name] for name in _METADATA if name in said}
        if said.get("type") == SUMMARY_TYPE:
            shown["type"] = SUMMARY_TYPE
        if shown and header.id not in self._left_out:
            fields["metadata"] = shown
        return fields

    def text(self, block: str) -> str | None:
        """Return the text of a block; None if nothing has been told of it."""
        if block not in self._headers:
            return None
        return self._rendered.get(block) or self._document.text(block)

    def _read(self, block: str) -> str:
        """The text of a block; from then on its changes are told as splices."""
        if self._document.schema(block) == TEXT:
            return self._document.text(block)
        text = self._rendered[block] = render(self._document, block)
        return text


class _Redaction:
    """Characters that match a pattern in any version of their block.

    Each character of a block has a number, in the order in which they came.
    """

    def __init__(self, patterns: Sequence[str], limits: Limits) -> None:
        seconds = {"seconds": _REGEX_SECONDS, "line_seconds": limits.regex_line_seconds}
        with AntiphonError.with_details(field="redact"):
            self._queries = [RegexQuery(one, **seconds) for one in patterns]
        self._texts = defaultdict[str, str](str)
        self._numbers = defaultdict[str, "array[int]"](lambda: array("I"))
        """Of the characters of each text, as it is now."""
        self._matches = defaultdict[str, bytearray](bytearray)
        """By the number of a character: 1 if it is not to be told."""
        self._told = defaultdict[str, int](int)
        """Number of the characters that `apply` has seen."""

    def follow(self, edits: Iterable[ReplayEdit]) -> None:
        """Find what matches in the texts that a transaction changes."""
        for edit in edits:
            match edit:
                case CreatedBlock(text=inserted):
                    at = deleted = 0
                case SplicedText(offset=at, deleted=deleted, inserted=inserted):
                    pass
                case _:
                    continue
            before, known = self._texts[edit.block], self._matches[edit.block]
            text = self._texts[edit.block] = before[:at] + inserted + before[at + deleted :]
            numbers = self._numbers[edit.block]
            numbers[at : at + deleted] = array("I", range(len(known), len(known) + len(inserted)))
            known.extend(bytes(len(inserted)))
            start = text.rfind("\n", 0, at) + 1
            for begin, end in self._found(text[start : line_end(text, at + len(inserted))]):
                for number in numbers[start + begin : start + end]:
                    known[number] = 1

    def apply(self, edits: Iterable[ReplayEdit]) -> list[ReplayEdit]:
        """Return the edits of the next transaction without what is not to be told."""
        redacted: list[ReplayEdit] = []
        for edit in edits:
            new: dict[str, Any] = {}
            match edit:
                case ChangedHeader(fields=fields):
                    new["fields"] = self._hide_fields(fields)
                case CreatedBlock(block=block, header=header, text=text):
                    new |= {"header": self._hide_fields(header), "text": self._next(block, text)}
                case SplicedText(block=block, inserted=inserted):
                    new["inserted"] = self._next(block, inserted)
            redacted.append(edit.model_copy(update=new))
        return redacted

    def _next(self, block: str, inserted: str) -> str:
        """The next characters of a block."""
        begin = self._told[block]
        end = self._told[block] = begin + len(inserted)
        pairs = zip(inserted, self._matches[block][begin:end], strict=True)
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
