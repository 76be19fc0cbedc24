"""The same in a file of SQLite and in a schema of Postgres: what is written is read back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.storage import (
    Blob,
    BlockRow,
    DriftRow,
    FileRow,
    IndexedText,
    InheritedText,
    Journal,
    SearchFilter,
    Snapshot,
    row_number,
)
from antiphon_kernel.storage.commit_rows import LAST_SEQ
from antiphon_kernel.storage.schema import JOURNAL_SCHEMA
from antiphon_kernel.storage.stores import open_tables
from antiphon_kernel.types.enums import DriftKind, DriftState
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import PrincipalId
from antiphon_kernel.types.records import Run, Stamp
from antiphon_kernel.yjs.restored_ids import RestoredRange
from antiphon_kernel.yjs.update import ItemId
from tests.errors import raises
from tests.kernel.storage.commits import AMY, AT_WORK, BO, SESSION, UNDO, blocks, commit, found


@pytest.fixture
async def journal(place: Path | str) -> AsyncIterator[Journal]:
    journal = await Journal.open(place)
    for principal in (AMY, BO):
        await journal.add_principal(principal, 4)
    yield journal
    await journal.close()


async def test_commit_with_everything_reads_back(journal: Journal) -> None:
    row, first = found(journal)
    other, second = found(journal, "other")
    inherited = InheritedText(1, None, (Run(2, Stamp(BO.id, 3, 4)),))
    drift = DriftRow(
        "d1", DriftKind.PULL, other.number, 1, row.number, AMY.id, 8, request='{"a": "\\u0000"}'
    )
    full = commit(
        row,
        2,
        operation="splice",
        blocks=blocks(1, 2, version=2**40),
        unit=2,
        undo=(UNDO,),
        revivals=(RestoredRange(ItemId(1, 2), ItemId(3, 4), 5),),
        clients=(2**53 - 1,),
        inherited=(inherited,),
        blobs=(Blob.of(b"\0\1"),),
        file=FileRow(row.number, "a.txt", "{}", "d", 1, b"base"),
        drift=drift,
        snapshot=Snapshot(2, b"\1\1\1", (b"one", b"two"), b"index"),
    )
    await asyncio.gather(journal.commit(first), journal.commit(second), journal.commit(full))

    assert await journal.contexts() == [row, other]
    stored = await journal.load(row)
    assert stored.updates == (first.update, full.update)
    assert stored.blocks == full.blocks and stored.undo == (UNDO,)
    assert stored.clients == {2**53 - 1: AMY.id}
    (op,) = await journal.ops(row, after=1)
    assert replace(op, inherited=full.inherited) == full.as_stored()
    assert await journal.inherited(row) == [inherited] == await journal.inherited(row, [1, 9])
    assert await journal.inherited(row, []) == []
    assert await journal.blob(full.blobs[0].hash) == b"\0\1"
    assert await journal.files() == [full.file] and await journal.drifts() == [drift]
    assert await journal.snapshots.read(row) == full.snapshot
    assert await journal.sessions() == [SESSION]
    assert await journal.last_changes() == {row.number: (2, 12), other.number: (1, 11)}
    assert await journal.check_sequence(row) == await journal.last_seq(row) == 2


async def test_queries_of_operations_answer_alike(journal: Journal) -> None:
    row, first = found(journal)
    await journal.commit(first)
    many = [
        commit(row, 2, blocks=blocks(1)),
        commit(row, 3, blocks=blocks(4096), operation="splice"),
        commit(row, 4, blocks=blocks(2, 3)),
        commit(row, 5, blocks=blocks(2), actor=replace(AT_WORK, principal=BO)),
    ]
    await journal.commit(*many)

    def seqs(rows: Sequence[Any]) -> list[int]:
        return [one.seq for one in rows]

    assert seqs(await journal.ops(row)) == [1, 2, 3, 4, 5]
    assert seqs(await journal.ops(row, after=1, upto=4, limit=2)) == [2, 3]
    assert seqs(await journal.ops(row, blocks=[4096])) == [3]
    assert seqs(await journal.ops(row, blocks=[2, 7])) == [4, 5]
    assert seqs(await journal.ops(row, seqs=[1, 5, 9])) == [1, 5]
    assert seqs(await journal.changes(row, 0, block=3)) == [4]
    assert seqs(await journal.changes(row, 1, limit=2)) == [2, 3]
    assert await journal.updates(row, 3) == [b"\0update"] * 2
    assert await journal.changed_blocks(row, 1, 9, but_as=["splice"]) == {1, 2, 3}
    assert await journal.changed_blocks(row, 1, 9, but_by=BO.id, but_as=[]) == {1, 2, 3, 4096}
    assert await journal.changed_blocks(row, 1, 1, but_by=None, but_as=["splice"]) == {2}


async def test_rows_that_are_there_already_are_replaced_or_kept(journal: Journal) -> None:
    row, first = found(journal)
    await journal.commit(first)
    redo = UNDO._replace(stack="redo", place=3)
    dropped = UNDO._replace(block="y")
    await journal.commit(commit(row, 2, blocks=blocks(1), undo=(UNDO,), clients=(7,)))
    await journal.commit(
        commit(
            row,
            3,
            blocks=blocks(1, version=2),
            undo=(redo, dropped),
            dropped_undo=(dropped,),
            actor=replace(AT_WORK, principal=BO),
            clients=(7,),
        )
    )
    stored = await journal.load(row)
    assert stored.blocks == blocks(1, version=2) and stored.undo == (redo,)
    assert stored.clients == {7: AMY.id}
    for value in ("1", "2"):
        await journal.set_setting("key", value)
        await journal.write_agent_session(row, "agent", value, int(value))
    assert await journal.settings("ke") == {"key": "2"}
    assert await journal.agent_session(row, "agent") == ("2", 2)
    drift = DriftRow("d", DriftKind.PUSH, row.number, 1, row.number, AMY.id, 8)
    for state in (DriftState.STAGED, DriftState.DELIVERED, DriftState.STAGED):
        await journal.write_drift(replace(drift, state=state))
    assert [one.state for one in await journal.drifts()] == [DriftState.DELIVERED]


async def test_group_with_a_row_that_cannot_be_is_not_there_at_all(journal: Journal) -> None:
    row, first = found(journal)
    await journal.commit(first)
    again = commit(row, 1)
    with raises(ErrorCode.STORAGE_FAILED):
        await journal.commit(commit(row, 2, clients=(9,)), again)
    assert await journal.last_seq(row) == 1
    stored = await journal.load(row)
    assert not stored.clients
    await journal.commit(commit(row, 2, generation=stored.generation))
    assert await journal.last_seq(row) == 2


@pytest.mark.parametrize(
    ("literals", "path", "named"),
    [
        (["needle"], None, {1, 2}),
        (["NEEDLE"], None, set()),
        (["100%_\\d"], None, {3}),
        (["ä\0ö"], None, {4}),
        (["n"], "src/", {2}),
        (["need", "behind"], None, {2}),
        ([], "src/", {2}),
    ],
)
async def test_search_names_the_texts_that_contain_it(
    journal: Journal, literals: list[str], path: str | None, named: set[int]
) -> None:
    row, first = found(journal)
    await journal.commit(first)
    await journal.commit(commit(row, 2, blocks=blocks(1, 2, 3, 4, 5)))
    texts = ["a needle", "needle " * 20_000 + "behind", "100%_\\d", "ä\0ö", "unlike"]
    assert await journal.search.stale_contexts() == {row.number}
    assert len(await journal.search.changed(row.number)) == 5
    indexed = {
        (at_row := row_number(row.number, at)): IndexedText(
            at_row, f"block{at}", 1, "text", "src/x" if at == 2 else None, text
        )
        for at, text in enumerate(texts, 1)
    }
    for _ in range(2):
        await journal.search.store([*indexed.values()])
    await journal.search.mark_indexed(row.number, 2)
    assert await journal.search.stale_contexts() == set()
    assert await journal.search.changed(row.number) == []

    found_ = await journal.search.candidates(SearchFilter(literals, ["text"], path), 0, 10)
    numbers = {row_number(row.number, at): at for at in range(1, 6)}
    assert {numbers[at_row] for at_row, _ in found_} == named
    stored = await journal.search.texts([at_row for at_row, _ in found_])
    assert {one.row: one for one in stored} == {at_row: indexed[at_row] for at_row, _ in found_}
    assert await journal.search.row_of("block4") == row_number(row.number, 4)


async def test_presence_is_kept_of_what_is_recorded(journal: Journal) -> None:
    row, first = found(journal)
    await journal.commit(first)
    for cursor in (1, 2):
        journal.add_presences([(row.number, 1, 5, SESSION.id, "writing", "block1", cursor, None)])
        journal.add_presences([(row.number, 1, 5, "unknown", "writing", None, 0, None)])
        await journal.commit(commit(row, 1 + cursor, blocks=blocks(1)))
    ((_, (place,)),) = (await journal.presences(row, 0, 9)).items()
    assert (place.by, place.block, place.cursor) == (AMY.id, "block1", 2)


async def test_numbers_of_contexts_go_on_after_those_that_are_there(
    journal: Journal, place: Path | str
) -> None:
    row, first = found(journal)
    await journal.commit(first)
    await journal.reserve_contexts(250)
    rows = [found(journal, f"label {at}")[0] for at in range(250)]
    assert len({one.number for one in (row, *rows)}) == 251
    again = await Journal.open(place)
    assert found(again)[0].number > row.number
    await again.close()


async def test_principal_whose_name_is_taken_is_not_added(journal: Journal) -> None:
    with pytest.raises(AntiphonError):
        await journal.add_principal(replace(BO, id=PrincipalId("d" * 32)), 4)
    assert await journal.principals() == [AMY, BO]


async def test_query_that_fails_is_a_storage_failure(place: Path | str) -> None:
    database = await open_tables(place, JOURNAL_SCHEMA)
    with raises(ErrorCode.STORAGE_FAILED):
        await database.select("SELECT key FROM nothing")
    await database.close()
    with pytest.raises(AntiphonError, match="kernel"):
        await database.select("SELECT key FROM kernel")


async def test_transaction_that_fails_leaves_nothing(place: Path | str) -> None:
    database = await open_tables(place, JOURNAL_SCHEMA)
    insert = "INSERT INTO kernel (key, value) VALUES (?, ?)"
    for rows in ([("b", "2"), ("b", "3")], [("b", "2"), ("c", "3"), ("a", "4")]):
        with raises(ErrorCode.STORAGE_FAILED):
            await database.write([(insert, [("a", "1")]), (insert, rows)])
        assert not list(await database.select("SELECT key FROM kernel"))
    await database.write([(insert, [("a", "1")])])
    assert len(await database.select("SELECT key FROM kernel")) == 1
    await database.close()


BLOCKS = (
    (),
    ((1, 1),),
    ((4095, 1),),
    ((4096, 1),),
    ((7, 2**40),),
    ((2, 3), (5, 8)),
)
"""Numbers and versions of the blocks that a transaction touched."""


async def test_transaction_reads_as_what_was_stored(journal: Journal) -> None:
    row, first = found(journal)
    await journal.commit(first)
    seqs = (2, LAST_SEQ - 99)
    stored = [
        commit(
            row,
            seq + at,
            operation=operation,
            blocks=tuple(BlockRow(number, f"b{number}", version) for number, version in touched),
        )
        for seq in seqs
        for at, (touched, operation) in enumerate(product(BLOCKS, ("append", "splice", "sync")))
    ]
    await journal.commit(*stored)
    assert await journal.ops(row, after=1) == [one.as_stored() for one in stored]


@pytest.mark.parametrize("many", [False, True])
async def test_values_that_are_hard_to_quote_are_stored_as_they_are(
    place: Path | str, many: bool
) -> None:
    database = await open_tables(place, JOURNAL_SCHEMA)
    texts = ["", "NULL", '"', "\\", "{a,b}", "'", "ä\0ö", "a\nb", "$1 ? %s", "  "]
    rows = [(text, text) for text in texts]
    sql = "INSERT OR REPLACE INTO kernel VALUES (?, ?)"
    for batch in [rows] if many else [[row] for row in rows]:
        await database.write([(sql, batch)])
    found_ = await database.select("SELECT key, value FROM kernel")
    assert sorted(tuple(one) for one in found_) == sorted(rows)
    listed = "SELECT key FROM kernel WHERE key IN (SELECT value FROM json_each(?))"
    assert {one[0] for one in await database.select(listed, (texts,))} >= {*texts} - {"ä\0ö"}
    await database.close()


async def test_insert_of_many_rows_may_name_one_twice(place: Path | str) -> None:
    database = await open_tables(place, JOURNAL_SCHEMA)
    sql = "INSERT OR REPLACE INTO kernel VALUES (?, ?)"
    await database.write([(sql, [("a", "1"), ("b", "1"), ("a", "2")])])
    rows = await database.select("SELECT key, value FROM kernel ORDER BY key")
    assert [tuple(one) for one in rows] == [("a", "2"), ("b", "1")]
    await database.close()
