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
class IndexedText:
    """The text of one block, as it is or will be in the index."""

    row: int
    """Its `row_number`."""
    block: str
    version: int
    kind: str
    path: str | None
    text: str


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """Search conditions on a text and its block."""

    literals: Sequence[str]
    """Strings that the text contains, all of them."""
    kinds: Sequence[str]
    path_prefix: str | None = None

    def matches(self, one: IndexedText) -> bool:
        """Return whether a text and its block have all that."""
        is_there = (one.path or "").startswith(self.path_prefix or "")
        has_text = all(literal in one.text for literal in self.literals)
        return is_there and has_text and one.kind in self.kinds


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

    async def store(self, texts: Sequence[IndexedText]) -> None:
        """Index these texts in the place of what is indexed of their blocks."""
        rows = [(one.row,) for one in texts]
        short = [
            (one.row, one.text, "".join(one.text.partition("\0")[1:]).replace("\0", " "))
            for one in texts
            if len(one.text) <= _LONG
        ]
        long = [(one.row, one.text) for one in texts if len(one.text) > _LONG]
        await self._database.write(
            (
                ("DELETE FROM search WHERE rowid = ?", rows),
                ("DELETE FROM long_texts WHERE row = ?", rows),
                ("INSERT INTO search (rowid, text, beyond) VALUES (?, ?, ?)", short),
                ("INSERT INTO long_texts VALUES (?, ?)", long),
                (
                    "INSERT OR REPLACE INTO searched VALUES (?, ?, ?, ?, ?)",
                    [(one.row, one.version, one.kind, one.path, len(one.text)) for one in texts],
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

    async def candidates(
        self, wanted: SearchFilter, after: int, limit: int
    ) -> list[tuple[int, int]]:
        """Return row and length of the first texts behind row `after` that have what is wanted."""
        found: list[tuple[int, int]] = []
        for table in ("search", "long_texts"):
            sql, values = _question(table, wanted, after)
            rows = await self._database.select(sql, (*values, limit))
            found += [(row, length) for row, length in rows]
        return sorted(found)[:limit]

    async def texts(self, rows: Sequence[int]) -> list[IndexedText]:
        """Return what is indexed in these rows."""
        found: list[IndexedText] = []
        for table, row in _TABLES.items():
            sql = (
                f"SELECT d.row, b.id, d.version, d.kind, d.path, {table}.text FROM {table}"
                f" JOIN searched d ON d.row = {table}.{row}"
                f" JOIN blocks b ON b.context = d.row >> {SEQ_BITS}"
                f" AND b.number = d.row & {(1 << SEQ_BITS) - 1}"
                f" WHERE {table}.{row} IN (SELECT value FROM json_each(?))"
            )
            found += [IndexedText(*one) for one in await self._database.select(sql, ([*rows],))]
        return found


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
        f"SELECT d.row, d.length FROM {table} JOIN searched d ON d.row = {row}"
        f" WHERE {' AND '.join(conditions)} ORDER BY {row} LIMIT ?"
    )
    return sql, values
