"""Layout of one context, kept up to date with its document."""

from __future__ import annotations

from antiphon_kernel.contexts.pool_block import find_pool, is_pool
from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.header import json_object
from antiphon_kernel.document.rendering import render
from antiphon_kernel.document.schema import TEXT
from antiphon_kernel.layout import (
    BlockAuthor,
    CallPath,
    CodePath,
    Layout,
    LayoutBlock,
    LayoutPath,
    SourcesPath,
    arrange,
    copied_ids,
)
from antiphon_kernel.time_slice import TimeSlice
from antiphon_kernel.types.clock import moment_of
from antiphon_kernel.types.enums import PrincipalKind, Role
from antiphon_kernel.types.frozen_json import JsonObject
from antiphon_kernel.types.ids import SYSTEM, SYSTEM_NAME
from antiphon_kernel.types.records import BlockHeader


class ContextLayout:
    """The blocks of one document in turns and rounds; read when first asked for.

    Reading a block out of the document takes longer than all that is made of it, so what was read
    is kept until the block changes.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._blocks: dict[str, LayoutBlock] = {}
        self._arranged: Layout | None = None
        self._paths: dict[LayoutPath, str] | None = None
        self._is_watching = False
        self._is_stale = False

    async def load(self) -> Layout:
        """Read what is not known yet, in short slices; then return what `arranged` does."""
        self._watch()
        document, authors, time_slice = self._document, dict[str, BlockAuthor](), TimeSlice()
        for block in tuple(document.block_ids()):
            if block not in self._blocks and block in document and _is_read(document, block):
                self._blocks[block] = _block(document, document.header(block), authors)
                await time_slice.pause()
        return self.arranged()

    def arranged(self) -> Layout:
        """Return every block in its turn and round, as `arrange` does."""
        self._watch()
        if self._arranged is None or self._is_stale:
            self._arranged = arrange(self._read(), self._arranged)
            self._is_stale = False
        return self._arranged

    def find(self, path: LayoutPath) -> str | None:
        """Return the id of the block of a path; None if there is none."""
        layout = self.arranged()
        if self._paths is None:
            self._paths = {
                item.path: item.block.id for item in layout.items if item.path is not None
            }
        if isinstance(path, SourcesPath):
            return find_pool(self._document)
        if isinstance(path, CodePath):
            path = CallPath(path.turn, path.call, "call", path.suffix)
        return self._paths.get(path)

    def turn_of(self, block: str) -> str | None:
        """Return the id of a block's turn; None if there is no such block, or it is a draft."""
        items = (item for item in self.arranged().items if item.is_block)
        return next((item.turn for item in items if item.block.id == block), None)

    def _watch(self) -> None:
        if not self._is_watching:
            self._is_watching = True
            self._document.watch(self._follow)

    def _read(self) -> list[LayoutBlock]:
        document, known, authors = self._document, self._blocks, dict[str, BlockAuthor]()
        read: list[LayoutBlock] = []
        for block in document.block_ids():
            one = known.get(block)
            if one is None:
                if not _is_read(document, block):
                    continue
                one = known[block] = _block(document, document.header(block), authors)
            read.append(one)
        return read

    def _follow(self, change: DocumentChange) -> None:
        for block in change.touched:
            self._blocks.pop(block, None)
        self._is_stale = True
        self._paths = None


def _is_read(document: Document, block: str) -> bool:
    """Whether a block stands in the stream: the sources pool stands behind it."""
    return not (document.is_draft(block) or is_pool(document, block))


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
        media_type=header.media_type,
        blob=header.blob,
        blob_bytes=header.blob_bytes,
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


def copied_names(header: BlockHeader, copy: str) -> dict[str, str]:
    """Return what is derived from the id of a block, by that which is from the id of its copy."""
    return copied_ids(header.id, copy, _created(header))


def _created(header: BlockHeader) -> int:
    """Return the time of creation in milliseconds; the beginning if what is stored is no time."""
    try:
        return moment_of(header.created)
    except ValueError:
        return 0
