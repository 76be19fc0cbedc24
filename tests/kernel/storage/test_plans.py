"""Every statement of a journal that is often carried out finds its rows by an index."""

from __future__ import annotations

from tests.kernel.storage.many_rows import dear_scans, fill, log_plans, use_everything
from tests.postgres import PostgresServer


async def test_statements_on_many_rows_read_few(
    postgres_server: PostgresServer, store: str
) -> None:
    database = store.rpartition("/")[2]
    fill(postgres_server, database, 100_000)
    for mode in ("auto", "force_generic_plan"):
        log_plans(postgres_server, database, mode)
        await use_everything(store)
    assert dear_scans(postgres_server, database) == []
