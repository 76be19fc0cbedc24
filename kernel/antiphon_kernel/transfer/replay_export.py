"""A context as it came to be, as the lines of `types.replay`.

The journal is read once more from its beginning. What is left out is known at its end only: the
blocks that are excluded then, and what belongs to them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from antiphon_kernel.contexts import Context
from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.rendering import render
from antiphon_kernel.document.schema import TEXT
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.storage import CorruptContextError, StoredOp
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
from antiphon_kernel.types.errors import AntiphonError
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

_FIELDS: Final = [
    (name, BlockHeader._field_defaults.get(name))
    for name in BlockHeader._fields
    if name not in _UNTOLD
]


async def replay_lines(kernel: Kernel, context: Context) -> AsyncGenerator[str, None]:
    """Yield how a context came to be, up to now, as lines of JSON.

    Left out are blocks that are excluded now, or ephemeral, drafts that have not been sent, results
    of calls that are left out, and files attached to messages that are.
    """
    upto, label = context.seq, context.label
    left_out = _left_out(context.document)
    await context.wait_persisted()
    named: set[str] = set()

    def name(principals: Iterable[str]) -> Iterator[str]:
        for one in principals:
            if one not in named:
                named.add(one)
                with suppress(AntiphonError):  # a damaged header names nobody
                    yield write_replay_line(_principal(kernel, context.document, one))

    at, count, started = 0, 0, None
    async for op, edits in _changes(kernel, context, upto, left_out):
        if started is None:
            started = op.time
            about = ReplayHeader(context_id=context.id, label=label, started=started)
            yield write_replay_line(about)
        at = max(at, op.time - started)
        if not edits:
            continue
        count += 1
        authors = [one.header["author"] for one in edits if isinstance(one, CreatedBlock)]
        change = ReplayChange(
            at=at, version=op.seq, by=op.principal, operation=op.operation, edits=edits
        )
        yield "".join([*name([op.principal, *authors]), write_replay_line(change)])
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
) -> AsyncGenerator[tuple[StoredOp, list[ReplayEdit]], None]:
    """Yield each transaction up to a version with what it did to blocks that are told of."""
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
            yield op, list(follower.edits(change))
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
                yield CreatedBlock(block=block, header=header, text=self._text(block))
                continue
            if told != header:
                names = [name for name, _ in _FIELDS if told.get(name) != header.get(name)]
                fields = {name: header.get(name) for name in names}
                yield ChangedHeader(block=block, fields=fields)
            if (before := self._rendered.get(block)) is not None:
                splices = plan_difference(before, self._text(block))
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

    def _text(self, block: str) -> str:
        """The text of a block; from then on its changes are told as splices."""
        if self._document.schema(block) == TEXT:
            return self._document.text(block)
        text = self._rendered[block] = render(self._document, block)
        return text
