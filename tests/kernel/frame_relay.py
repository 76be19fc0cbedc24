"""A relay in front of a kernel that changes, or breaks off, what it sends frame by frame."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from websockets.asyncio.client import connect
from websockets.asyncio.server import Server, ServerConnection, serve

from antiphon_kernel.client.address import KernelAddress
from tests.kernel.served import ServedKernel


class FrameRelay:
    """Relays the sync connections of a kernel."""

    def __init__(self, served: ServedKernel) -> None:
        self._served = served
        self._server: Server
        self._port: int
        self.change: Callable[[bytes], bytes | None] = lambda frame: frame
        """Returns what is sent in place of a frame of the kernel's; None breaks the line."""
        self.connections = 0

    async def start(self) -> None:
        self._server = await serve(self._relay, "127.0.0.1", 0, max_size=None, close_timeout=0.1)
        self._port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        self._server.close()
        await self._server.wait_closed()

    def locate(self) -> KernelAddress:
        http = f"http://127.0.0.1:{self._port}"
        return self._served.locate_tcp().model_copy(update={"http": http})

    async def _relay(self, near: ServerConnection) -> None:
        self.connections += 1
        assert near.request is not None
        uri = self._served.doors.http.replace("http", "ws", 1) + near.request.path
        headers = {"Authorization": near.request.headers["Authorization"]}
        async with connect(
            uri, additional_headers=headers, max_size=None, close_timeout=0.1
        ) as far:

            async def back() -> None:
                async for data in far:
                    assert isinstance(data, bytes)
                    changed = self.change(data)
                    if changed is None:
                        near.transport.abort()
                        return
                    await near.send(changed)

            async def forth() -> None:
                async for data in near:
                    await far.send(data)

            tasks = {asyncio.create_task(back()), asyncio.create_task(forth())}
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            await far.close()
            await near.close(far.close_code or 1000, far.close_reason or "")
            await asyncio.gather(*tasks, return_exceptions=True)
