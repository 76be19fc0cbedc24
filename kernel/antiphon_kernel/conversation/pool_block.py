"""Block of a context's sources pool: how it is told from others, and what it holds."""

from __future__ import annotations

from typing import Any, Final

from antiphon_kernel.document.content import read_value
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.schema import (
    CompositeSchema,
    FieldSchema,
    FieldType,
    ListSchema,
    MapSchema,
    Section,
)
from antiphon_kernel.document.schema_validation import is_whole
from antiphon_kernel.layout import PoolSource
from antiphon_kernel.types.ids import SYSTEM
from antiphon_kernel.types.records import BlockHeader

POOL_TYPE: Final = "sources.pool"
"""Value of `metadata.type` of the block."""

POOL_SECTION: Final = "sources"

_IN_ID: Final = f".{SYSTEM}."
"""Part of the ids of blocks that the kernel made."""

POOL_SCHEMA: Final = CompositeSchema(
    sections=(
        Section(
            name=POOL_SECTION,
            content=ListSchema(
                item_schema=MapSchema(
                    fields=(
                        FieldSchema(name="sid", field_type=FieldType.NUMBER, required=True),
                        *(
                            FieldSchema(name=name, field_type=FieldType.TEXT)
                            for name in ("url", "path", "title", "text")
                        ),
                    )
                )
            ),
            read_only=True,
        ),
    )
)


def find_pool(document: Document) -> str | None:
    """Return the block of the sources pool; None if nothing has been added yet."""
    systems = (block for block in document.block_ids() if _IN_ID in block)
    return next((one for one in systems if is_pool(document, document.header(one))), None)


def is_pool(document: Document, header: BlockHeader) -> bool:
    """Return whether a block is the sources pool, which nobody but the kernel makes."""
    is_systems = header.author == SYSTEM and _IN_ID in header.id
    is_marked = is_systems and header.metadata.get("type") == POOL_TYPE
    return is_marked and document.schema(header.id) == POOL_SCHEMA


def read_sources(document: Document) -> tuple[PoolSource, ...]:
    """Return every source, in the order of their numbers."""
    block = find_pool(document)
    return read_pool(document, block) if block is not None else ()


def shown_sources(document: Document) -> tuple[PoolSource, ...]:
    """Return the sources that models are shown: none if somebody has excluded the pool."""
    block = find_pool(document)
    is_shown = block is not None and not document.header(block).excluded
    return read_sources(document) if is_shown else ()


def read_pool(document: Document, block: str) -> tuple[PoolSource, ...]:
    """Return every source of the pool's block."""
    items: list[dict[str, Any]] = read_value(document, block, POOL_SECTION)
    return tuple(
        PoolSource(int(item["sid"]), *map(item.get, ("url", "path", "title", "text")))
        for item in items
        if is_whole(item.get("sid"))  # an import takes over what merging has broken
    )


def pool_item(source: PoolSource) -> dict[str, Any]:
    """Return a source as the block holds it."""
    fields = {
        "sid": source.sid,
        "url": source.url,
        "path": source.path,
        "title": source.title,
        "text": source.text,
    }
    return {name: value for name, value in fields.items() if value is not None}
