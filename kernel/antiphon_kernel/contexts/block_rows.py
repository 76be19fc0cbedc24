"""Numbers and versions of the blocks of one context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from antiphon_kernel.storage import BlockRow


class BlockRows:
    """The journal's row of each block that a context holds, with what is on its way to disk."""

    def __init__(self) -> None:
        self._rows: dict[str, BlockRow] = {}
        self._persisted: dict[str, int] = {}

    def __iter__(self) -> Iterator[BlockRow]:
        return iter(self._rows.values())

    def add_stored(self, rows: Sequence[BlockRow]) -> None:
        """Add rows as they are on disk; those that are known already are newer."""
        self._rows = {row.id: row for row in rows} | self._rows
        self._persisted = {row.id: row.version for row in rows} | self._persisted

    def clear(self) -> None:
        self._rows.clear()
        self._persisted.clear()

    def number(self, block: str) -> int:
        """Return the journal's number of a block. Raises KeyError."""
        return self._rows[block].number

    def version(self, block: str) -> int:
        """Return the change count of a block; 1 at creation, 0 if there is no such block."""
        row = self._rows.get(block)
        return row.version if row is not None else 0

    def persisted_version(self, block: str) -> int:
        """Return the last version of a block that is on disk; 0 if there is none yet."""
        return self._persisted.get(block, 0)

    def advance(self, block: str) -> BlockRow:
        """Count a change of a block, which may be a new one; return its row."""
        row = self._rows.get(block)
        if row is None:
            row = BlockRow(len(self._rows) + 1, block, 1)
        else:
            row = BlockRow(row.number, block, row.version + 1)
        self._rows[block] = row
        return row

    def persist(self, versions: Mapping[str, int]) -> None:
        """Note the versions that are on disk now, by block."""
        self._persisted.update(versions)
