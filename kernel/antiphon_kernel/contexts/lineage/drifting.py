"""Writing what has drifted into its target: a block that says where from, and copies behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from antiphon_kernel.contexts.commit_types import CommitHandle, Inherited
from antiphon_kernel.contexts.context import Context
from antiphon_kernel.contexts.history.replay import Copied, InheritedAuthors, with_block
from antiphon_kernel.contexts.introductions import introduce
from antiphon_kernel.contexts.ordering import orders_at
from antiphon_kernel.contexts.undo_stack import UndoKind
from antiphon_kernel.document.block_copy import copy_block
from antiphon_kernel.document.document import Document
from antiphon_kernel.storage import ContextRow, DriftRow, Journal
from antiphon_kernel.types.block_metadata import DRIFT
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.constants import INTERRUPTED
from antiphon_kernel.types.drift import DriftOrigin
from antiphon_kernel.types.enums import BlockKind, DriftState, Role, Status
from antiphon_kernel.types.ids import BlockId
from antiphon_kernel.types.records import Actor, BlockHeader, Principal
from antiphon_kernel.validation import without_damage, without_question


def capture(source: Document, blocks: Sequence[str], client_id: int) -> Document:
    """Return a document that has copies of some blocks only, under their ids."""
    found = Document(client_id)
    with found.transaction("copy"):
        for header, text in zip(source.headers(blocks), source.plain_texts(blocks), strict=True):
            copy_block(source, header.id, found, header, text)
    return found


@dataclass(frozen=True, slots=True)
class TakenBlocks:
    """Blocks of a context as they were at one of its versions."""

    document: Document
    blocks: Sequence[str] = ()
    """In order."""
    authors: Mapping[str, Copied] = field(default_factory=dict)

    @classmethod
    async def read(
        cls,
        journal: Journal,
        row: ContextRow,
        document: Document,
        blocks: Sequence[str],
        version: int,
    ) -> TakenBlocks:
        """Read the authors of blocks; `document` has them as they were at the version."""
        numbers = await journal.block_numbers(row, blocks)
        known = {numbers[block]: block for block in blocks}
        authors = InheritedAuthors(journal, document.schema)
        return cls(document, blocks, await authors.as_of(row, known, version) if known else {})


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of blocks of the target that come with a drift."""

    text: str = ""
    """Text of the block of kind drift."""
    parent: str | None = None
    """The block that it answers."""
    status: Status = Status.DONE
    """Status of that block."""
    blocks: Sequence[str] = ()
    apply: Callable[[], None] = lambda: None
    inherited: Inherited = field(default_factory=dict)
    """Authors of what it writes."""


@dataclass(frozen=True, slots=True)
class WrittenDrift:
    """A drift on its way to disk."""

    handle: CommitHandle
    row: DriftRow
    """As it is then."""
    copies: tuple[str, ...]
    """Ids of the copies, in order."""


def write_drift(
    context: Context,
    actor: Actor,
    row: DriftRow,
    origin: DriftOrigin,
    principal_of: Callable[[str], Principal],
    time: int,
    changes: Changes,
    taken: TakenBlocks | None = None,
) -> WrittenDrift:
    """Deliver a drift in one transaction of its target, which is one step of undo there."""
    document, taken = context.document, taken or TakenBlocks(context.document)
    source = taken.document
    header_block = str(context.next_block_id(actor.principal.id))
    authors = {one: BlockId.parse(one).principal for one in taken.blocks}
    copies = {one: str(context.next_block_id(by)) for one, by in authors.items()}
    first = origin.blocks[0] if origin.blocks else None
    header = BlockHeader(
        id=header_block,
        kind=BlockKind.DRIFT,
        role=Role.USER,
        status=changes.status,
        order="",
        created=iso_time(time),
        author=actor.principal.id,
        parent=changes.parent,
        drift_kind=row.kind,
        source_context=origin.context,
        source_block=first,
        metadata={DRIFT: origin.as_json()},
    )

    copied = {
        copies[block]: {
            path: with_block(one.runs, block) for path, one in taken.authors.get(block, {}).items()
        }
        for block in taken.blocks
    }
    inherited = {**copied, **changes.inherited}
    runs = (run for texts in inherited.values() for found in texts.values() for run in found)
    known = dict.fromkeys([*authors.values(), *(run.stamp.principal for run in runs)])
    everybody = list(map(principal_of, known))

    def write() -> None:
        for principal in everybody:
            introduce(document, principal)
        orders = orders_at(document, len(document), 1 + len(copies))
        document.create_block(header._replace(order=orders[0]), changes.text)
        texts = source.plain_texts(taken.blocks)
        for (block, copy), order, text in zip(copies.items(), orders[1:], texts, strict=True):
            copied = _copied_header(source.header(block), context, origin)
            parent = copies.get(copied.parent or "", header_block)
            placed = copied._replace(id=copy, order=order, parent=parent)
            copy_block(source, block, document, placed, text)
        changes.apply()

    delivered = replace(
        row, state=DriftState.DELIVERED, seq=0, block=header_block, request="", outcome=""
    )
    handle = context.write(
        actor,
        str(row.kind),
        write,
        blocks=changes.blocks,
        undo=UndoKind.DRIFT,
        drift=delivered,
        inherited=inherited,
    )
    return WrittenDrift(handle, replace(delivered, seq=handle.seq), tuple(copies.values()))


def _copied_header(header: BlockHeader, context: Context, origin: DriftOrigin) -> BlockHeader:
    """Return the header of a copy; what was being written is interrupted in it."""
    copied = without_question(without_damage(header, context.limits))._replace(
        source_context=origin.context,
        source_block=header.id,
        excluded=False,
        metadata={**header.metadata, DRIFT: origin.id},
    )
    if header.status in (Status.PENDING, Status.RUNNING):
        copied = copied._replace(status=Status.ERROR, stop_reason=INTERRUPTED)
    return copied
