"""`block.attach`: files that models read with a message."""

from __future__ import annotations

import asyncio
import binascii
from base64 import b64decode
from dataclasses import dataclass
from typing import Any, Final

from pydantic import Field

from antiphon_kernel.access import check_project_files
from antiphon_kernel.contexts import Context, orders_after
from antiphon_kernel.conversation import NewFile
from antiphon_kernel.kernel import Call
from antiphon_kernel.limits import Limits
from antiphon_kernel.registry import REFERENCES, Params, Result, tool
from antiphon_kernel.storage import Blob
from antiphon_kernel.tools._common import attached_files
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
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
from antiphon_kernel.validation import check_limit, check_value


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
class _File:
    """A file that may be attached."""

    path: str
    blob: Blob
    media_type: str
    summary: str | None


@tool("block.attach", needs=Permission.WRITE, errors=(*REFERENCES, ErrorCode.TOO_LARGE))
async def attach(call: Call, params: AttachParams) -> AttachResult:
    """Attach text files, images and PDFs to a message of one's own.

    Each becomes a block of kind file below the message, which models read with it. What a file is
    is told by its content. The same file under the same name is attached once.
    """
    _check_count(len(params.files), call.kernel.limits)
    files = [await _read(call, at, one) for at, one in enumerate(params.files)]
    context, message = await call.block(params.block_id)
    _check_message(context, message, call.actor.principal.id)
    blocks = {(one.path, one.blob): one.id for one in attached_files(context, message)}
    new: dict[str, _File] = {}
    for file in files:
        key = file.path, file.blob.hash
        if key not in blocks:
            blocks[key] = str(context.next_block_id(call.actor.principal.id))
            new[blocks[key]] = file
    _check_count(len(blocks), context.limits)
    if new:
        await _write(call, context, message, new)
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


async def _write(call: Call, context: Context, message: str, new: dict[str, _File]) -> None:
    document = context.document

    def write() -> None:
        orders = orders_after(document, message, len(new))
        for order, (block, file) in zip(orders, new.items(), strict=True):
            content = NewFile.of(file.blob.data)
            summary = {"summary": file.summary} if file.summary is not None else {}
            header = BlockHeader(
                id=block,
                kind=BlockKind.FILE,
                role=Role.USER,
                status=Status.DONE,
                order=order,
                created=iso_time(call.kernel.clock.now_ms()),
                author=call.actor.principal.id,
                parent=message,
                path=file.path,
                media_type=file.media_type,
                blob=file.blob.hash,
                blob_bytes=content.size,
                metadata={**summary, **content.metadata},
            )
            document.create_block(header, content.text)

    blobs = [file.blob for file in new.values()]
    await context.write(call.actor, "attach", write, blocks=(), undo=None, blobs=blobs).saved()


def _check_message(context: Context, message: str, caller: str) -> None:
    header = context.document.header(message)
    if header.kind == BlockKind.TEXT and header.role == Role.USER and header.author == caller:
        return
    raise invalid_params(
        f"Files are attached to a message of one's own, a text of role user, and block {message} is"
        f" a {header.kind} of role {header.role} by {context.username(header.author)}: create a"
        " message first.",
        field="block_id",
        block=message,
    )


async def _read(call: Call, at: int, asked: AttachedFile) -> _File:
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
            raise _wrong(f"{field}.data", f"it is not base64 ({error}): encode the file") from error
        if "/" in name or name in (".", ".."):
            raise _wrong(f"{field}.name", f"{quote(name)} is no name of a file: leave out folders")
    else:
        raise _wrong(field, "a file is given by its path, or by name and data: give one of the two")
    check_value("path", name, limits, prefix=f"{field}.")
    if asked.summary is not None:
        check_value("metadata", {"summary": asked.summary}, limits, prefix=f"{field}.")
    media_type = _media_type(field, name, data, asked.media_type)
    what = f"The file {quote(name)} has {len(data)} bytes"
    check_limit(len(data), limits, "attachment_bytes", what, _PART_OF_IT)
    if is_text_type(media_type):
        check_limit(len(data), limits, "attachment_text_bytes", f"{what} of text", _PART_OF_IT)
    return _File(name, Blob.of(data), media_type, asked.summary)


_PART_OF_IT: Final = "attach a part of it"


def _media_type(field: str, name: str, data: bytes, stated: str | None) -> str:
    found = media_type_of(data) if data else None
    if found is None:
        what = "is of no type that models read" if data else "is empty"
        raise _wrong(field, f"the file {quote(name)} {what}: attach one of {', '.join(ATTACHABLE)}")
    if stated is None or is_of_type(data, stated):
        return stated or found
    raise _wrong(
        f"{field}.media_type",
        f"the content of {quote(name)} is {found}, not {quote(stated)}: leave media_type out",
        expected=found,
        found=truncate(stated),
    )


def _wrong(field: str, what: str, **details: Any) -> AntiphonError:
    sentence = what[0].upper() + what[1:]
    return invalid_params(f"{sentence}. Nothing was attached.", field=field, **details)
