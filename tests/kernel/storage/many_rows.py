"""A store with many rows, and how Postgres goes about each statement of a journal on it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from antiphon_kernel.storage import Blob, BlockRow, IndexedText, Journal, row_number
from tests.kernel.storage.commits import AMY, SESSION, UNDO, KernelFence, commit
from tests.postgres import PostgresServer

OPS_EACH: Final = 100
"""Transactions of a context; each has its block, undo row, client and text."""

BIG: Final = frozenset(
    "stored_ops blocks clients undo presences searched search snapshots blobs owners".split()
)
"""Tables that are never read as a whole."""

FEW_ROWS: Final = 3 * OPS_EACH
"""More than one context has of anything."""

_FILL: Final = (
    "INSERT INTO kernels VALUES (1, '', now() + interval '1 day')",
    f"INSERT INTO principals VALUES (1, '{AMY.id}', 'amy', 'human', 1)",
    f"INSERT INTO sessions VALUES (1, '{SESSION.id}', 1, 'test', 1)",
    """INSERT INTO contexts SELECT c, 'context' || c, 'label' || c, 'epoch', 1
        FROM generate_series(1, {contexts}) c""",
    "INSERT INTO owners SELECT number, 1, 1 FROM contexts",
    """INSERT INTO stored_ops SELECT (number << 32) + s, 1, 1, 1, 1, NULL, NULL,
        CASE s % 9 WHEN 0 THEN s || ':1 ' || s - 1 || ':2' ELSE (4096 + s)::text END, 'update'
        FROM contexts, generate_series(1, {each}) s""",
    """INSERT INTO blocks SELECT number, b, 'c' || number || 'b' || b, 1
        FROM contexts, generate_series(1, {each}) b""",
    "INSERT INTO clients SELECT context, number, 1 FROM blocks",
    "INSERT INTO undo SELECT context, number, id, 1, 'splice', 'undo', number, 1 FROM blocks",
    "INSERT INTO presences SELECT context, number, 1, 1 FROM blocks",
    "INSERT INTO searched SELECT (context << 32) + number, 1, 'text', NULL, 99 FROM blocks",
    """INSERT INTO search SELECT row, 'words of row ' || row || ' ' || md5(row::text), ''
        FROM searched WHERE row & 15 = 3""",
    "INSERT INTO searched_contexts SELECT number, {each} FROM contexts",
    "INSERT INTO snapshots SELECT number, 2, {each}, 'v', 'state', '', 'd' FROM contexts",
    "INSERT INTO blobs SELECT md5(id::text), 'data' FROM stored_ops",
    "ANALYZE",
)

_LOGGED: Final = {
    "session_preload_libraries": "'auto_explain'",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_format": "'json'",
    "auto_explain.log_nested_statements": "on",
}


def fill(server: PostgresServer, database: str, rows: int) -> None:
    """Fill a database with about so many transactions, in contexts of 100 each."""
    for sql in _FILL:
        sql = sql.format(contexts=rows // OPS_EACH, each=OPS_EACH)
        server.execute(f"SET search_path = journal; {sql}", database)


@dataclass(frozen=True, slots=True)
class Scan:
    """A table as one statement has read it."""

    sql: str
    table: str
    index: str | None
    """Name of the index that was used; None if the whole table was looked through."""
    loops: int
    rows: int
    """How many rows were looked at in all loops."""


def log_plans(server: PostgresServer, database: str, mode: str) -> None:
    """Let the server log how it carries out each statement of connections to come.

    Args:
        mode: the setting plan_cache_mode.
    """
    for name, value in {**_LOGGED, "plan_cache_mode": mode}.items():
        server.execute(f"ALTER DATABASE {database} SET {name} = {value}")


def dear_scans(server: PostgresServer, database: str) -> list[Scan]:
    """Return where a statement has read a big table as a whole, or many of its rows."""
    scans = [one for one in _logged_scans(server, database) if one.table in BIG]
    assert {one.table for one in scans} == BIG
    # What is asked of all contexts looks once for each.
    return [one for one in scans if one.index is None or one.rows > FEW_ROWS * one.loops]


def _logged_scans(server: PostgresServer, database: str) -> Iterator[Scan]:
    entries = re.split(r"^(?=\S)", (server.folder / "log").read_text(), flags=re.MULTILINE)
    for entry in entries:
        head, _, plan = entry.partition("plan:")
        if head.startswith(f"{database}_LOG:") and plan:
            told = json.loads(plan)
            yield from _scans(told["Query Text"], told["Plan"])


def _scans(sql: str, node: dict[str, Any]) -> Iterator[Scan]:
    loops = node["Actual Loops"]
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    if "Relation Name" in node and node["Node Type"] != "ModifyTable":
        index = node.get("Index Name")
        if node["Node Type"] == "Bitmap Heap Scan":
            index = node["Plans"][0].get("Index Name", "several")
        rows = (node["Actual Rows"] + removed) * loops
        yield Scan(sql, node["Relation Name"], index, loops, rows)
    for part in node.get("Plans", ()):
        yield from _scans(sql, part)


async def use_everything(url: str) -> None:
    """Do what a kernel does all the time, with one of the contexts, several times."""
    journal = await Journal.open(url)
    await journal.principals()
    contexts = await journal.contexts()
    old = contexts[len(contexts) // 2]
    journal.fence = KernelFence(with_principals=False)
    # A statement is planned for all values, and no more for those at hand, from the sixth time on.
    for turn in range(7):
        seq = await journal.last_seq(old) + 1
        blocks = tuple(BlockRow(at, f"c{old.number}b{at}", turn + 2) for at in (1, 2))
        await journal.commit(
            *(
                commit(
                    old,
                    seq + at,
                    blocks=blocks,
                    undo=(UNDO,),
                    dropped_undo=(UNDO._replace(unit=at),),
                    clients=(7,),
                    blobs=(Blob.of(b"data"),),
                )
                for at in range(3)
            )
        )
        await journal.load(old, after=OPS_EACH - 5, omitted=90)
        await journal.check_sequence(old)
        await journal.updates(old, OPS_EACH // 2)
        await journal.ops(old, after=5, limit=10)
        await journal.ops(old, blocks=[3, 4])
        await journal.ops(old, seqs=[7, 8])
        await journal.changes(old, 10, limit=20)
        await journal.changes(old, 10, limit=20, block=3)
        await journal.changed_blocks(old, 10, 20, but_by=AMY.id, but_as=["append"])
        await journal.inherited(old, [1])
        await journal.presences(old, 5, 10)
        await journal.block_numbers(old)
        await journal.blob("0" * 64)
        for records in (journal.snapshots, journal.recent_states):
            await records.read(old)
        await journal.agent_session(old, "agent")
        await journal.search.store(
            [IndexedText(row_number(old.number, at), "", 1, "text", None, "words") for at in (1, 2)]
        )
        await journal.search.changed(old.number)
        await journal.search.row_of(f"c{old.number}b9")
        await journal.search.texts([row_number(old.number, 1)])
        await journal.last_changes()
        await journal.search.stale_contexts()
    await journal.close()
