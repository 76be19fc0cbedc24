"""Forking a context: its blocks as they were at one of its versions, copied into a new one.

Everything is read from the journal, so the context goes on being written meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from antiphon_kernel.contexts.context_registry import InitialContent
from antiphon_kernel.contexts.history_cache import inherit
from antiphon_kernel.document.block_copy import copy_block
from antiphon_kernel.document.document import Document, DocumentLoader
from antiphon_kernel.document.header import encode_headers
from antiphon_kernel.document.history.block_history import BlockHistory, HistoryChange, Run, Stamp
from antiphon_kernel.document.history.undo_units import UndoDirection
from antiphon_kernel.document.schema import each_part, is_counter, is_text, path_of
from antiphon_kernel.limits import Limits
from antiphon_kernel.storage import (
    BlockRow,
    Commit,
    ContextRow,
    InheritedRun,
    InheritedText,
    Journal,
    SessionRow,
    Snapshot,
    StoredOp,
)
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.ids import BlockId, ContextId
from antiphon_kernel.types.records import Actor, BlockHeader
from antiphon_kernel.validation import without_damage
from antiphon_kernel.yjs.merge import FAN_IN
from antiphon_kernel.yjs.update import decode_update

FORK: Final = "fork"
"""The operation that makes a copy."""

_A_TURN: Final = 50
"""Blocks or transactions worked on before others get their turn."""


@dataclass(frozen=True, slots=True)
class Fork:
    """Source data of a new context."""

    source: ContextId
    document: Document
    """The source as it was; nobody else has it."""
    blocks: tuple[str, ...]
    """Those that are copied, in document order."""
    authors: Mapping[str, Mapping[str | None, Sequence[Run]]]
    """Of each of them and each of its texts."""


async def read_version(
    journal: Journal, row: ContextRow, at: int, client_id: int, headers: Sequence[BlockHeader]
) -> tuple[Document, list[StoredOp]]:
    """A context as it was at one of its versions, and the transactions that led there.

    Args:
        headers: those of its blocks then that are known.

    Raises:
        CorruptContextError: if a record cannot be read.
        AntiphonError: storage_failed.
    """
    ops = await journal.ops_upto(row, at)
    loader = DocumentLoader(client_id)
    for begin in range(0, len(ops), FAN_IN):
        loader.apply([op.update for op in ops[begin : begin + FAN_IN]])
        await asyncio.sleep(0)
    return loader.finish(headers), ops


async def read_authors(
    journal: Journal,
    row: ContextRow,
    document: Document,
    ops: Sequence[StoredOp],
    numbers: Mapping[str, int],
) -> dict[str, dict[str | None, Sequence[Run]]]:
    """Return the authors of the texts of some blocks, as of the last of `ops`.

    Args:
        numbers: the journal's number of each block that is asked for.

    Raises:
        CorruptContextError: if a record cannot be read.
        AntiphonError: storage_failed.
    """
    authors: dict[str, dict[str | None, Sequence[Run]]] = {}
    histories = await _replay(journal, row, document, ops, numbers, touched_only=True)
    astray = [block for block in numbers if not _same_result(histories[block], document)]
    if astray:
        # What nobody ever saw is in no list of touched blocks, but text may stand beside it.
        again = {block: numbers[block] for block in astray}
        histories |= await _replay(journal, row, document, ops, again, touched_only=False)
    for block in numbers:
        history = histories[block]
        authors[block] = {path: history.blame(path) for path in _texts(document, block)}
    return authors


async def _replay(
    journal: Journal,
    row: ContextRow,
    document: Document,
    ops: Sequence[StoredOp],
    numbers: Mapping[str, int],
    *,
    touched_only: bool,
) -> dict[str, BlockHistory]:
    inherited = await journal.inherited(row)
    histories: dict[str, BlockHistory] = {}
    by_number: dict[int, BlockHistory] = {}
    for block, number in numbers.items():
        parts = each_part(document.schema(block))
        counters = [names for names, part in parts if is_counter(part)]
        histories[block] = by_number[number] = BlockHistory(block, counters)
    for count, op in enumerate(ops, 1):
        update = decode_update(op.update)
        concerned = op.versions if touched_only or op.operation != "sync" else by_number
        for number in concerned:
            history = by_number.get(number)
            if history is None:
                continue
            version = op.versions.get(number, history.version)
            turn = (
                UndoDirection(op.operation)
                if op.unit and op.operation in tuple(UndoDirection)
                else None
            )
            stamp = Stamp(op.principal, version, op.time)
            history.follow(HistoryChange(update, stamp, op.unit, turn, op.revivals))
            if version == 1:
                inherit(history, inherited.get(number, {}))
        if not count % _A_TURN:
            await asyncio.sleep(0)
    return histories


def _texts(document: Document, block: str) -> list[str | None]:
    return [path_of(names) for names, part in each_part(document.schema(block)) if is_text(part)]


def _same_result(history: BlockHistory, document: Document) -> bool:
    paths = _texts(document, history.block)
    return all(history.text(path) == document.text(history.block, path) for path in paths)


async def start_fork(
    row: ContextRow, fork: Fork, actor: Actor, time: int, client_id: int, limits: Limits
) -> InitialContent:
    """Return the initial content of the new context: its members, then each block.

    Each block has a transaction of its own, so that to read the history of one is not to read them
    all; and there is a snapshot, so that to open the context is not to read them all either.

    Args:
        client_id: under which the copies are written.
        limits: of header values; damaged ones are left out.
    """
    target = Document.create(client_id, context=row.id, epoch=row.epoch, label=row.label)
    ids = {block: str(replace(BlockId.parse(block), context=row.id)) for block in fork.blocks}
    with target.transaction(FORK) as transaction:
        for member in fork.document.members():
            target.set_member(member)
    commits: list[Commit] = []

    def add(update: bytes | None, **contents: Any) -> None:
        if update is not None:
            commits.append(
                Commit(
                    context=row,
                    seq=len(commits) + 2,
                    time=time,
                    principal=actor.principal,
                    session=SessionRow.of(actor),
                    operation=FORK,
                    update=update,
                    **contents,
                )
            )

    add(transaction.update, blocks=())
    headers: list[BlockHeader] = []
    for number, block in enumerate(fork.blocks, 1):
        header = without_damage(fork.document.header(block), limits)
        copy = replace(
            header,
            id=ids[block],
            parent=_nearest(fork.document, header.parent, ids),
            source_context=fork.source,
            source_block=block,
        )
        with target.transaction(FORK) as transaction:
            copy_block(fork.document, block, target, copy)
        headers.append(copy)
        inherited = tuple(_inherited(number, fork.authors[block]))
        add(transaction.update, blocks=(BlockRow(number, copy.id, 1),), inherited=inherited)
        if not number % _A_TURN:
            await asyncio.sleep(0)
    seq, table = len(commits) + 1, encode_headers(headers)
    snapshot = Snapshot(seq, target.state_vector(), target.update_since(), table)
    target.close()
    return InitialContent(commits, snapshot)


def _nearest(document: Document, parent: str | None, copies: Mapping[str, str]) -> str | None:
    """The copy of the nearest block above that is copied too."""
    seen: set[str] = set()
    while parent is not None and parent in document and parent not in seen:
        if parent in copies:
            return copies[parent]
        seen.add(parent)
        parent = document.header(parent).parent
    return None


def _inherited(number: int, authors: Mapping[str | None, Sequence[Run]]) -> Iterator[InheritedText]:
    for section, runs in authors.items():
        rows: list[InheritedRun] = []
        at = 0
        for run in runs:
            stamp = run.stamp
            end = at + run.length
            rows.append(InheritedRun(at, end, stamp.principal, stamp.version, stamp.time))
            at = end
        if rows:
            yield InheritedText(number, section, tuple(rows))


def split_surrogates(document: Document, blocks: Sequence[str]) -> list[tuple[str, str]]:
    """Calls and their results of which only one is among the blocks."""
    inside = set(blocks)
    calls: dict[str, str] = {}
    torn: list[tuple[str, str]] = []
    for block in document.block_ids():
        header = document.header(block)
        if header.kind == BlockKind.TOOL_CALL and header.tool_call_id is not None:
            calls[header.tool_call_id] = block
        if header.kind != BlockKind.TOOL_RESULT:
            continue
        call = header.parent if _is_call(document, header.parent) else None
        if call is None and header.tool_call_id is not None:
            call = calls.get(header.tool_call_id)
        if call is not None and (call in inside) != (block in inside):
            torn.append((call, block))
    return torn


def _is_call(document: Document, block: str | None) -> bool:
    if block is None or block not in document:
        return False
    return document.header(block).kind == BlockKind.TOOL_CALL
