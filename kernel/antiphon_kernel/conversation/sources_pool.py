"""Sources pool of a context: one block of the kernel's own, with a list that only grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from antiphon_kernel.contexts.context import Context
from antiphon_kernel.contexts.ordering import order_at_end
from antiphon_kernel.conversation.pool_block import (
    POOL_SCHEMA,
    POOL_SECTION,
    POOL_TYPE,
    find_pool,
    pool_item,
    read_pool,
)
from antiphon_kernel.document.content_writes import Write, plan_delete, plan_insert, plan_push
from antiphon_kernel.document.document import Document
from antiphon_kernel.layout import PoolSource
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.records import Actor, BlockHeader
from antiphon_kernel.validation import check_limit


@dataclass(frozen=True, slots=True)
class AddedSource:
    """A source of the pool after it was added."""

    source: PoolSource
    is_new: bool


def add_sources(
    context: Context, system: Actor, actor: Actor, wanted: Sequence[PoolSource], time: int
) -> list[AddedSource]:
    """Add sources to the pool, which is made if there is none; return them as they are there.

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
    sources = list(read_pool(document, block)) if block is not None else []
    count = len(sources)
    index = {one.place: at for at, one in enumerate(sources)}
    changed: set[int] = set()
    added: list[AddedSource] = []
    for one in wanted:
        at = index.get(one.place)
        if at is None:
            at = index[one.place] = len(sources)
            sources.append(replace(one, sid=sources[-1].sid + 1 if sources else 1))
            added.append(AddedSource(sources[at], is_new=True))
            continue
        there = sources[at]
        filled = replace(there, title=there.title or one.title, text=there.text or one.text)
        if filled != there:
            sources[at] = filled
            changed.add(at)
        added.append(AddedSource(filled, is_new=False))
    what = f"The pool would have {len(sources)} sources"
    check_limit(len(sources), context.limits, "sources", what, "use another context")
    if block is None:
        block = _create_pool(context, system, time)
    writes = [*_replacing(document, block, sources, changed, count)]
    writes += [plan_push(document, block, POOL_SECTION, pool_item(one)) for one in sources[count:]]
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
            metadata={"type": POOL_TYPE},
        )
        document.create_block(header, schema=POOL_SCHEMA)

    context.write(system, "create", create, blocks=(), undo=None)
    return block


def _replacing(
    document: Document, block: str, sources: Sequence[PoolSource], changed: set[int], count: int
) -> list[Write]:
    writes: list[Write] = []
    for at in sorted(one for one in changed if one < count):
        writes.append(plan_delete(document, block, POOL_SECTION, at))
        writes.append(plan_insert(document, block, POOL_SECTION, at, pool_item(sources[at])))
    return writes
