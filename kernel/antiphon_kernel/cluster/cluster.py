"""One kernel among those on one database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from antiphon_kernel.cluster.news import ClusterNews
from antiphon_kernel.cluster.ownership import Ownership
from antiphon_kernel.storage.postgres_schema import POSTGRES_SCHEMAS

if TYPE_CHECKING:  # it imports its library
    from antiphon_kernel.storage.postgres import PostgresDatabase


@dataclass(frozen=True, slots=True)
class Cluster:
    """The trees of one kernel and its news of the others, with connections of their own."""

    ownership: Ownership
    news: ClusterNews
    database: PostgresDatabase

    @classmethod
    async def open(cls, store: str, lease_seconds: float) -> Self:
        """Join the kernels on a database whose tables are there. Raises storage_failed."""
        from antiphon_kernel.storage.postgres import PostgresDatabase

        database = PostgresDatabase(store, POSTGRES_SCHEMAS["journal"])
        try:
            ownership = await Ownership.open(database, lease_seconds)
        except BaseException:
            await database.close()
            raise
        return cls(ownership, ClusterNews(database), database)

    async def close(self) -> None:
        """Give up everything, and leave."""
        try:
            await self.news.close()
            await self.ownership.close()
        finally:
            await self.database.close()
