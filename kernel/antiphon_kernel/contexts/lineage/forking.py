"""Forking a context: its blocks as they were at one of its versions, copied into a new one.

What is copied is captured at one moment, so the context goes on being written meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from antiphon_kernel.contexts.context import Context
from antiphon_kernel.contexts.context_journal import BlockIds
from antiphon_kernel.contexts.header_rules import follow_change
from antiphon_kernel.contexts.introductions import introduce
from antiphon_kernel.contexts.opening.context_registry import InitialContent
from antiphon_kernel.contexts.opening.loader import finish
from antiphon_kernel.document.block_copy import BlockCopier
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.genesis import genesis_update
from antiphon_kernel.layout import copied_ids, moved_metadata, rename_derived
from antiphon_kernel.limits import Limits
from antiphon_kernel.storage import (
    BlockRow,
    Commit,
    ContextRow,
    ForkOrigin,
    Journal,
    Snapshot,
)
from antiphon_kernel.tasks import TimeSlice
from antiphon_kernel.types.block_metadata import SUMMARY_TYPE
from antiphon_kernel.types.clock import moment_or_start
from antiphon_kernel.types.drift import is_drifted
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.ids import moved_block
from antiphon_kernel.types.records import Actor, BlockHeader, TextSplice
from antiphon_kernel.validation import without_damage, without_question
from antiphon_kernel.yjs.merge import merge

FORK: Final = "fork"
"""The operation that makes a copy."""

_CALL: Final = BlockKind.TOOL_CALL

_TOGETHER: Final = 50
"""Blocks whose texts are read at once."""


@dataclass(frozen=True, slots=True)
class InitialChange:
    """A change of a new context that is there from the start, or is not there at all."""

    operation: str
    apply: Callable[[Document, Callable[[], str]], None]
    """Writes to the document of the fork; its second argument gives ids for new blocks."""
    unedited: Collection[str] = ()
    """Blocks whose texts it writes and which say what they said."""


@dataclass(frozen=True, slots=True)
class Fork:
    """Source data of a new context."""

    source: ContextRow
    at: int
    """The version that is copied."""
    document: Document
    """The source as it was; nobody else has it."""
    blocks: tuple[str, ...]
    """Those that are copied, in document order."""
    changes: Sequence[InitialChange] = ()
    """Further content that is there from the start."""


async def read_now(context: Context, client_id: int) -> Document:
    """A context as it is at the moment of the call, on disk."""
    document = context.document
    state = document.update_since()
    headers = [document.header(block) for block in document.block_ids()]
    await context.wait_persisted()
    return load((state,), client_id, headers)


def load(state: Sequence[bytes], client_id: int, headers: Sequence[BlockHeader] = ()) -> Document:
    """Return the document of a whole state, and of the headers of its blocks that are known."""
    document = Document(client_id)
    document.apply_part(merge(state))
    for _ in document.finish_parts(headers):
        pass
    return document


async def read_version(journal: Journal, row: ContextRow, at: int, client_id: int) -> Document:
    """A context as it was at one of its versions. Raises CorruptContextError, storage_failed."""
    updates = [op.update for op in await journal.ops(row, upto=at)]
    return await finish(Document(client_id), row, updates, at)


async def start_fork(
    row: ContextRow, fork: Fork, actor: Actor, time: int, client_id: int, limits: Limits
) -> InitialContent:
    """Return the initial content of the new context: its members, then each block.

    Each block has a transaction of its own, so that to read the history of one is not to read them
    all; and there is a snapshot, so that to open the context is not to read them all either. The
    copies are written under `client_id`; header values beyond the limits are left out.
    """
    source, commits = fork.document, list[Commit]()

    def add(update: bytes, blocks: tuple[BlockRow, ...] = (), operation: str = FORK) -> None:
        commits.append(Commit(row, len(commits) + 2, time, actor, operation, blocks, update))

    copier, slices = BlockCopier(source, client_id), TimeSlice()
    members = copier.add_members(source.members())
    if members is not None:
        add(members)
    headers: list[BlockHeader] = []
    copies = {block: moved_block(block, row.id) for block in fork.blocks}
    names: dict[str, str] = {}
    changes = list(fork.changes)
    names_turns = any(source.header(one).metadata.get("type") == SUMMARY_TYPE for one in copies)
    texts = _texts(source, fork.blocks)
    for number, (block, copy) in enumerate(copies.items(), 1):
        header = without_damage(source.header(block), limits)
        parent = _nearest(source, header.parent, copies)
        copied = without_question(header)._replace(
            id=copy,
            parent=parent,
            source_context=fork.source.id,
            source_block=block,
        )
        if names_turns:
            names |= copied_ids(block, copy, moment_or_start(source.header(block).created))
            copied = copied._replace(metadata=moved_metadata(header.metadata, names))
        headers.append(copied)
        add(copier.copy(block, copied, next(texts)), (BlockRow(number, copy, 1),))
        await slices.pause()
    origin = ForkOrigin(fork.source.number, fork.at, len(headers))
    state, vector = copier.state(genesis_update(row.id, row.epoch, row.label))
    if (renamed := _rename(source, copies, names)) is not None:
        changes.insert(0, renamed)
    if changes:
        document = load((state,), client_id, headers)
        known = {one.id: BlockRow(number, one.id, 1) for number, one in enumerate(headers, 1)}
        await _make_changes(document, changes, row, actor, time, known, commits)
    elif commits:
        snapshot = Snapshot(commits[-1].seq, vector, (state,))
        commits[-1] = commits[-1]._replace(snapshot=snapshot)
    return InitialContent(commits, origin)


def _rename(
    source: Document, copies: Mapping[str, str], names: Mapping[str, str]
) -> InitialChange | None:
    """Return the change that makes copied summaries name what was copied by the paths it has now.

    `names` has what is derived from the id of each copy, by what is from that of its original.
    """
    splices: dict[str, list[TextSplice]] = {}
    for block, copy in copies.items() if names else ():
        is_summary = source.header(block).metadata.get("type") == SUMMARY_TYPE
        text = source.plain_texts([block])[0] if is_summary else None
        if text and (found := rename_derived(text, names)):
            splices[copy] = found

    def apply(document: Document, next_id: Callable[[], str]) -> None:
        for block, each in splices.items():
            document.splice_all(block, each)

    return InitialChange(FORK, apply, splices.keys()) if splices else None


async def start_with(
    row: ContextRow, changes: Sequence[InitialChange], actor: Actor, time: int, client_id: int
) -> InitialContent:
    """Return the initial content of a new context that changes make, each in one transaction."""
    document = Document.create(client_id, context=row.id, epoch=row.epoch, label=row.label)
    commits: list[Commit] = []
    await _make_changes(document, changes, row, actor, time, {}, commits)
    return InitialContent(commits)


async def _make_changes(
    document: Document,
    changes: Sequence[InitialChange],
    row: ContextRow,
    actor: Actor,
    time: int,
    known: dict[str, BlockRow],
    commits: list[Commit],
) -> None:
    """Make changes of a document, which is closed then, and add the commits that say so.

    Args:
        known: the row of each block that is there.
        commits: those from seq 2 on; the last of all gets the snapshot.
    """
    ids, slices = BlockIds(row.id, known), TimeSlice()
    for change in changes:
        with document.transaction(change.operation) as transaction:
            introduce(document, actor.principal)
            change.apply(document, lambda: str(ids.next(actor.principal.id)))
        update = transaction.update
        assert update is not None, "a change of a new context changes it"
        if follow_up := follow_change(document, transaction.change, change.unedited):
            update = merge((update, follow_up))
        rows: list[BlockRow] = []
        for block in transaction.change.touched:
            before = known.get(block) or BlockRow(len(known) + 1, block, 0)
            known[block] = before._replace(version=before.version + 1)
            rows.append(known[block])
        of = change.operation
        commits.append(Commit(row, len(commits) + 2, time, actor, of, tuple(rows), update))
        await slices.pause()
    snapshot = Snapshot(commits[-1].seq, document.state_vector(), (document.update_since(),))
    commits[-1] = commits[-1]._replace(snapshot=snapshot)
    document.close()


def _texts(source: Document, blocks: Sequence[str]) -> Iterator[str | None]:
    """The plain text of each block, or None, read in pieces."""
    for begin in range(0, len(blocks), _TOGETHER):
        yield from source.plain_texts(blocks[begin : begin + _TOGETHER])


def _nearest(document: Document, parent: str | None, copies: Mapping[str, str]) -> str | None:
    """The copy of the nearest block above that is copied too."""
    seen: set[str] = set()
    while parent is not None and parent in document and parent not in seen:
        if parent in copies:
            return copies[parent]
        seen.add(parent)
        parent = document.header(parent).parent
    return None


def split_calls(document: Document, blocks: Sequence[str]) -> list[tuple[str, str]]:
    """Calls and their results of which only one is among the blocks."""
    inside = set(blocks)
    calls: dict[str | None, str] = {}
    torn: list[tuple[str, str]] = []
    for block in document.block_ids():
        header = document.header(block)
        if header.kind == _CALL and header.tool_call_id is not None:
            calls[header.tool_call_id] = block
        if header.kind != BlockKind.TOOL_RESULT or is_drifted(header.metadata):
            continue
        call = header.parent
        if call is None or call not in document or document.header(call).kind != _CALL:
            call = calls.get(header.tool_call_id)
        if call is not None and (call in inside) != (block in inside):
            torn.append((call, block))
    return torn
