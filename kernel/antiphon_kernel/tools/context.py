"""Contexts: list, create, rename, archive, fork, export, import, and a page of one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from enum import StrEnum
from typing import Annotated, Any, Final, Self

from pydantic import Field

from antiphon_kernel.contexts import Context
from antiphon_kernel.contexts.lineage.forking import (
    FORK,
    Fork,
    read_now,
    read_version,
    split_calls,
    start_fork,
)
from antiphon_kernel.contexts.opening import ContextPage, InitialContent, has_page, read_page
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.history.undo_units import UndoDirection
from antiphon_kernel.kernel import Call
from antiphon_kernel.messages import MessageShape
from antiphon_kernel.registry import REFERENCES, ContextParams, Params, Result, tool
from antiphon_kernel.storage import ContextRow, CorruptContextError
from antiphon_kernel.tools._common import block_in, check_context_version
from antiphon_kernel.transfer import (
    export_lines,
    export_markdown,
    export_messages,
    import_lines,
    replay_lines,
)
from antiphon_kernel.types.clock import iso_time, iso_time_if
from antiphon_kernel.types.enums import ContextKind, DriftState
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, block_not_found, invalid_params
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.roles import Permission

_COUNTED: Final = 1_000
"""Transactions of a context that are looked at to count what has changed."""

_COUNTED_APART: Final = 200
"""The same to count how far forks are ahead and behind."""

_OF_NEITHER: Final = (FORK, *UndoDirection)
"""Operations that put a fork neither ahead nor behind: who undoes a merge brings back what was."""


class ContextListParams(Params):
    """Filter for contexts."""

    archived: bool = False
    """Name those that are archived too."""
    seen: dict[str, Annotated[int, Field(ge=0)]] | None = None
    """The version of each context, by id, that the caller has seen, 0 of those it does not name:
    the answer then says how many blocks others have changed since."""


class ContextStateResult(Result):
    """The context as it is now."""

    context_id: str
    label: str
    created: str
    archived: str | None = None
    """Since when it has been out of the way; absent if it is not."""
    damaged: str | None = None
    """Why it cannot be opened; absent if it can, as far as is known."""
    creator: str | None = None
    """Id of the principal who made it; absent if an older antiphon did not record it."""
    username: str | None = None
    """Name of the creator."""
    source_context: str | None = None
    """Id of the context that it is a fork of; absent if it is none."""
    source_label: str | None = None
    """Name of that context."""
    source_version: int | None = None
    """The version of that context that was copied."""
    context_version: int

    @classmethod
    def of(cls, call: Call, row: ContextRow, version: int, **fields: Any) -> Self:
        """Return what is told of a context, and further `fields`."""
        kernel, origin = call.kernel, row.origin
        damage = kernel.quarantine.damaged.get(row.id)
        creator = kernel.members.find(row.creator) if row.creator is not None else None
        if origin is not None:
            source = kernel.contexts.of_number(origin.source)
            fields |= {"source_context": source.id, "source_label": source.label}
            fields["source_version"] = origin.seq
        return cls(
            context_id=row.id,
            label=row.label,
            created=iso_time(row.created),
            archived=iso_time_if(row.archived),
            damaged=damage.message if damage is not None else None,
            creator=creator.id if creator is not None else None,
            username=creator.username if creator is not None else None,
            context_version=version,
            **fields,
        )


class ListedContext(ContextStateResult):
    """One context, and how far it has come."""

    last_change: str
    """When that version was made."""
    changed: int | None = None
    """How many blocks others have changed since what was `seen`, as far as the last 1,000
    changes tell; copying into a fork is no change; absent if that was not given, or the context
    is damaged."""
    ahead: int | None = None
    """Of a fork: how many of its blocks have changed since it was made, or merged last; of what has
    changed since then the last 200 changes tell."""
    behind: int | None = None
    """Of a fork: the same of the context that it was forked from."""
    drifted_from: list[str] | None = None
    """Labels of contexts whose drifts have come here and were not taken back; absent if none."""


class ContextListResult(Result):
    """The contexts of the kernel, oldest first."""

    contexts: list[ListedContext]
    """One entry a context."""


class ContextCreateParams(Params):
    """A new context."""

    label: str
    """At most 64 of a-z, 0-9, _ and -; not taken."""


@tool("context.list", needs=Permission.READ)
async def list_contexts(call: Call, params: ContextListParams) -> ContextListResult:
    """List the contexts of this kernel; archived ones only when asked for, files never."""
    rows = [
        row
        for row in call.kernel.contexts.rows()
        if row.kind is ContextKind.CONVERSATION and (params.archived or row.archived is None)
    ]
    journal, found = call.kernel.journal, []
    last = await journal.last_changes()
    origins = defaultdict[int, dict[str, None]](dict)
    for drift in call.kernel.drifts.rows():
        if drift.state is DriftState.DELIVERED:
            origins[drift.target][call.kernel.contexts.of_number(drift.source).label] = None
    for row in rows:
        version, time = last.get(row.number, (0, row.created))
        changed, apart = None, dict[str, int]()
        if row.origin is not None:
            source = call.kernel.contexts.of_number(row.origin.source)
            since, then = call.kernel.drifts.last_common(row, source)
            for name, one, after in (("ahead", row, since), ("behind", source, then)):
                with suppress(CorruptContextError):
                    found_blocks = await journal.changed_blocks(
                        one, after, _COUNTED_APART, but_as=_OF_NEITHER
                    )
                    apart[name] = len(found_blocks)
        if params.seen is not None:
            since, caller = params.seen.get(row.id, 0), call.actor.principal.id
            blocks = set[int]()
            try:
                if since < version:
                    blocks = await journal.changed_blocks(
                        row, since, _COUNTED, but_by=caller, but_as=(FORK,)
                    )
            except CorruptContextError as error:
                call.kernel.quarantine.add(row.id, error)
            else:
                changed = len(blocks)
        listed: dict[str, Any] = {"last_change": iso_time(time), "changed": changed, **apart}
        if row.number in origins:
            listed["drifted_from"] = list(origins[row.number])
        found.append(ListedContext.of(call, row, version, **listed))
    return ContextListResult(contexts=found)


@tool("context.create", needs=Permission.WRITE)
async def create_context(call: Call, params: ContextCreateParams) -> ContextStateResult:
    """Create an empty context."""
    context = await call.kernel.create_context(params.label, asker=call.actor)
    return ContextStateResult.of(call, context.row, context.seq)


class ContextRenameParams(Params):
    """Context to rename, and its new label."""

    context: str
    """Label or id."""
    label: str
    """At most 64 of a-z, 0-9, _ and -; not taken."""


class ContextArchiveParams(Params):
    """Context, and whether it is archived."""

    context: str
    """Label or id."""
    archived: bool = True
    """False brings it back; true if absent."""


@tool("context.rename", needs=Permission.ARRANGE, errors=REFERENCES[1:])
async def rename_context(call: Call, params: ContextRenameParams) -> ContextStateResult:
    """Give a context another label. Its id, and with it every block id, stays the same.

    Who is connected reads the new label in the document's `meta`. The default context keeps its
    label.
    """
    context = await call.context(params.context)
    seq = await call.kernel.contexts.rename(call.actor, context, params.label)
    return ContextStateResult.of(call, context.row, seq)


@tool("context.archive", needs=Permission.ARRANGE, errors=REFERENCES[1:])
async def archive_context(call: Call, params: ContextArchiveParams) -> ContextStateResult:
    """Archive a context, or bring it back.

    An archived context is left out of context.list unless it is asked for. It keeps its label and
    everything in it, and can be read and written as before. The default context is not archived.
    """
    context = await call.context(params.context)
    seq = await call.kernel.contexts.archive(call.actor, context, params.archived)
    return ContextStateResult.of(call, context.row, seq)


class BlockRange(Params):
    """Blocks that stand in a row, both ends included."""

    first: str | None = None
    """The block it begins with; the first of the context if absent."""
    last: str | None = None
    """The block it ends with; the last of the context if absent."""


class ContextForkParams(Params):
    """Context, version and blocks to fork."""

    context: str
    """Label or id."""
    label: str | None = None
    """Label of the fork: at most 64 of a-z, 0-9, _ and -; made from the label of the original
    if absent."""
    at: int | None = Field(default=None, ge=1)
    """The version of the context to fork; as it is now if absent."""
    blocks: BlockRange | None = None
    """Only these; all if absent."""


class ContextForkResult(ContextStateResult):
    """The new context."""

    context_version: int
    """The version that the fork begins with."""
    blocks: int
    """How many blocks were copied."""


@tool("context.fork", needs=Permission.WRITE, errors=REFERENCES)
async def fork_context(call: Call, params: ContextForkParams) -> ContextForkResult:
    """Copy a context into a new one, as it is or as it was at one of its versions.

    A copied block keeps author and number under the id of the new context and names its original
    in `source_block`; block.blame goes on naming who wrote it first. There is nothing to undo in
    a fork. A range may not part a tool call from its result; what answers a block that is left
    out answers the nearest block above it that is copied, or none: what its original in
    `source_block` answers, is told there. What a model was writing is interrupted
    in the copy and goes on in the original.
    """
    context = await call.context(params.context)
    context.appends.flush_all()
    at = context.seq if params.at is None else params.at
    check_context_version(context, context.seq, at, "at")
    kernel, client = call.kernel, call.kernel.ids.client_id()
    if at == context.seq:
        document = await read_now(context, client)
    else:
        await context.wait_persisted()
        document = await read_version(kernel.journal, context.row, at, client)
    try:
        blocks = await _chosen(call, params.blocks or BlockRange(), context, document)
        fork = Fork(context.row, at, document, tuple(blocks))
        label = params.label
        if label is None:
            label = kernel.contexts.free_label(f"{context.label}-fork")
        made, version = await create_fork(call, fork, label)
    finally:
        document.close()
    return ContextForkResult.of(call, made, version, blocks=len(blocks))


async def create_fork(call: Call, fork: Fork, label: str) -> tuple[ContextRow, int]:
    """Make a fork; return it, and the version that it begins with.

    Raises:
        AntiphonError: invalid_params, permission_denied, storage_failed.
    """
    kernel, version = call.kernel, 1

    async def copies(row: ContextRow) -> InitialContent:
        nonlocal version
        time, client = kernel.clock.now_ms(), kernel.ids.client_id()
        made = await start_fork(row, fork, call.actor, time, client, kernel.limits)
        version += len(made.commits)
        return made

    row = await kernel.contexts.create(label, kernel.system, copies, asker=call.actor)
    return row, version


async def _chosen(
    call: Call, wanted: BlockRange, context: Context, document: Document
) -> list[str]:
    """The blocks of a range, in document order."""
    everything = list(document.block_ids())
    start, end = 0, len(everything)
    if wanted.first is not None:
        start = await _place(call, wanted.first, context, document)
    if wanted.last is not None:
        end = await _place(call, wanted.last, context, document) + 1
    if start > end or (wanted.first is not None and start == end):
        raise invalid_params(
            f"The range of blocks ends before it begins: {wanted.first} stands behind"
            f" {wanted.last}.",
            field="blocks",
        )
    chosen = everything[start:end]
    if torn := split_calls(document, chosen):
        call_block, result = torn[0]
        while torn := split_calls(document, everything[start:end]):
            places = [document.order.index(block) for pair in torn for block in pair]
            start, end = min(start, *places), max(end, max(places) + 1)
        # The ends of the smallest range around this one that parts no call from its result.
        first, last = everything[start], everything[end - 1]
        raise invalid_params(
            f"The range of blocks parts the call {call_block} from its result {result}:"
            f" take {first} to {last}, or less.",
            field="blocks",
            call=call_block,
            result=result,
            first=first,
            last=last,
        )
    return chosen


async def _place(call: Call, reference: str, context: Context, document: Document) -> int:
    other, block = await call.block(reference)
    if other is not context or block not in document:
        raise block_not_found(
            f"There is no block {quote(reference)} in that version of context {context.label}.",
            reference,
        )
    return document.order.index(block)


class ExportFormat(StrEnum):
    """In which form a context leaves the kernel."""

    JSONL = "jsonl"
    """Lines of JSON that can be imported again: headers, texts, order, parents, authors."""
    MARKDOWN = "markdown"
    """To be read."""
    MESSAGES = "messages"
    """The conversation as JSON for other tools, files in it as data; `message.import` reads it."""
    REPLAY = "replay"
    """How it came to be, edit by edit, as lines of JSON that `antiphon replay` plays."""


class ContextExportParams(ContextParams):
    """Context to export, and format."""

    format: ExportFormat = ExportFormat.JSONL
    """The form of the text."""
    shape: MessageShape = MessageShape.OPENAI
    """Shape of the messages, with the format `messages`."""
    redact: list[Annotated[str, Field(max_length=1_000)]] = Field(
        default_factory=list, max_length=100
    )
    """Regular expressions: of a replay, what matches one within a line is █ from its first
    character on."""


class ContextExportResult(Result):
    """A whole context."""

    label: str
    version: int
    """The context's version that was exported."""
    text: str
    """Text of the export."""


class ContextImportParams(Params):
    """A context that was exported as lines of JSON."""

    text: str
    """Output of `context.export`."""
    label: str | None = None
    """The new context's, as context.create takes it; the exported one's if absent."""


class ContextImportResult(Result):
    """The new context."""

    context_id: str
    label: str
    blocks: int
    """How many blocks it has."""
    context_version: int
    """The version that it begins with."""


@tool(
    "context.export",
    needs=Permission.READ,
    errors=(
        *REFERENCES[1:],
        ErrorCode.TOO_LARGE,
        ErrorCode.INVALID_REGEX,
        ErrorCode.REGEX_TIMEOUT,
    ),
)
async def export(call: Call, params: ContextExportParams) -> ContextExportResult:
    """Give the whole content of a context, each block as it is at one moment.

    As messages, what models do not read is left out: drafts, excluded blocks, what is still being
    written. A summary is left out too, and what it stands for is there. A replay has nothing of
    blocks that are excluded at its end, or of drafts that are not sent, not even what they said
    before. A large context is exported with `antiphon export`, or with
    `GET /export?context=&format=` at the address of the kernel's HTTP endpoint: they stream.
    """
    context = await call.context(params.context)
    version, limit = context.seq, call.kernel.limits.export_code_points
    pieces: list[str] = []
    length = 0
    async for piece in exported(call, context, params):
        pieces.append(piece)
        length += len(piece)
        if length > limit:
            raise _too_large(f"The export of {context.label} has", limit, "antiphon export")
    return ContextExportResult(label=context.label, version=version, text="".join(pieces))


def exported(
    call: Call, context: Context, params: ContextExportParams
) -> AsyncGenerator[str, None]:
    """Return an export, piece by piece, for as long as the caller may read.

    Raises:
        AntiphonError: invalid_params; permission_denied, storage_failed from its pieces.
    """
    context.appends.flush_all()
    if params.redact and params.format is not ExportFormat.REPLAY:
        raise invalid_params(
            f"Nothing is redacted in the format {params.format}: leave redact out, or export a"
            " replay.",
            field="redact",
        )
    if params.format is ExportFormat.REPLAY:
        lines = replay_lines(call.kernel, context, params.redact)
    elif params.format is ExportFormat.MESSAGES:
        lines = export_messages(call.kernel, context, params.shape)
    else:
        export_text = export_lines if params.format is ExportFormat.JSONL else export_markdown
        lines = export_text(call.kernel, context)
    return _checked(call, lines)


async def _checked(call: Call, lines: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
    async with aclosing(lines) as pieces:
        async for piece in pieces:
            call.check()
            yield piece


@tool("context.import", needs=Permission.OWN, errors=(ErrorCode.TOO_LARGE,))
async def import_(call: Call, params: ContextImportParams) -> ContextImportResult:
    """Make a new context of an exported one: it is there whole, or not at all.

    People and models are matched by username and kind; those whom this kernel does not know become
    authors, who have no right until they are invited, and no source or system is made. Who wrote
    what is taken over, what could be undone is not. Text of others whom this kernel knows is
    imported only by whose kernel it is. A block of a model that answers nothing in the export
    answers nothing here. A large export is imported with `antiphon import`, or with
    `POST /import?label=` at the address of the kernel's HTTP endpoint: they stream.
    """
    limit = call.kernel.limits.export_code_points
    if len(params.text) > limit:
        raise _too_large("The text has", limit, "antiphon import")
    return await imported(call, _one_piece(params.text), params.label)


async def imported(
    call: Call, pieces: AsyncIterator[bytes], label: str | None
) -> ContextImportResult:
    """Import an export that comes in pieces, cut anywhere.

    Raises:
        AntiphonError: invalid_params, too_large, permission_denied, storage_failed.
    """
    row, blocks, version = await import_lines(call.kernel, call.actor, pieces, label, call.check)
    return ContextImportResult(
        context_id=row.id, label=row.label, blocks=blocks, context_version=version
    )


async def _one_piece(text: str) -> AsyncIterator[bytes]:
    yield text.encode()


def _too_large(what: str, limit: int, command: str) -> AntiphonError:
    return AntiphonError(
        ErrorCode.TOO_LARGE,
        f"{what} more than {limit} code points, which is the most for one call: use"
        f" `{command}`, which streams.",
        limit=limit,
        limit_name="export_code_points",
    )


class ContextPageParams(ContextParams):
    """Context and place of a page."""

    around: str | None = None
    """A block in the middle of the page; the last blocks if absent."""


@tool("context.page", needs=Permission.READ, errors=REFERENCES)
async def page(call: Call, params: ContextPageParams) -> ContextPage:
    """Read some neighbouring blocks of a context with their texts, as a screen shows them."""
    around = params.around
    context = await call.context(params.context, is_partial=True)
    if around is not None and not has_page(context, around):
        await context.whole()
        around = await block_in(call, context, around)
    context.appends.flush_all()
    return await context.persisted(read_page(context, around))
