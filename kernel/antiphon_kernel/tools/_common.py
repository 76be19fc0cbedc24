"""Parts that tools share: references, limits, checks of texts, results of writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, Final, Self

from antiphon_kernel.contexts import CommitHandle, Context, UndoKind
from antiphon_kernel.conversation import NewFile, layout_of
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.schema import (
    Schema,
    TextSchema,
    added_by_defaults,
    each_part,
    encode_schema,
    is_text,
    names_of,
    part_at,
    path_of,
)
from antiphon_kernel.kernel import Call
from antiphon_kernel.layout import visible, why_not_hidden
from antiphon_kernel.messages import DocumentBlock, ImageBlock, Message, SystemMessage
from antiphon_kernel.registry import REFERENCES, Result
from antiphon_kernel.text.merge_edits import EditConflict
from antiphon_kernel.types.enums import ANSWERING_KINDS, BlockKind, Role
from antiphon_kernel.types.errors import (
    ErrorCode,
    block_not_found,
    invalid_params,
    permission_denied,
)
from antiphon_kernel.types.media_types import is_of_type
from antiphon_kernel.types.quoting import LISTED, join_names, quote
from antiphon_kernel.types.records import Actor, BlockHeader, Principal
from antiphon_kernel.validation import check_limit, reject_long_text, reject_read_only


async def block_in(call: Call, context: Context, reference: str) -> str:
    """The id of a block that must be in `context`.

    Raises:
        AntiphonError: block_not_found, ambiguous_id, context_not_found.
    """
    found, block = await call.block(reference)
    if found is not context:
        raise block_not_found(
            f"There is no block {quote(reference)} in context {context.label}.", reference
        )
    return block


def attached_files(context: Context, message: str) -> list[BlockHeader]:
    """The headers of the files that are attached to a message, in document order."""
    below = map(context.document.header, context.block_tree.descendants(message, 1))
    return [one for one in below if one.kind == BlockKind.FILE and one.role == Role.USER]


async def read_stored_files(
    call: Call,
    messages: Iterable[Message | SystemMessage],
    known: Mapping[str, NewFile] | None = None,
) -> dict[str, NewFile]:
    """Return the images and documents that messages name and the kernel has, by hash.

    Args:
        known: those that need not be looked for.

    Raises:
        AntiphonError: invalid_params if one is not there, or is of another type.
    """
    found: dict[str, NewFile] = {}
    for block in chain.from_iterable(message.content for message in messages):
        if not isinstance(block, ImageBlock | DocumentBlock) or block.hash in (known or {}):
            continue
        data = await call.kernel.journal.blob(block.hash)
        if data is None or not is_of_type(data, block.media_type):
            raise invalid_params(
                f"There is no file of type {block.media_type} with the hash {block.hash} here:"
                " attach it to a message with block.attach first.",
                field="messages",
                found=block.hash,
            )
        found[block.hash] = NewFile.of(data)
    return found


def check_hiding(context: Context, block: str, principal: Principal) -> None:
    """Refuse a model that would hide from models what they have read for long.

    Raises:
        AntiphonError: permission_denied.
    """
    if principal.kind not in ANSWERING_KINDS or context.document.header(block).excluded:
        return
    reason = why_not_hidden(visible(layout_of(context).arranged()).items, block)
    if reason is not None:
        raise permission_denied(
            f"You are {principal.username}, a model, and cannot hide block {block}: {reason}.",
            block_id=block,
            username=principal.username,
        )


def check_context_version(context: Context, version: int, named: int, field: str) -> None:
    """Raises AntiphonError invalid_params if a context whose version is known has not `named`."""
    if named > version:
        raise invalid_params(
            f"Context {context.label} has the version {version}, there is none numbered"
            f" {quote(named)}: name one that a call has returned.",
            field=field,
            current_version=version,
        )


def check_value_size(context: Context, value: Any, added: int = 0) -> None:
    """Raises AntiphonError too_large if one value that is no text is larger than allowed.

    Args:
        added: code points that defaults add to it.
    """
    found = len(json.dumps(value, ensure_ascii=False)) + added
    what = f"The value has {found} code points as JSON"
    check_limit(found, context.limits, "value_code_points", what, "split it")


def check_content_size(context: Context, value: Any, added: int = 0) -> None:
    """Raises AntiphonError too_large if a whole content is larger than allowed.

    Args:
        added: code points that defaults add to it.
    """
    size = len(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    reject_long_text(context.limits, size + added)


def check_schema_size(context: Context, schema: Schema) -> None:
    """Raises AntiphonError too_large if a schema is longer or deeper than allowed."""
    if isinstance(schema, TextSchema):
        return
    size, depth = len(encode_schema(schema)), max(len(names) for names, _ in each_part(schema))
    added = added_by_defaults(schema)
    for found, limit, what in (
        (size, "schema_code_points", f"The schema has {size} code points of JSON"),
        (depth, "section_depth", f"The schema has {depth} sections inside each other"),
        (added, "value_code_points", f"The defaults of items add {added} code points of JSON"),
    ):
        check_limit(found, context.limits, limit, what, "use several blocks")


def check_text(document: Document, block: str, section: str | None) -> None:
    """Refuse a place of a block where there is no text.

    Raises:
        AntiphonError: invalid_params, with the paths that lead to one.
    """
    schema = document.schema(block)
    if is_text(part_at(schema, section)):
        return
    texts = [path_of(names) for names, part in each_part(schema) if is_text(part)]
    named = [path for path in texts if path is not None]
    if named:
        advice = f"name one of its texts as section: {join_names(named)}"
    elif texts:
        advice = "it is one text, so leave section out"
    else:
        advice = "it has no text at all"
    what = f"no text {quote(section)}" if section is not None else "no text of its own"
    raise invalid_params(
        f"Block {block} has {what}: {advice}.",
        field="section",
        allowed=named[:LISTED],
    )


def check_writable(document: Document, actor: Actor, block: str, section: str | None) -> None:
    """Refuse a text that there is not, or that only the system and sources write.

    Raises:
        AntiphonError: invalid_params, read_only_field, read_only_section.
    """
    reject_read_only(actor, block, document.schema(block), names_of(section))
    check_text(document, block, section)


WRITING: Final = (
    *REFERENCES,
    ErrorCode.READ_ONLY_FIELD,
    ErrorCode.READ_ONLY_SECTION,
    ErrorCode.TOO_LARGE,
)
"""Errors of a tool that writes into a text or a content."""


class PrincipalResult(Result):
    """Somebody by id and name."""

    principal: str
    username: str

    @classmethod
    def of(cls, who: Principal, **fields: Any) -> Self:
        """Return what is told of somebody, and further `fields`."""
        return cls(principal=who.id, username=who.username, **fields)


class BlockResult(Result):
    """A block, and its version."""

    block_id: str
    name: str
    version: int

    @classmethod
    def of(cls, context: Context, block: str, **fields: Any) -> Self:
        """Return what is told of a block as it is now; `fields` may name another version."""
        known = {"name": context.block_name(block), "version": context.blocks.version(block)}
        return cls(block_id=block, **known | fields)


class ConflictTexts(Result):
    """A place that two sides have changed, each in its own way."""

    base: str
    """The text that both began with."""
    ours: str
    """The text here, or of the target of a merge."""
    theirs: str
    """The text on disk, or of the fork that is merged."""

    @classmethod
    def of(cls, conflict: EditConflict, **fields: Any) -> Self:
        """Return what is told of a conflict, and further `fields`."""
        base, ours, theirs = conflict.base.text, conflict.ours.text, conflict.theirs.text
        return cls(base=base, ours=ours, theirs=theirs, **fields)


class PageResult(Result):
    """A page of a list of blocks or messages."""

    truncated: bool
    next: str | None = None
    """Value of `after_block` or `after_message` for the rest."""
    next_name: str | None = None


class WriteResult(Result):
    """Number of changes of the block."""

    version: int
    context_version: int


async def write(
    call: Call,
    context: Context,
    block: str,
    operation: str,
    change: Callable[[], None],
    undo: UndoKind | None = UndoKind.CALL,
) -> WriteResult:
    """Change one block for the caller; the answer, once that is on disk.

    Raises:
        AntiphonError: what `Context.write` raises.
    """
    written = context.write(call.actor, operation, change, blocks=[block], undo=undo)
    return await wait_persisted(context, block, written)


async def wait_persisted(context: Context, block: str, written: CommitHandle) -> WriteResult:
    """The answer about one block, once a change is on disk."""
    await written.saved()
    version = written.versions.get(block, context.blocks.version(block))
    return WriteResult(version=version, context_version=written.seq)


async def text_at(
    context: Context, block: str, version: int | None, section: str | None = None
) -> str:
    """Return a text as it was at a version of the block; as it is now if None.

    Raises:
        AntiphonError: invalid_params if the block has never had this version; storage_failed.
    """
    if version in (None, context.blocks.version(block)):
        return context.document.text(block, section)
    check_version(context, block, version)
    return (await context.history(block)).text(section, version)


def check_version(context: Context, block: str, version: int) -> None:
    """Raises AntiphonError invalid_params if a block has never had a version."""
    now = context.blocks.version(block)
    if not 1 <= version <= now:
        raise invalid_params(
            f"There is no version {quote(version)} of block {block}: it has had 1 to {now};"
            " give one that a read or a change has answered.",
            field="version",
            found=version,
            version=now,
        )
