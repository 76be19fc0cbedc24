"""Examining a journal: a copy of it, so that the kernel that writes it is not in the way."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Final

from antiphon_kernel.document.document import Document, DocumentLoader
from antiphon_kernel.maintenance.checks import (
    TransactionReplay,
    check_auth,
    check_authors,
    check_blobs,
    check_document,
    check_file,
    check_origin,
    check_restored,
    check_search,
    check_trigrams,
    difference,
    find_blobs,
    read_authors,
    read_restored,
)
from antiphon_kernel.maintenance.findings import Check, ContextReport, Report
from antiphon_kernel.storage import (
    BYTES_ONLY,
    JOURNAL_FILE,
    LAST_SEQ,
    SNAPSHOTS,
    ContextRow,
    Database,
    JournalReader,
    Records,
    copy_pages,
    op_id,
)
from antiphon_kernel.types.errors import AntiphonError

_PAGE: Final = 500
"""Transactions read at once."""


async def run_checks(data: Path) -> Report:
    """Check everything that must hold for the journal of a data folder. Nothing is changed.

    Raises:
        AntiphonError: storage_failed if there is no journal that could be copied.
    """
    with tempfile.TemporaryDirectory(prefix="antiphon-doctor-") as folder:
        copy = Path(folder) / JOURNAL_FILE
        await asyncio.to_thread(copy_pages, data / JOURNAL_FILE, copy)
        report = Report()
        try:
            database = await Database.open(copy)
        except AntiphonError as error:
            report.find(Check.FILE, error.message)
            return report
        try:
            await check_file(database, Check.FILE, report)
            await check_trigrams(database, report)
            await check_auth(data, Path(folder), database, report)
            for row in await JournalReader(database).contexts():
                report.contexts.append(await _check_context(database, row))
            await check_blobs(database, report)
        except AntiphonError as error:
            report.find(Check.FILE, error.message)
        finally:
            await database.close()
        return report


async def _check_context(database: Database, row: ContextRow) -> ContextReport:
    report = ContextReport(row)
    here = (row.number,)
    sql = "SELECT client, principal FROM clients WHERE context = ?"
    owners = {int(one[0]): int(one[1]) for one in await database.select(sql, here)}
    sql = "SELECT number, id, version FROM blocks WHERE context = ?"
    blocks = {int(one[0]): (str(one[1]), one[2]) for one in await database.select(sql, here)}
    numbers = {number: block for number, (block, _) in blocks.items()}
    snapshot = await _snapshot(database, row, report)
    revived = await read_restored(database, row, report)
    inherited = await read_authors(database, row, report)
    replay = TransactionReplay(report, owners, numbers, watched=revived, copies=inherited)
    whole = await _replay(database, row, replay, snapshot)
    document = replay.document
    report.blocks = len(document)
    check_document(document, report)
    find_blobs(document, report)
    if whole:
        for number, (block, version) in blocks.items():
            counted = replay.versions.get(number)
            if counted != version:
                found = f"block {block} has version {version}, counted {counted}"
                report.find(Check.VERSIONS, found)
        if set(numbers.values()) != set(document.block_ids()):
            odd = min(set(numbers.values()) ^ set(document.block_ids()))
            report.find(Check.INDEX, f"the index and the document do not agree about block {odd}")
        if (document.context, document.epoch) != (row.id, row.epoch):
            report.find(Check.INDEX, "the document belongs to another context or epoch")
        await _check_undo(database, row, replay)
        check_restored(revived, replay)
        await check_authors(database, inherited, replay)
        await check_origin(database, row, report)
        await check_search(database, row, replay)
    return report


async def _replay(
    database: Database,
    row: ContextRow,
    replay: TransactionReplay,
    snapshot: tuple[int, Document] | None,
) -> bool:
    sql = (
        f"SELECT seq, format, principal, touched, unit, {BYTES_ONLY} FROM ops"
        " WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?"
    )
    while True:
        size = _PAGE
        if snapshot is not None and replay.seq < snapshot[0]:
            size = min(size, snapshot[0] - replay.seq)
        behind = op_id(row.number, replay.seq + 1), op_id(row.number, LAST_SEQ)
        rows = await database.select(sql, (*behind, size))
        if not rows:
            break
        if not replay.follow(rows):
            return False
        if snapshot is not None and replay.seq == snapshot[0]:
            differs = difference(snapshot[1], replay.document)
            if differs is not None:
                found = f"it is not what the transactions up to {replay.seq} make: {differs}"
                replay.report.find(Check.SNAPSHOT, found, replay.seq)
    if replay.seq == 0:
        replay.report.find(Check.SEQUENCE, "the transaction that founds it is missing", 1)
        return False
    if snapshot is not None and snapshot[0] > replay.seq:
        found = f"it is of seq {snapshot[0]}, the last transaction is {replay.seq}"
        replay.report.find(Check.SNAPSHOT, found, snapshot[0])
    return True


async def _snapshot(
    database: Database, row: ContextRow, report: ContextReport
) -> tuple[int, Document] | None:
    sql = "SELECT count(*) FROM snapshots WHERE context = ?"
    if not (await database.select(sql, (row.number,)))[0][0]:
        return None
    snapshot = await Records(database, SNAPSHOTS).read(row)
    if snapshot is None:
        report.find(Check.SNAPSHOT, "it is damaged; the kernel reads the transactions instead")
        return None
    loader = DocumentLoader(client_id=2)
    try:
        loader.apply(snapshot.state)
    except ValueError as error:
        report.find(Check.SNAPSHOT, f"it cannot be read: {error}")
        return None
    return snapshot.seq, loader.finish()


async def _check_undo(database: Database, row: ContextRow, replay: TransactionReplay) -> None:
    sql = "SELECT unit FROM undo WHERE context = ?"
    for (unit,) in await database.select(sql, (row.number,)):
        if unit not in replay.units:
            replay.report.find(Check.UNDO, f"unit {unit} is in no transaction", unit)
