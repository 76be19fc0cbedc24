"""Blocks: `block.create`, `.status`, `.move`, `.collapse`, `.exclude`, and `.attach`, for files."""

from __future__ import annotations

import asyncio
import binascii
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import Field

from antiphon_kernel.access import check_arrange, check_project_files, check_role, check_status
from antiphon_kernel.contexts import (
    Context,
    Submission,
    header_fields,
    order_after,
    order_at_end,
    order_before,
    orders_at,
)
from antiphon_kernel.conversation import NewFile, layout_of
from antiphon_kernel.document.content_writes import check_defaults, check_initial, plan_set
from antiphon_kernel.document.rendering import render
from antiphon_kernel.document.schema import EXACT_INTEGER, TEXT, Schema, fill_items
from antiphon_kernel.files.file_contexts import FilePlace
from antiphon_kernel.files.open_file import language_of
from antiphon_kernel.kernel import Call
from antiphon_kernel.limits import Limits
from antiphon_kernel.registry import REFERENCES, BlockParams, Params, Result, tool
from antiphon_kernel.storage import Blob
from antiphon_kernel.tools._common import (
    BlockResult,
    WriteResult,
    attached_files,
    block_in,
    check_content_size,
    check_hiding,
    check_schema_size,
    wait_persisted,
    write,
)
from antiphon_kernel.tools.file_references import FileReference
from antiphon_kernel.types.block_metadata import CUT_OUT, FILE_REFERENCE
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.drift import drift_id
from antiphon_kernel.types.enums import ANSWERING_KINDS, BlockKind, PrincipalKind, Role, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params, permission_denied
from antiphon_kernel.types.media_types import (
    ATTACHABLE,
    is_of_type,
    is_text_type,
    media_type_of,
)
from antiphon_kernel.types.project_files import read_project_file
from antiphon_kernel.types.quoting import quote, truncate
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.validation import check_limit, check_value, reject_long_text


class CreateParams(Params):
    """A new block."""

    context: str | None = None
    """Label or id; the default context if it and the parent are absent."""
    parent_id: str | None = None
    """The block it answers. A block of a model has one; a tool_result answers its tool_call."""
    role: Role | None = None
    """Follows from who creates it: `user` for people, `model` for models, `system` for sources and
    the kernel; `tool` for every tool_result. No other one is accepted."""
    kind: BlockKind
    path: str | None = None
    """Of a block of kind `file` without content: the file of the project, or lines of it
    (`src/a.py#L10-L20`), that it refers to. Models read these as they are now, and what changes."""
    content: str | dict[str, Any] | list[Any] | None = None
    """The text it starts with; with a schema of another type, its content as `block.get` gives it.
    """
    block_schema: Schema = Field(default=TEXT, alias="schema")
    """Form of its content: `{"type": "text"}`, a map, a list, a log or a composite."""
    after: str | None = None
    """The block it stands after; at the end if absent."""
    status: Literal["pending", "done"] | None = None
    """Without content: pending. With content: running, or done if asked."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """tool_kind, tool_name, tool_call_id, input, path, language, ... and anything of your own.

    `more: true` in a tool_result says that the call has further results.
    """


class CreateResult(BlockResult):
    """Id and version of the block."""

    context_version: int


@tool(
    "block.create",
    needs=Permission.WRITE,
    errors=(
        *REFERENCES,
        ErrorCode.SCHEMA_VIOLATION,
        ErrorCode.TOO_LARGE,
    ),
)
async def create(call: Call, params: CreateParams) -> CreateResult:
    """Create a block at the end of a context or after another block.

    A schema that is not a text's gives it fields, items or sections, which start with their
    defaults; what it then lacks of required fields is told by `block.get` until it is set.
    A person's text that is done from the start is a message: it is answered like a submitted draft.
    """
    context, parent = await _place(call, params)
    role = check_role(params.role, params.kind, call.actor.principal)
    document, schema, content = context.document, params.block_schema, params.content
    text = content if isinstance(content, str) and schema == TEXT else ""
    reject_long_text(context.limits, len(text))
    check_schema_size(context, schema)
    check_defaults(schema)
    _check_parent(context, parent, call.actor.principal.kind, params.kind)
    after = await block_in(call, context, params.after) if params.after is not None else None
    fields = header_fields(params.metadata, context.limits, call.kernel.project)
    if params.path is not None:
        fields |= await _reference(call, params, fields.get("metadata", {}))
    if params.kind is BlockKind.TOOL_RESULT and parent is not None:
        fields["tool_call_id"] = _call_id(document.header(parent), fields.get("tool_call_id"))
        if after is not None and document.order.index(after) < document.order.index(parent):
            raise _before_its_call(parent, "after")
        _reject_second_result(context, parent)
    block = context.next_block_id(call.actor.principal.id)
    if content is not None:
        filled = fill_items(schema, content)
        check_content_size(context, content, filled.added)
        content = filled.value
        check_initial(schema, content, str(block))
    usual = Status.RUNNING if content else Status.PENDING
    status = Status.DONE if params.path is not None else Status(params.status or usual)

    def write() -> None:
        header = BlockHeader(
            id=str(block),
            kind=params.kind,
            role=role,
            status=status,
            order=order_after(document, after) if after else order_at_end(document),
            created=iso_time(call.kernel.clock.now_ms()),
            author=call.actor.principal.id,
            parent=parent,
            **fields,
        )
        document.create_block(header, text, schema=schema)
        if content is not None and schema != TEXT:
            for one in plan_set(document, str(block), None, content):
                one.apply()

    if not status.terminal:
        call.kernel.writers.writes(call.actor, str(block))
    written = context.write(call.actor, "create", write, blocks=())
    await written.saved()
    spoken = role is Role.USER and params.kind is BlockKind.TEXT and text.strip()
    if status is Status.DONE and spoken:
        call.kernel.submissions.notify(Submission(context, str(block), text, call.actor))
    version = written.versions[str(block)]
    return CreateResult.of(context, str(block), version=version, context_version=written.seq)


async def _reference(call: Call, params: CreateParams, metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a block that refers to a file."""
    if (
        params.kind is not BlockKind.FILE
        or params.content is not None
        or params.status == "pending"
    ):
        raise invalid_params(
            "A path is what a block of kind file refers to, which has no content of its own: give"
            " kind `file` and path, or leave path out.",
            field="path",
        )
    place = FilePlace.parse(params.path or "")
    file = await call.file(place.path)
    now = file.now()
    await file.context.wait_persisted()
    reference = FileReference(file.context.id, now.version, place.lines)
    return {
        "path": file.path.shown,
        "language": language_of(file.path),
        "metadata": {**metadata, FILE_REFERENCE: reference.as_json()},
    }


async def _place(call: Call, params: CreateParams) -> tuple[Context, str | None]:
    """The context that the block comes into, and the block that it answers."""
    if params.parent_id is None:
        return await call.context(params.context), None
    around, parent = await call.block(params.parent_id)
    context = await call.context(params.context) if params.context is not None else around
    if around is not context:
        raise invalid_params(
            f"The parent {params.parent_id} is not in context {context.label}:"
            " a parent and its children share a context.",
            field="parent_id",
        )
    return context, parent


def _check_parent(
    context: Context, parent: str | None, author: PrincipalKind, kind: BlockKind
) -> None:
    """Refuse a block that answers none and has to, or that ends too long a chain."""
    limit = context.limits.parent_depth
    if parent is not None and context.document.reply_depth(parent, limit) >= limit:
        raise invalid_params(
            f"The chain of parents above the new block would be longer than {limit}:"
            " answer a block nearer to the start.",
            field="parent_id",
            limit=limit,
        )
    if parent is None and kind is BlockKind.TOOL_RESULT:
        said = "A tool_result answers a call: give parent_id, the block of kind tool_call."
        raise invalid_params(said, field="parent_id")
    if parent is None and author is PrincipalKind.MODEL:
        raise invalid_params(
            "A block of a model answers another one: give parent_id, the prompt it answers or"
            " whatever else of this context made the model write.",
            field="parent_id",
        )


def _call_id(call: BlockHeader, stated: object) -> str | None:
    """The call's own number, which its result has too."""
    if call.kind != BlockKind.TOOL_CALL:
        raise invalid_params(
            f"A tool_result answers a call, and its parent {call.id} is a {call.kind}: give"
            " parent_id, the block of kind tool_call.",
            field="parent_id",
        )
    if stated is not None and stated != call.tool_call_id:
        raise invalid_params(
            f"The call {call.id} has another tool_call_id than its result was to have: leave it"
            " out, it is taken from the call.",
            field="metadata.tool_call_id",
            expected=call.tool_call_id,
        )
    return call.tool_call_id


def _before_its_call(call: str, field: str) -> AntiphonError:
    return invalid_params(
        f"A tool_result stands behind the call that it answers, {call}: name a place behind the"
        " call, or move both.",
        field=field,
        call=call,
    )


def _reject_second_result(context: Context, call: str) -> None:
    """Raise if a call has its result; one with `metadata.more` true says that another follows."""
    document = context.document
    for block in context.block_tree.descendants(call, 1):
        header = document.header(block)
        if header.kind == BlockKind.TOOL_RESULT and header.metadata.get("more") is not True:
            raise invalid_params(
                f"The call {call} has its result, {block}: write into that, or create a result"
                ' with metadata {"more": true} as long as others follow.',
                field="parent_id",
                result=block,
            )


class StatusParams(BlockParams):
    """The status a block takes on, and how it came to it."""

    status: Status
    exit_code: int | None = Field(default=None, ge=-EXACT_INTEGER, le=EXACT_INTEGER)
    duration_ms: int | None = Field(default=None, ge=0, le=EXACT_INTEGER)
    """How long the tool ran, in milliseconds."""
    is_error: bool | None = None
    truncated: bool | None = None
    stop_reason: str | None = None
    stopped_by: str | None = None
    """Username of whoever interrupted it."""


@tool(
    "block.status",
    needs=Permission.WRITE,
    errors=(
        *REFERENCES,
        ErrorCode.INVALID_TRANSITION,
        ErrorCode.TOO_LARGE,
    ),
)
async def status(call: Call, params: StatusParams) -> WriteResult:
    """Move a block on: pending, running, done or error, never back.

    A person's draft that becomes done is submitted: it moves to the end of the context. Only the
    author of a block or the owner of the kernel may do this; of a draft only its author.
    """
    context, block = await call.block(params.block_id)
    header = context.document.header(block)
    check_status(header, call.actor.principal, call.role)
    now = header.status
    if not isinstance(now, Status) or not now.may_become(params.status):
        allowed = [one.value for one in Status if isinstance(now, Status) and now.may_become(one)]
        raise AntiphonError(
            ErrorCode.INVALID_TRANSITION,
            f"Block {params.block_id} is {now} and cannot become {params.status};"
            f" allowed: {', '.join(allowed) or 'nothing'}.",
            status=str(now),
            allowed=allowed,
        )
    submits = header.is_draft and params.status is Status.DONE
    said = render(context.document, block) if submits else ""
    if submits and not said.strip():
        raise AntiphonError(
            ErrorCode.INVALID_TRANSITION,
            f"Block {params.block_id} is an empty draft, and an empty draft cannot be submitted:"
            " write something first.",
            status=str(header.status),
        )
    stated = params.model_dump(exclude={"block_id"}, exclude_none=True)
    fields = {name: value for name, value in stated.items() if value != getattr(header, name)}
    for name, value in fields.items():
        check_value(name, value, context.limits)

    def change() -> None:
        document = context.document
        if submits:  # with the files that are attached to it, behind everything else
            together = [block, *(one.id for one in attached_files(context, block))]
            if list(document.block_ids()[-len(together) :]) != together:
                orders = orders_at(document, len(document), len(together))
                for one, order in zip(together, orders, strict=True):
                    document.set_fields(one, order=order)
        document.set_fields(block, **fields)

    result = await write(call, context, block, "status", change, undo=None)
    if submits:
        call.kernel.submissions.notify(Submission(context, block, said, call.actor))
    return result


class MoveParams(BlockParams):
    """Block to move, and its new neighbour in its context: either `after` or `before`."""

    after: str | None = None
    """The block it comes to stand right after."""
    before: str | None = None
    """The block it comes to stand right before."""


class CollapseParams(BlockParams):
    """Block, and whether it is shown folded."""

    collapsed: bool = True
    """Whether only its head is shown; true if absent."""


class ExcludeParams(BlockParams):
    """Block, and whether models read it."""

    excluded: bool = True
    """Whether it is left out of what models are given; true if absent."""
    cut_out: bool = False
    """Whether it is not shown to people either, as long as it is excluded."""


@tool("block.move", needs=Permission.WRITE, errors=REFERENCES)
async def move(call: Call, params: MoveParams) -> WriteResult:
    """Put a block right after or right before another one of the same context.

    The parent stays what it is. A block that already stands there is not changed.
    """
    if (params.after is None) == (params.before is None):
        raise invalid_params(
            "block.move takes either after or before, found"
            f" {'neither' if params.after is None else 'both'}: name one neighbour.",
            field="after",
        )
    context, block = await call.block(params.block_id)
    reference = params.after or params.before or ""
    beside = await block_in(call, context, reference)
    if beside == block:
        raise invalid_params(
            f"Block {params.block_id} cannot stand next to itself: name another one.",
            field="after" if params.after is not None else "before",
        )
    document, after = context.document, params.after is not None
    place, there = document.order.index(block), document.order.index(beside)
    _reject_result_before_call(context, block, beside, after=after)
    if place == (there + 1 if after else there - 1):
        return await _arrange(call, context, block, "move")
    check_arrange(document.header(block), call.actor.principal, call.role)

    def change() -> None:
        order = (order_after if after else order_before)(document, beside, without=block)
        document.set_fields(block, order=order)

    return await write(call, context, block, "move", change, undo=None)


def _reject_result_before_call(context: Context, block: str, beside: str, *, after: bool) -> None:
    """Raise if a move would put a tool's result before the call that it answers."""
    document = context.document
    header, index = document.header(block), document.order.index
    field = "after" if after else "before"
    call = header.parent
    if header.kind == BlockKind.TOOL_RESULT and call is not None and call in document:
        if index(beside) < index(call) or (beside == call and not after):
            raise _before_its_call(call, field)
    if header.kind == BlockKind.TOOL_CALL:
        for result in context.block_tree.descendants(block, 1):
            if document.header(result).kind != BlockKind.TOOL_RESULT:
                continue
            if index(result) < index(beside) or (beside == result and after):
                raise _before_its_call(block, field)


@tool("block.collapse", needs=Permission.WRITE, errors=REFERENCES)
async def collapse(call: Call, params: CollapseParams) -> WriteResult:
    """Fold a block for everybody, or unfold it."""
    context, block = await call.block(params.block_id)
    return await _arrange(call, context, block, "collapse", collapsed=params.collapsed)


@tool("block.exclude", needs=Permission.WRITE, errors=REFERENCES)
async def exclude(call: Call, params: ExcludeParams) -> WriteResult:
    """Leave a block out of what models are given, or let them read it again.

    A call goes with its results, a drift with the blocks that it brought. With `cut_out` apps do
    not show it either; `excluded: false` brings it back. A model hides only what stands behind the
    pre-tail cache point that `context.layout` shows.
    """
    context, block = await call.block(params.block_id)
    if params.excluded and call.actor.principal.kind in ANSWERING_KINDS:
        await layout_of(context).load()
        check_hiding(context, block, call.actor.principal)
    metadata = dict(context.document.header(block).metadata)
    if params.excluded and params.cut_out:
        if call.actor.principal.kind in ANSWERING_KINDS:
            raise permission_denied(
                f"You are {call.actor.principal.username}, a model, and only people decide what"
                " people are not shown: leave out cut_out.",
                block_id=params.block_id,
                username=call.actor.principal.username,
            )
        metadata[CUT_OUT] = True
    else:
        metadata.pop(CUT_OUT, None)
    return await _arrange(
        call, context, block, "exclude", excluded=params.excluded, metadata=metadata
    )


async def _arrange(
    call: Call, context: Context, block: str, operation: str, **fields: object
) -> WriteResult:
    """Set fields, unless they are so already; permission comes first in either case."""
    header = context.document.header(block)
    if operation != "collapse":
        check_arrange(header, call.actor.principal, call.role)
    changed = {name: value for name, value in fields.items() if value != getattr(header, name)}
    if not changed:
        await context.wait_persisted()
        return WriteResult(version=context.blocks.version(block), context_version=context.seq)
    copies: list[str] = []
    if header.kind == BlockKind.DRIFT and "excluded" in changed:
        below = context.block_tree.descendants(block, context.limits.parent_depth)
        told, brought = drift_id(header.metadata), context.document.headers(below)
        copies = [one.id for one in brought if drift_id(one.metadata) == told]

    def change() -> None:
        context.document.set_fields(block, **changed)
        for copy in copies:
            context.document.set_fields(copy, excluded=changed["excluded"])

    blocks = [block, *copies]
    written = context.write(call.actor, operation, change, blocks=blocks, undo=None)
    return await wait_persisted(context, block, written)


class AttachedFile(Params):
    """A file: either a `path` in the project, or a `name` with the bytes as `data`."""

    path: str | None = Field(default=None, min_length=1, max_length=4_096)
    """A file of the kernel's project, relative to its root; for owners."""
    name: str | None = Field(default=None, min_length=1, max_length=255)
    """File name, without folders."""
    data: str | None = None
    """Its bytes as base64."""
    media_type: str | None = None
    """Media type: checked against its content, from which it is told if absent. A file that is
    text may be of any type `text/…`."""
    summary: str | None = None
    """One line that models are shown with it."""


class AttachParams(Params):
    """A message, and files to attach to it."""

    block_id: str
    """The message: a draft or a text of role user, and one's own."""
    files: list[AttachedFile] = Field(min_length=1)
    """All of them are attached, or none."""


class Attachment(Result):
    """A file that is attached."""

    block_id: str
    """Its block, which holds the text of a file that is text."""
    name: str
    media_type: str
    """As its content says."""
    bytes: int
    """Size of the file."""
    sha256: str
    """Hash of its bytes."""
    added: bool
    """False if this message had a file of this name and content already."""


class AttachResult(Result):
    """Files of a message."""

    attachments: list[Attachment]
    """In the order of the request."""
    context_version: int


@dataclass(frozen=True, slots=True)
class FileToWrite:
    """A file that may be written into a block."""

    path: str
    blob: Blob
    media_type: str
    summary: str | None = None


@tool("block.attach", needs=Permission.WRITE, errors=(*REFERENCES, ErrorCode.TOO_LARGE))
async def attach(call: Call, params: AttachParams) -> AttachResult:
    """Attach text files, images and PDFs to a message of one's own.

    Each becomes a block of kind file below the message, which models read with it. What a file is
    is told by its content. The same file under the same name is attached once.
    """
    _check_count(len(params.files), call.kernel.limits)
    files = [await _read(call, at, one) for at, one in enumerate(params.files)]
    context, message = await call.block(params.block_id)
    header, caller = context.document.header(message), call.actor.principal.id
    if header.kind != BlockKind.TEXT or header.role != Role.USER or header.author != caller:
        raise invalid_params(
            f"Files are attached to a message of one's own, a text of role user, and block"
            f" {message} is a {header.kind} of role {header.role} by"
            f" {context.username(header.author)}: create a message first.",
            field="block_id",
            block=message,
        )
    blocks = {(one.path, one.blob): one.id for one in attached_files(context, message)}
    new: dict[str, FileToWrite] = {}
    for file in files:
        key = file.path, file.blob.hash
        if key not in blocks:
            blocks[key] = str(context.next_block_id(call.actor.principal.id))
            new[blocks[key]] = file
    _check_count(len(blocks), context.limits)
    if new:
        of_message = {"kind": BlockKind.FILE, "role": Role.USER, "parent": message}
        await write_files(call, context, message, new, **of_message)
    else:
        await context.wait_persisted()
    return AttachResult(
        attachments=[
            Attachment(
                block_id=(block := blocks[file.path, file.blob.hash]),
                name=context.block_name(block),
                media_type=str(context.document.header(block).media_type),
                bytes=len(file.blob.data),
                sha256=file.blob.hash,
                added=block in new,
            )
            for file in files
        ],
        context_version=context.seq,
    )


def _check_count(count: int, limits: Limits) -> None:
    what = f"The message would have {count} attached files"
    check_limit(count, limits, "attachments_per_message", what, "send another message")


async def write_files(
    call: Call, context: Context, after: str, new: Mapping[str, FileToWrite], **fields: Any
) -> None:
    """Write files into blocks of their own behind another one.

    Args:
        new: by id of the block.
        fields: of their headers.
    """
    document = context.document

    def write() -> None:
        orders = orders_at(document, document.order.index(after) + 1, len(new))
        for order, (block, file) in zip(orders, new.items(), strict=True):
            content = NewFile.of(file.blob.data)
            summary = {"summary": file.summary} if file.summary is not None else {}
            header = BlockHeader(
                id=block,
                status=Status.DONE,
                order=order,
                created=iso_time(call.kernel.clock.now_ms()),
                author=call.actor.principal.id,
                path=file.path,
                media_type=file.media_type,
                blob=file.blob.hash,
                blob_bytes=content.size,
                metadata={**summary, **content.metadata},
                **fields,
            )
            document.create_block(header, content.text)

    blobs = [file.blob for file in new.values()]
    await context.write(call.actor, "attach", write, blocks=(), undo=None, blobs=blobs).saved()


async def _read(call: Call, at: int, asked: AttachedFile) -> FileToWrite:
    """Read a file and see what it is.

    Raises:
        AntiphonError: invalid_params, too_large, permission_denied.
    """
    field = f"files.{at}"
    limits = call.kernel.limits
    if asked.path is not None and asked.name is None and asked.data is None:
        check_project_files(call.actor.principal, call.role)
        name, limit = asked.path, limits.attachment_bytes
        project = call.kernel.project
        data = await asyncio.to_thread(
            read_project_file, project, asked.path, limit, "attachment_bytes"
        )
    elif asked.path is None and asked.name is not None and asked.data is not None:
        name = asked.name
        try:
            data = b64decode(asked.data, validate=True)
        except (binascii.Error, ValueError) as error:
            raise _wrong(f"{field}.data", f"It is not base64 ({error}): encode the file") from error
        if "/" in name or name in (".", ".."):
            raise _wrong(f"{field}.name", f"{quote(name)} is no name of a file: leave out folders")
    else:
        raise _wrong(field, "A file is given by its path, or by name and data: give one of the two")
    check_value("path", name, limits, prefix=f"{field}.")
    if asked.summary is not None:
        check_value("metadata", {"summary": asked.summary}, limits, prefix=f"{field}.")
    found, stated = media_type_of(data) if data else None, asked.media_type
    if found is None:
        what = "is of no type that models read" if data else "is empty"
        raise _wrong(field, f"The file {quote(name)} {what}: attach one of {', '.join(ATTACHABLE)}")
    if stated is not None and not is_of_type(data, stated):
        raise _wrong(
            f"{field}.media_type",
            f"The content of {quote(name)} is {found}, not {quote(stated)}: leave media_type out",
            expected=found,
            found=truncate(stated),
        )
    media_type = stated or found
    what = f"The file {quote(name)} has {len(data)} bytes"
    check_limit(len(data), limits, "attachment_bytes", what, _PART_OF_IT)
    if is_text_type(media_type):
        check_limit(len(data), limits, "attachment_text_bytes", f"{what} of text", _PART_OF_IT)
    return FileToWrite(name, Blob.of(data), media_type, asked.summary)


_PART_OF_IT: Final = "attach a part of it"


def _wrong(field: str, what: str, **details: Any) -> AntiphonError:
    return invalid_params(f"{what}. Nothing was attached.", field=field, **details)
