"""Rows of transactions: what is left out of one comes out again when it is read."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from antiphon_kernel.storage import BlockRow
from antiphon_kernel.storage.commit_rows import LAST_SEQ, op_id, stored_blocks
from antiphon_kernel.storage.schema import JOURNAL_SCHEMA

BLOCKS = (
    (),
    ((1, 1),),
    ((4095, 1),),
    ((4096, 1),),
    ((7, 2**40),),
    ((2, 3), (5, 8)),
)
"""Numbers and versions of the blocks that a transaction touched."""


@pytest.fixture
def database(tmp_path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(tmp_path / "journal.db")
    database.executescript(JOURNAL_SCHEMA.tables)
    return database


@pytest.mark.parametrize("operation", ["append", "splice", "sync"])
@pytest.mark.parametrize("touched", BLOCKS)
@pytest.mark.parametrize(("context", "seq"), [(1, 1), (1, LAST_SEQ), (90_000, 7)])
def test_row_reads_as_what_was_stored(
    database: sqlite3.Connection,
    context: int,
    seq: int,
    touched: tuple[tuple[int, int], ...],
    operation: str,
) -> None:
    blocks = stored_blocks([BlockRow(number, "", version) for number, version in touched])
    stored = operation if operation != "append" else None
    row = (op_id(context, seq), 1, 5, 1, 1, stored, None, blocks, b"")
    database.execute("INSERT INTO ops VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    sql = "SELECT context, seq, operation, touched FROM ops"
    text = " ".join(f"{number}:{version}" for number, version in touched)
    assert database.execute(sql).fetchall() == [(context, seq, operation, text)]


def test_transactions_of_a_context_come_after_each_other() -> None:
    numbers = [op_id(context, seq) for context in (1, 2) for seq in (1, 2, LAST_SEQ)]
    assert numbers == sorted(set(numbers))
