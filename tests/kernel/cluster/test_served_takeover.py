"""Clients of a kernel that loses its contexts, or leaves them, over real sockets."""

from __future__ import annotations

from pathlib import Path

from antiphon_kernel.yjs.close_codes import CloseCode
from tests.kernel.cluster.conftest import LIMITS
from tests.kernel.cluster.database_link import DatabaseLink
from tests.kernel.served import served_kernel
from tests.kernel.server.invited import closing
from tests.waiting import until


async def test_client_of_a_kernel_that_is_cut_off_is_to_come_again(
    tmp_path: Path, store: str
) -> None:
    link = DatabaseLink(store)
    await link.start()
    async with served_kernel(tmp_path, store=link.url, kernel_limits=LIMITS) as served:
        cluster = served.kernel.cluster
        assert cluster is not None
        client = await served.joined()

        await link.close()
        await until(lambda: not cluster.ownership.is_live)

        assert (await closing(client.socket))[0] == CloseCode.MOVED
        again = await served.raw()
        assert (await closing(again.socket))[0] == CloseCode.TRY_AGAIN_LATER


async def test_client_of_a_kernel_that_ends_hears_that_its_context_has_moved(
    tmp_path: Path, store: str
) -> None:
    async with served_kernel(tmp_path, store=store) as served:
        client = await served.joined()

        await served.doors.close()

        assert (await closing(client.socket))[0] == CloseCode.MOVED
