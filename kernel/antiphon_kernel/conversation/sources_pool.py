"""Sources pool of a context: one block of the kernel's own, with a list that only grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from antiphon_kernel.contexts.context import Context
from antiphon_kernel.contexts.ordering import order_at_end
from antiphon_kernel.document.content import read_value
from antiphon_kernel.document.content_writes import Write, plan_delete, plan_insert
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.schema import (
    CompositeSchema,
    FieldSchema,
    FieldType,
    ListSchema,
    MapSchema,
    Section,
    is_whole,
)
from antiphon_kernel.layout import PoolSource
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.drift import is_drifted
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.ids import SYSTEM
from antiphon_kernel.types.records import Actor, BlockHeader
from antiphon_kernel.validation import check_limit

_TYPE: Final = "sources.pool"
"""Value of `metadata.type` of the block."""

_SECTION: Final = "sources"

_IN_ID: Final = f".{SYSTEM}."
"""Part of the ids of blocks that the kernel made."""

_SCHEMA: Final = CompositeSchema(
    sections=(
        Section(
            name=_SECTION,
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
    is_marked = is_systems and header.metadata.get("type") == _TYPE
    return is_marked and not is_drifted(header.metadata) and document.schema(header.id) == _SCHEMA


def read_sources(document: Document) -> tuple[PoolSource, ...]:
    """Return every source, in the order of their numbers."""
    block = find_pool(document)
    items: list[dict[str, Any]] = read_value(document, block, _SECTION) if block else []
    return tuple(
        PoolSource(int(item["sid"]), *map(item.get, ("url", "path", "title", "text")))
        for item in items
        if is_whole(item.get("sid"))  # an import takes over what merging has broken
    )


def shown_sources(document: Document) -> tuple[PoolSource, ...]:
    """Return the sources that models are shown: none if somebody has excluded the pool."""
    block = find_pool(document)
    is_shown = block is not None and not document.header(block).excluded
    return read_sources(document) if is_shown else ()


def _item(source: PoolSource) -> dict[str, Any]:
    """Return a source as the block holds it."""
    return {name: value for name, value in asdict(source).items() if value is not None}


def add_sources(
    context: Context, system: Actor, actor: Actor, wanted: Sequence[PoolSource], time: int
) -> list[tuple[PoolSource, bool]]:
    """Add sources to the pool, which is made if there is none.

    Returns them as they are there, and whether each is new.

    One that is there keeps its number; title and text are added to it if it has none. Nothing is
    awaited here, so two who add the same at once get the same number.

    Args:
        wanted: their numbers say nothing.
        time: of now, in milliseconds.

    Raises:
        AntiphonError: permission_denied, too_large, storage_failed.
    """
    context.guard.check_writer(actor)
    document = context.document
    block = find_pool(document)
    sources = list(read_sources(document))
    count = len(sources)
    index = {one.place: at for at, one in enumerate(sources)}
    changed: set[int] = set()
    added: list[tuple[PoolSource, bool]] = []
    for one in wanted:
        at = index.get(one.place)
        if at is None:
            at = index[one.place] = len(sources)
            sources.append(replace(one, sid=sources[-1].sid + 1 if sources else 1))
            added.append((sources[at], True))
            continue
        there = sources[at]
        filled = replace(there, title=there.title or one.title, text=there.text or one.text)
        if filled != there:
            sources[at] = filled
            changed.add(at)
        added.append((filled, False))
    what = f"The pool would have {len(sources)} sources"
    check_limit(len(sources), context.limits, "sources", what, "use another context")
    if block is None:
        block = _create_pool(context, system, time)
    writes: list[Write] = []
    for at in sorted(one for one in changed if one < count):
        writes.append(plan_delete(document, block, _SECTION, at))
        writes.append(plan_insert(document, block, _SECTION, at, _item(sources[at])))
    writes += [plan_insert(document, block, _SECTION, None, _item(one)) for one in sources[count:]]
    if writes:

        def write() -> None:
            for one in writes:
                one.apply()

        context.write(actor, "source", write, blocks=[block], undo=None)
    return added


def _create_pool(context: Context, system: Actor, time: int) -> str:
    document = context.document
    block = str(context.next_block_id(system.principal.id))

    def create() -> None:
        header = BlockHeader(
            id=block,
            kind=BlockKind.TEXT,
            role=Role.SYSTEM,
            status=Status.DONE,
            order=order_at_end(document),
            created=iso_time(time),
            author=system.principal.id,
            collapsed=True,
            metadata={"type": _TYPE},
        )
        document.create_block(header, schema=_SCHEMA)

    context.write(system, "create", create, blocks=(), undo=None)
    return block
