"""A context as it came to be, as the lines of `types.replay`.

The journal is read once more from its beginning. What is left out is known at its end only: the
blocks that are excluded then, and what belongs to them.
"""

from __future__ import annotations

import json
import time
from array import array
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from antiphon_kernel.contexts import Context
from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.rendering import render
from antiphon_kernel.document.schema import TEXT
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.storage import CorruptContextError, StoredOp
from antiphon_kernel.text.search import compile_pattern, line_end
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
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.json_validation import read_json
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.types.replay import (
    ChangedHeader,
    CreatedBlock,
    ReplayChange,
    ReplayEdit,
    ReplayEnd,
    ReplayHeader,
    ReplayPrincipal,
    SplicedText,
    write_replay_line,
)

_OPS_READ: Final = 200

_UNTOLD: Final = {"id", "blob", "runs_for", "source_context"}
"""Header fields that nothing of a replay needs."""

_METADATA: Final = (AGENT_CALL, CHOICES, CUT_OUT, DRIFT, FILE_REFERENCE)
"""What is told of metadata: as much as a screen shows."""

_FREE_TEXT: Final = (
    *("input", "path", "tool_name", "language", "media_type", "stop_reason"),
    *("stopped_by", "decided_by"),
)
_REDACTED: Final = "█"
_REGEX_SECONDS: Final = 60.0

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
    of calls that are left out, and files attached to messages that are.

    Args:
        redact: regular expressions; what matches one within a line is █ from its first moment on.

    Raises:
        AntiphonError: invalid_regex, invalid_params or regex_timeout for a pattern.
    """
    upto, label = context.seq, context.label
    left_out = _left_out(context.document)
    redaction = _Redaction(redact, kernel.limits.regex_line_seconds)
    await context.wait_persisted()
    if redact:
        async for _, edits, text_of in _changes(kernel, context, upto, left_out):
            redaction.follow(edits, text_of)
    named: set[str] = set()

    def name(principals: Iterable[str]) -> Iterator[str]:
        for one in principals:
            if one not in named:
                named.add(one)
                with suppress(AntiphonError):  # a damaged header names nobody
                    who = _principal(kernel, context.document, one)
                    username = redaction.hide(who.username)
                    yield write_replay_line(who.model_copy(update={"username": username}))

    at, count, started = 0, 0, None
    async for op, edits, _ in _changes(kernel, context, upto, left_out):
        if started is None:
            started, label = op.time, redaction.hide(label)
            about = ReplayHeader(context_id=context.id, label=label, started=started)
            yield write_replay_line(about)
        at = max(at, op.time - started)
        if not edits:
            continue
        count += 1
        authors = [one.header["author"] for one in edits if isinstance(one, CreatedBlock)]
        by, edits = op.principal, redaction.apply(edits)
        change = ReplayChange(at=at, version=op.seq, by=by, operation=op.operation, edits=edits)
        yield "".join([*name([by, *authors]), write_replay_line(change)])
    yield write_replay_line(ReplayEnd(changes=count))


def _principal(kernel: Kernel, document: Document, principal: str) -> ReplayPrincipal:
    member = document.member(principal)
    known = member or kernel.members.find(principal)
    return ReplayPrincipal(
        id=principal,
        username=known.username,
        kind=str(known.kind),
        colour=member.colour if member is not None else 0,
    )


def _left_out(document: Document) -> Mapping[str, bool]:
    """Return the blocks of which nothing is told, and the calls of which metadata are not.

    The value says whether it is the whole block.
    """
    headers = document.headers(document.block_ids(), keep=False)
    calls = {one.tool_call_id: one.id for one in headers if one.kind == BlockKind.TOOL_CALL}
    kinds = {one.id: one.kind for one in headers}
    hidden = {
        one.id: True
        for one in headers
        if one.excluded or one.ephemeral or document.is_draft(one.id)
    }
    belonging: list[tuple[str, str]] = []
    for one in headers:
        above = one.parent if one.parent in kinds else None
        if one.kind == BlockKind.TOOL_RESULT:
            if above is None or kinds[above] != BlockKind.TOOL_CALL:
                above = calls.get(one.tool_call_id or "") or above
        elif one.kind != BlockKind.FILE:
            continue
        if above is not None:
            belonging.append((one.id, above))
    size = -1
    while size < len(hidden):  # what is attached to a result comes after it
        size = len(hidden)
        hidden.update((part, True) for part, whole in belonging if whole in hidden)
    for part, whole in belonging:
        if part in hidden:
            hidden.setdefault(whole, False)
    return hidden


async def _changes(
    kernel: Kernel, context: Context, upto: int, left_out: Mapping[str, bool]
) -> AsyncGenerator[tuple[StoredOp, list[ReplayEdit], Callable[[str], str]], None]:
    """Yield each transaction up to a version with what it did to blocks that are told of.

    The function gives the text of a block after it.
    """
    document, slices = Document(kernel.ids.client_id()), TimeSlice()
    follower, after = _Follower(document, left_out), 0
    while after < upto:
        limit = min(_OPS_READ, upto - after)
        for op in await kernel.journal.ops(context.row, after=after, limit=limit):
            try:
                change = document.apply_update(op.update).change
            except ValueError as error:
                what = f"its change cannot be applied ({error})"
                raise CorruptContextError(context.row, what, op.seq) from error
            yield op, list(follower.edits(change)), follower.text
            await slices.pause()
        after += limit
    document.close()


class _Follower:
    """What has been told of each block of a document, and what a change of it adds."""

    def __init__(self, document: Document, left_out: Mapping[str, bool]) -> None:
        self._document = document
        self._left_out = left_out
        self._headers: dict[str, dict[str, Any]] = {}
        self._rendered: dict[str, str] = {}
        """Texts of blocks with a schema."""

    def edits(self, change: DocumentChange) -> Iterator[ReplayEdit]:
        """Tell of a change that the document has taken in."""
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

    def text(self, block: str) -> str:
        """Return the text of a block that has been told of."""
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

    def __init__(self, patterns: Sequence[str], line_seconds: float) -> None:
        with AntiphonError.with_details(field="redact"):
            self._patterns = [compile_pattern(one) for one in patterns]
        self._line_seconds, self._left = line_seconds, _REGEX_SECONDS
        self._numbers = defaultdict[str, "array[int]"](lambda: array("I"))
        """Of the characters of each text, as it is now."""
        self._matches = defaultdict[str, bytearray](bytearray)
        """By the number of a character: 1 if it is not to be told."""
        self._told = defaultdict[str, int](int)
        """Number of the characters that `apply` has seen."""

    def follow(self, edits: Iterable[ReplayEdit], text_of: Callable[[str], str]) -> None:
        """Find what matches in the texts that a transaction has changed."""
        changed: dict[str, tuple[int, int]] = {}
        for edit in edits:
            if isinstance(edit, ChangedHeader):
                continue
            at, deleted, inserted = 0, 0, ""
            if isinstance(edit, CreatedBlock):
                inserted = edit.text
            else:
                at, deleted, inserted = edit.offset, edit.deleted, edit.inserted
            known = self._matches[edit.block]
            numbers = array("I", range(len(known), len(known) + len(inserted)))
            self._numbers[edit.block][at : at + deleted] = numbers
            known.extend(bytes(len(inserted)))
            start, end = changed.get(edit.block, (at, at))
            changed[edit.block] = min(start, at), max(end - deleted, at) + len(inserted)
        for block, (start, end) in changed.items():
            text, known = text_of(block), self._matches[block]
            start = text.rfind("\n", 0, start) + 1
            for at, to in self._found(text[start : line_end(text, end)]):
                for number in self._numbers[block][start + at : start + to]:
                    known[number] = 1

    def apply(self, edits: Iterable[ReplayEdit]) -> list[ReplayEdit]:
        """Return the edits of a transaction without what is not to be told."""
        if not self._patterns:
            return list(edits)
        return [self._redacted(edit) for edit in edits]

    def _redacted(self, edit: ReplayEdit) -> ReplayEdit:
        match edit:
            case ChangedHeader(fields=fields):
                return edit.model_copy(update={"fields": self._hide_fields(fields)})
            case CreatedBlock(header=header, text=text):
                new = {"header": self._hide_fields(header), "text": self._next(edit.block, text)}
                return edit.model_copy(update=new)
            case SplicedText(inserted=inserted):
                return edit.model_copy(update={"inserted": self._next(edit.block, inserted)})

    def _next(self, block: str, inserted: str) -> str:
        """The next characters of a block."""
        begin = self._told[block]
        end = self._told[block] = begin + len(inserted)
        hidden = self._matches[block][begin:end]
        if 1 not in hidden:
            return inserted
        pairs = zip(inserted, hidden, strict=True)
        return "".join([_REDACTED if is_hidden else one for one, is_hidden in pairs])

    def hide(self, text: str) -> str:
        """Return a text of one version without what matches."""
        shown = list(text)
        for at, to in self._found(text):
            shown[at:to] = _REDACTED * (to - at)
        return "".join(shown)

    def _found(self, text: str) -> list[tuple[int, int]]:
        """Start and end of each match; each lies within one line."""
        found: list[tuple[int, int]] = []
        begun, start = time.monotonic(), 0
        try:
            while self._patterns and start < len(text):
                end = line_end(text, start)
                for pattern in self._patterns:
                    matches = pattern.finditer(text, start, end, timeout=self._line_seconds)
                    found += [one.span() for one in matches]
                start = end + 1
                if time.monotonic() - begun > self._left:
                    raise TimeoutError
        except (TimeoutError, MemoryError) as error:
            raise AntiphonError(
                ErrorCode.REGEX_TIMEOUT,
                f"A pattern of redact ran for more than {self._line_seconds:g} s on one line, or"
                f" all of them for more than {_REGEX_SECONDS:g} s: avoid nested repeats such as"
                " (a+)+.",
            ) from error
        self._left -= time.monotonic() - begun
        return found

    def _hide_fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        shown = {name: self._hide(fields[name]) for name in _FREE_TEXT if name in fields}
        if fields.get("metadata"):
            said = fields["metadata"].items()
            shown["metadata"] = {name: self._hide(value) for name, value in said}
        if fields.get("input"):
            with suppress(ValueError):  # strings are looked at as they are written, and as read
                value = self._hide(read_json(shown["input"]))
                shown["input"] = self.hide(json.dumps(value, ensure_ascii=False))
        return {**fields, **shown}

    def _hide(self, value: Any) -> Any:
        match value:
            case str():
                return self.hide(value)
            case Mapping():
                return {name: self._hide(one) for name, one in value.items()}
            case list():
                return [self._hide(one) for one in value]
        return value
