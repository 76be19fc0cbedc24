"""Blocks of a document as the values that a layout is made of."""

from __future__ import annotations

from antiphon_kernel.document.document import Document
from antiphon_kernel.document.header import json_object
from antiphon_kernel.document.rendering import render
from antiphon_kernel.document.schema import TEXT
from antiphon_kernel.layout import BlockAuthor, LayoutBlock
from antiphon_kernel.types.clock import moment_of
from antiphon_kernel.types.enums import PrincipalKind, Role
from antiphon_kernel.types.frozen_json import JsonObject
from antiphon_kernel.types.ids import SYSTEM, SYSTEM_NAME
from antiphon_kernel.types.records import BlockHeader


def layout_blocks(document: Document) -> list[LayoutBlock]:
    """Return every block in document order, without drafts."""
    authors: dict[str, BlockAuthor] = {}
    return [
        _block(document, document.header(block), authors)
        for block in document.block_ids()
        if not document.is_draft(block)
    ]


def _block(document: Document, header: BlockHeader, authors: dict[str, BlockAuthor]) -> LayoutBlock:
    author = authors.get(header.author)
    if author is None:
        author = authors[header.author] = _author(document, header)
    is_text = document.schema(header.id) == TEXT
    return LayoutBlock(
        id=header.id,
        author=author,
        role=header.role,
        kind=header.kind,
        created=_created(header),
        text=document.peek_text(header.id) if is_text else render(document, header.id),
        status=header.status,
        parent=header.parent,
        excluded=header.excluded,
        tool_name=header.tool_name,
        parameters=JsonObject(json_object(header.input)) if header.input else JsonObject(),
        exit_code=header.exit_code,
        is_error=header.is_error,
        truncated=header.truncated,
        stop_reason=header.stop_reason,
        file=header.path,
        metadata=header.metadata,
    )


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


def _created(header: BlockHeader) -> int:
    """Return the time of creation in milliseconds; the beginning if what is stored is no time."""
    try:
        return moment_of(header.created)
    except ValueError:
        return 0
