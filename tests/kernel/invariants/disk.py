"""State on disk, read past the kernel through a connection of one's own."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from tests.kernel.invariants.oracle import Op

FILE = "journal.db"


class Disk:
    """A reader of the journal of one data folder."""

    def __init__(self, data: Path) -> None:
        self._reader = sqlite3.connect(data / FILE, isolation_level=None)

    def close(self) -> None:
        self._reader.close()

    def last_seq(self, context: str) -> int:
        sql = (
            "SELECT coalesce(max(o.seq), 0) FROM ops o JOIN contexts c ON c.number = o.context"
            " WHERE c.id = ?"
        )
        return int(self._reader.execute(sql, (context,)).fetchone()[0])

    def ops(self, context: str, after: int) -> list[Op]:
        """Every transaction of a context with a higher `seq`, in order."""
        sql = "SELECT b.number, b.id FROM blocks b JOIN contexts c ON c.number = b.context"
        names = dict(self._reader.execute(f"{sql} WHERE c.id = ?", (context,)).fetchall())
        sql = (
            "SELECT o.seq, o.time, p.id, s.id, o.operation, o.unit, o.touched, o.changes FROM ops o"
            " JOIN principals p ON p.number = o.principal"
            " JOIN sessions s ON s.number = o.session"
            " JOIN contexts c ON c.number = o.context"
            " WHERE c.id = ? AND o.seq > ? ORDER BY o.seq"
        )
        found = []
        for row in self._reader.execute(sql, (context, after)):
            seq, time, principal, session, operation, unit, touched, changes = row
            pairs = (pair.split(":") for pair in touched.split())
            versions = {names[int(number)]: int(version) for number, version in pairs}
            update = bytes(changes)
            found.append(Op(seq, time, principal, session, operation, unit, versions, update))
        return found

    def everything(self) -> list[tuple[object, ...]]:
        """All that a call could have changed; operations by their number, since none changes."""
        rows = self._reader.execute("SELECT context, max(seq), count(*) FROM ops GROUP BY context")
        found = rows.fetchall()
        for table in ("blocks", "undo", "clients", "contexts", "principals"):
            found += self._reader.execute(f"SELECT * FROM {table}").fetchall()
        return found


def crash_image(data: Path, image: Path) -> None:
    """Write what would be left if the machine stopped now."""
    image.mkdir()
    for name in (FILE, f"{FILE}-wal"):
        if (data / name).exists():
            shutil.copyfile(data / name, image / name)
