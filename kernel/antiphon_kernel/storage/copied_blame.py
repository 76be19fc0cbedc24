"""Authors of the texts of a copied block before the copy.

A record is written with the transaction that makes the copy, and never changed. It speaks of the
text as that transaction left it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from antiphon_kernel.storage.database import Database
from antiphon_kernel.storage.errors import CorruptContextError
from antiphon_kernel.storage.rows import ContextRow, InheritedRun
from antiphon_kernel.storage.schema import READABLE_FORMATS


def encode_runs(runs: Sequence[InheritedRun]) -> str:
    """The runs of one text as they are stored."""
    return json.dumps([[one.start, one.end, one.principal, one.version, one.time] for one in runs])


async def read_inherited(
    database: Database, context: ContextRow, blocks: Collection[int] | None = None
) -> dict[int, dict[str | None, list[InheritedRun]]]:
    """The runs of each text of the copies in a context, or of the blocks with these numbers.

    The keys are the number of the block, then the path of the section, None for a content that is
    one text.

    Raises:
        CorruptContextError: if a record cannot be read.
        AntiphonError: storage_failed.
    """
    sql = "SELECT block, section, format, runs FROM inherited_blame WHERE context = ?"
    values: list[object] = [context.number]
    if blocks is not None:
        sql += " AND block IN (SELECT value FROM json_each(?))"
        values.append(json.dumps([*blocks]))
    found: dict[int, dict[str | None, list[InheritedRun]]] = {}
    for number, section, format_, runs in await database.select(sql, values):
        try:
            if format_ not in READABLE_FORMATS:
                raise ValueError(f"it has the format {format_!r}")
            read = [InheritedRun(*run) for run in json.loads(runs)]
        except (ValueError, TypeError) as error:
            what = f"the record of who wrote block {number} cannot be read ({error})"
            raise CorruptContextError(context, what) from error
        found.setdefault(number, {})[section or None] = read
    return found
