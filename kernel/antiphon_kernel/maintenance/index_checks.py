"""Checks of the records beside the transactions: revivals, authors of copies, search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from antiphon_kernel.document.rendering import render
from antiphon_kernel.maintenance.findings import Check, ContextReport, Finding, Report
from antiphon_kernel.maintenance.transaction_checks import TransactionReplay
from antiphon_kernel.storage import (
    READABLE_FORMATS,
    ContextRow,
    CorruptContextError,
    Database,
    Indexed,
    InheritedRun,
    SearchTable,
    read_inherited,
    row_number,
)
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.yjs.id_set import IdSet
from antiphon_kernel.yjs.restored_ids import RestoredRange, decode_restored

Inherited = Mapping[int, Mapping[str | None, Sequence[InheritedRun]]]

_TEXTS: Final = 200
"""Texts read at once."""


async def read_restored(
    database: Database, row: ContextRow, report: ContextReport
) -> dict[int, tuple[RestoredRange, ...]]:
    """The revivals of each transaction that can be read; the others are findings."""
    found: dict[int, tuple[RestoredRange, ...]] = {}
    sql = "SELECT seq, format, revivals FROM revived WHERE context = ?"
    for seq, format_, revivals in await database.select(sql, (row.number,)):
        try:
            if format_ not in READABLE_FORMATS:
                raise ValueError(f"it has the format {format_!r}")
            found[seq] = decode_restored(revivals)
        except (ValueError, TypeError) as error:
            what = f"what transaction {seq} brought back cannot be read: {error}"
            report.find(Check.REVIVED, what, seq)
    return found


def check_restored(
    revived: Mapping[int, tuple[RestoredRange, ...]], replay: TransactionReplay
) -> None:
    """Check that restored ranges came with their transaction and existed before."""
    for seq, revivals in revived.items():
        inserted, clocks = replay.inserted.get(seq, ()), replay.clocks
        for again, source, length in revivals:
            is_there = _holds(inserted, again.client, again.clock, length)
            if not is_there or source.clock + length > clocks.get(source.client, 0):
                what = f"transaction {seq} is said to bring back what it does not hold"
                replay.report.find(Check.REVIVED, what, seq)
                break


def _holds(ids: IdSet, client: int, clock: int, length: int) -> bool:
    return any(
        one.client == client and one.start <= clock and clock + length <= one.end for one in ids
    )


async def read_authors(database: Database, row: ContextRow, report: ContextReport) -> Inherited:
    """Return the authors of a context's copied texts; none if unreadable, which is a finding."""
    try:
        return await read_inherited(database, row)
    except CorruptContextError as error:
        report.find(Check.INHERITED, error.what)
        return {}


async def check_authors(
    database: Database, inherited: Inherited, replay: TransactionReplay
) -> None:
    """Each copied text is somebody's from its beginning to its end."""
    known = {row[0] for row in await database.select("SELECT id FROM principals")}
    for number, texts in inherited.items():
        block = replay.numbers.get(number)
        for section, runs in texts.items():
            length = replay.copied.get((number, section))
            at = 0
            for run in runs:
                if run.start != at or run.end <= run.start or run.principal not in known:
                    break
                at = run.end
            if block is None or length is None or at != length:
                what = f"the authors of the text that block {block or number} was copied with"
                replay.report.find(Check.INHERITED, f"{what} do not add up to it")


async def check_search(database: Database, row: ContextRow, replay: TransactionReplay) -> None:
    """The search index says of every block what its document says, as far as it has come."""
    report, document = replay.report, replay.document
    sql = "SELECT seq FROM searched_contexts WHERE context = ?"
    reached = [int(one[0]) for one in await database.select(sql, (row.number,))]
    if reached and reached[0] > replay.seq:
        what = f"it has come to {reached[0]}, the last transaction is {replay.seq}"
        report.find(Check.SEARCH, what)
    first, last = row_number(row.number, 0), row_number(row.number + 1, 0)
    sql = "SELECT row, version, kind, path, length FROM searched WHERE row >= ? AND row < ?"
    table = SearchTable(database)
    current: dict[int, tuple[str, Indexed]] = {}
    for at, version, kind, path, length in await database.select(sql, (first, last)):
        number = at - first
        block = replay.numbers.get(number, "")
        if block not in document:
            continue  # which is a finding already, about the index of blocks
        if version > replay.versions.get(number, 0):
            report.find(Check.SEARCH, f"it has version {version} of block {block}")
        elif version == replay.versions[number]:
            text = render(document, block)
            header = document.header(block)
            if (kind, path, length) != (str(header.kind), header.path, len(text)):
                report.find(Check.SEARCH, f"it knows block {block} as it is not")
            else:
                current[at] = block, Indexed(row.number, number, version, kind, path, text)
    rows = list(current)
    for begin in range(0, len(rows), _TEXTS):
        portion = rows[begin : begin + _TEXTS]
        texts = await table.texts(portion)
        for at in portion:
            block, indexed = current[at]
            if texts.get(at) != indexed.text:
                report.find(Check.SEARCH, f"it has another text of block {block}")
    behind = set(replay.versions) - {at - first for at in current}
    if reached and reached[0] == replay.seq and behind:
        block = replay.numbers.get(min(behind), str(min(behind)))
        report.find(Check.SEARCH, f"it is said to be complete and lacks block {block}")


async def check_trigrams(database: Database, report: Report) -> None:
    """The full-text index agrees with the texts in it."""
    try:
        await database.insert("INSERT INTO search (search) VALUES ('integrity-check')", ())
    except AntiphonError as error:
        report.findings.append(Finding(Check.SEARCH, f"it is damaged: {error.message}"))
