"""The texts of all blocks as they were when they were last indexed, by the three characters.

FTS5's trigram index answers which texts may contain a string; it folds case and knows nothing of
order, so what it names is checked against the text. It stops at a NUL: the text behind the first
one is indexed beside it, in the column `beyond`, with another character in its place. Making it
takes 170 ms a megabyte, in which nothing else is written: so long texts are not in it, but in a
table that is looked through.

A row is numbered context * 2^32 + number of the block, which is the order of creation. With each
stands the version of the block whose text it is; with each context the `seq` up to which nothing
is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from antiphon_kernel.storage.commit_rows import SEQ_BITS
from antiphon_kernel.storage.stores import SqlDatabase

_LONG: Final = 100_000
"""Code points; a longer text is not in the trigram index."""

_TABLES: Final = {"search": "rowid", "long_texts": "row"}
"""The tables of texts, and the column that numbers their rows."""

_TRIGRAMS: Final = 32
"""More of them name hardly fewer texts."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """The text of one block, as it is written into the index."""

    context: int
    number: int
    version: int
    kind: str
    path: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A block whose text may hold what is looked for."""

    row: int
    block: str
    version: int
    kind: str
    path: str | None
    length: int
    """Code points of the text."""


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """Search conditions on a text and its block."""

    literals: Sequence[str]
    """Strings that the text contains, all of them."""
    kinds: Sequence[str]
    path_prefix: str | None = None


class SearchTable:
    """The search index of one journal. Whoever writes sees to it that only one does."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def stale_contexts(self) -> set[int]:
        """Numbers of the contexts that have changed since they were indexed."""
        sql = (
            "SELECT c.number FROM contexts c WHERE"
            f" (SELECT o.seq FROM ops o WHERE o.id < ((c.number + 1) << {SEQ_BITS})"
            f" AND o.id > (c.number << {SEQ_BITS}) ORDER BY o.id DESC LIMIT 1) IS NOT"
            " (SELECT seq FROM searched_contexts WHERE context = c.number)"
        )
        return {int(row[0]) for row in await self._database.select(sql)}

    async def changed(self, context: int) -> list[tuple[int, str]]:
        """Number and id of each block of a context whose text is not indexed as it is stored."""
        sql = (
            "SELECT b.number, b.id FROM blocks b"
            f" LEFT JOIN searched s ON s.row = (b.context << {SEQ_BITS}) + b.number"
            " WHERE b.context = ? AND s.version IS NOT b.version ORDER BY b.number"
        )
        rows = await self._database.select(sql, (context,))
        return [(int(row[0]), str(row[1])) for row in rows]

    async def store(self, texts: Sequence[Indexed]) -> None:
        """Index these texts in the place of what is indexed of their blocks."""
        rows = [(row_number(one.context, one.number), one) for one in texts]
        short = [(row, one) for row, one in rows if len(one.text) <= _LONG]
        long = [(row, one) for row, one in rows if len(one.text) > _LONG]
        await self._database.write(
            (
                ("DELETE FROM search WHERE rowid = ?", [(row,) for row, _ in rows]),
                ("DELETE FROM long_texts WHERE row = ?", [(row,) for row, _ in rows]),
                (
                    "INSERT INTO search (rowid, text, beyond) VALUES (?, ?, ?)",
                    [
                        (row, one.text, "".join(one.text.partition("\0")[1:]).replace("\0", " "))
                        for row, one in short
                    ],
                ),
                ("INSERT INTO long_texts VALUES (?, ?)", [(row, one.text) for row, one in long]),
                (
                    "INSERT OR REPLACE INTO searched VALUES (?, ?, ?, ?, ?)",
                    [(row, one.version, one.kind, one.path, len(one.text)) for row, one in rows],
                ),
            )
        )

    async def mark_indexed(self, context: int, seq: int) -> None:
        """Nothing of the context is missing up to `seq`."""
        sql = "INSERT OR REPLACE INTO searched_contexts VALUES (?, ?)"
        await self._database.insert(sql, (context, seq))

    async def row_of(self, block: str) -> int | None:
        """The row of a block, indexed or not; None if the journal has no such block."""
        sql = f"SELECT (context << {SEQ_BITS}) + number FROM blocks WHERE id = ?"
        rows = await self._database.select(sql, (block,))
        return int(rows[0][0]) if rows else None

    async def candidates(self, wanted: SearchFilter, after: int, limit: int) -> list[Candidate]:
        """The first blocks behind row `after` that have what is wanted."""
        found = []
        for table in ("search", "long_texts"):
            sql, values = _question(table, wanted, after)
            rows = await self._database.select(sql, (*values, limit))
            found += [Candidate(*row) for row in rows]
        return sorted(found, key=lambda one: one.row)[:limit]

    async def texts(self, rows: Sequence[int]) -> dict[int, str]:
        """The indexed text of these rows."""
        texts: dict[int, str] = {}
        for table, row in _TABLES.items():
            sql = f"SELECT {row}, text FROM {table} WHERE {row} IN (SELECT value FROM json_each(?))"
            found = await self._database.select(sql, ([*rows],))
            texts.update((int(one[0]), str(one[1])) for one in found)
        return texts


def row_number(context: int, number: int) -> int:
    """The row of a block in the order of creation."""
    return (context << SEQ_BITS) + number


def _question(table: str, wanted: SearchFilter, after: int) -> tuple[str, list[object]]:
    """The query for the candidates of one table, all but their number."""
    row = f"{table}.{_TABLES[table]}"
    conditions = [f"{row} > ?", "d.kind IN (SELECT value FROM json_each(?))"]
    values: list[object] = [after, [*wanted.kinds]]
    whole = [one for one in wanted.literals if table == "search" and "\0" not in one]
    trigrams = list(dict.fromkeys(one[at : at + 3] for one in whole for at in range(len(one) - 2)))
    if trigrams:
        step = -(-len(trigrams) // _TRIGRAMS)
        quoted = ('"' + one.replace('"', '""') + '"' for one in trigrams[::step])
        conditions.append("search MATCH ?")
        values.append(" ".join(quoted))
    for literal in wanted.literals:
        conditions.append(f"instr({table}.text, ?)")
        values.append(literal)
    if wanted.path_prefix is not None:
        conditions.append("substr(d.path, 1, ?) = ?")
        values += [len(wanted.path_prefix), wanted.path_prefix]
    sql = (
        f"SELECT d.row, b.id, d.version, d.kind, d.path, d.length FROM {table}"
        f" JOIN searched d ON d.row = {row}"
        f" JOIN blocks b ON b.context = d.row >> {SEQ_BITS}"
        f" AND b.number = d.row & {(1 << SEQ_BITS) - 1}"
        f" WHERE {' AND '.join(conditions)} ORDER BY {row} LIMIT ?"
    )
    return sql, values
