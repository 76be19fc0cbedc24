"""Opening of tables, in a file of SQLite, or in a database of Postgres."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from antiphon_kernel.storage.database import Database
from antiphon_kernel.storage.postgres_schema import POSTGRES_SCHEMAS
from antiphon_kernel.storage.schema import Schema

if TYPE_CHECKING:  # it imports its library
    from antiphon_kernel.storage.postgres import PostgresDatabase

SqlDatabase: TypeAlias = "Database | PostgresDatabase"
"""Tables that are read and written in SQL that SQLite and Postgres both understand.

A list is one value, behind `IN (SELECT value FROM json_each(?))`. Every method raises AntiphonError
storage_failed.
"""


async def open_tables(place: Path | str, schema: Schema, spare: Path | None = None) -> SqlDatabase:
    """Open or create the tables at `place` and bring them to the current version.

    Args:
        place: the path of a file, or the URL of a store (`postgresql://…`).
        spare: a file to copy everything to if the file is deleted or replaced.

    Raises:
        AntiphonError: storage_failed if they cannot be opened or reached, are damaged, or were
            written by a version that is newer, or much older.
        ImportError: if there is no library for a store.
    """
    if isinstance(place, Path):
        return await Database.open(place, schema, spare)
    from antiphon_kernel.storage.postgres import PostgresDatabase

    return await PostgresDatabase.open(place, POSTGRES_SCHEMAS[schema.name])
