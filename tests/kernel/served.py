"""A real kernel behind real sockets, and the clients that tests speak to it with."""

from __future__ import annotations

import asyncio
import contextlib
import socket as sockets
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import aiosqlite
from websockets.asyncio.client import ClientConnection, connect

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.local_replica import ReplicaState
from antiphon_kernel.client.replica import Replica
from antiphon_kernel.contexts import Context
from antiphon_kernel.document.document import Document
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.limits import DEFAULT_LIMITS, Limits
from antiphon_kernel.registry import Registry, Tool
from antiphon_kernel.server import Server
from antiphon_kernel.server.limits import DEFAULT_SERVER_LIMITS, ServerLimits
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.types.ids import IdSource
from antiphon_kernel.types.records import Actor
from antiphon_kernel.yjs.frames import (
    Frame,
    SyncStep1,
    SyncStep2,
    SyncUpdate,
    decode_frame,
    encode_frame,
)
from tests.addresses import address_of
from tests.kernel.founding import copy_founded
from tests.waiting import PATIENCE, until

F = TypeVar("F")


class RawClient:
    """A sync connection frame by frame, for clients that behave as no replica would."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.received: list[Frame] = []

    async def send(self, *frames: Frame | bytes | str) -> None:
        for frame in frames:
            await self.socket.send(frame if isinstance(frame, bytes | str) else encode_frame(frame))

    async def next(self, kind: type[F], where: Callable[[F], bool] = lambda _: True) -> F:
        """The next frame of this kind; others on the way are kept in `received`."""
        while True:
            frame = await self.any()
            if isinstance(frame, kind) and where(frame):
                return frame

    async def any(self) -> Frame:
        data = await asyncio.wait_for(self.socket.recv(), PATIENCE)
        assert isinstance(data, bytes)
        frame = decode_frame(data)
        self.received.append(frame)
        return frame

    async def join(self, state_vector: bytes = b"\x00") -> SyncStep2:
        """Say what one has; the answer."""
        await self.send(SyncStep1(state_vector))
        return await self.next(SyncStep2)

    async def closed(self) -> tuple[int | None, str | None]:
        """Wait until the kernel has closed the connection; code and reason."""
        with contextlib.suppress(Exception):
            while True:
                await self.any()
        await asyncio.wait_for(self.socket.wait_closed(), PATIENCE)
        return self.socket.close_code, self.socket.close_reason


class RawWriter:
    """A document of its own behind a raw connection: says exactly what the test wants."""

    def __init__(self, client: RawClient, document: Document) -> None:
        self.client = client
        self.document = document

    def write(self, change: Callable[[Document], None]) -> bytes:
        """Change the document; the update, not sent."""
        updates: list[bytes] = []
        unwatch = self.document.watch_updates(lambda update, _: updates.append(update))
        change(self.document)
        unwatch()
        return updates[0]

    async def append(self, block: str, text: str) -> None:
        """Write at the end of a block and send that."""
        await self.client.send(SyncUpdate(self.write(lambda one: one.append(block, text))))


class ServedKernel:
    """A kernel with open doors, which can be stopped and started on the same data."""

    def __init__(
        self,
        folder: Path,
        limits: ServerLimits,
        tools: Iterable[Tool] = KERNEL_TOOLS,
        kernel_limits: Limits = DEFAULT_LIMITS,
        store: str | None = None,
    ) -> None:
        self._folder, self._store = folder, store
        self._limits = limits
        self._kernel_limits = kernel_limits
        self._registry = Registry(tools)
        self._running: list[tuple[Replica, asyncio.Task[None]]] = []
        self._raw: list[RawClient] = []
        self.kernel: Kernel
        self.doors: Server
        self.me: Actor
        if store is None:
            copy_founded(folder / "data")

    async def start(self) -> None:
        self.kernel = await Kernel.open(
            self._folder / "data",
            self._folder,
            registry=self._registry,
            owner="amy",
            limits=self._kernel_limits,
            store=self._store,
        )
        self.doors = await Server(self.kernel, self._limits).start(
            port=0, socket=self._folder / "run" / "kernel.sock"
        )
        self.me = self.kernel.open_session(self.kernel.owner, "test")

    def move(self, folder: Path) -> None:
        self._folder = folder

    async def stop(self) -> None:
        await self.doors.close()
        await self.kernel.close()

    async def break_disk(self) -> None:
        """From now on no commit succeeds."""
        await self._execute(
            "CREATE TRIGGER broken BEFORE INSERT ON ops"
            " BEGIN SELECT RAISE(ABORT, 'the disk is broken'); END"
        )

    async def mend_disk(self) -> None:
        await self._execute("DROP TRIGGER broken")

    async def _execute(self, sql: str) -> None:
        # Awaited, since the kernel may be inside a transaction that this very loop has to end.
        async with aiosqlite.connect(self._folder / "data" / "journal.db") as database:
            await database.execute(sql)
            await database.commit()

    async def close(self) -> None:
        for raw in self._raw:
            await raw.socket.close()
        for replica, task in self._running:
            await replica.close()
            await task
        await self.stop()

    def locate(self) -> KernelAddress:
        """Over the unix socket."""
        return address_of(self.kernel, self.doors)

    def locate_tcp(self) -> KernelAddress:
        return self.locate().model_copy(update={"socket": None})

    def start_replica(self, name: str | None = None, **options: Any) -> Replica:
        """A replica that runs until the end of the test."""
        locate = options.pop("locate", self.locate)
        replica = Replica(locate, as_name=name, **options)
        self._running.append((replica, asyncio.create_task(replica.run())))
        return replica

    async def replica(self, name: str | None = None, **options: Any) -> Replica:
        replica = self.start_replica(name, **options)
        await until(lambda: replica.state is ReplicaState.LIVE, "a replica is live")
        return replica

    async def raw(self, path: str = "/sync/default", query: str = "", **options: Any) -> RawClient:
        """A plain connection of the owner's."""
        base = self.doors.http.replace("http", "ws", 1)
        uri = f"{base}{path}?token={self.doors.token}&{query}"
        options = {"compression": None, "max_size": None, "close_timeout": 0.2, **options}
        raw = RawClient(await connect(uri, **options))
        self._raw.append(raw)
        return raw

    async def joined(self, **options: Any) -> RawClient:
        """A plain connection that has been told what there is."""
        raw = await self.raw(**options)
        await raw.join()
        return raw

    async def writer(self, query: str = "") -> RawWriter:
        """A plain connection that has been told what there is, with a document of its own."""
        client = await self.raw(query=query)
        document = Document(IdSource().client_id())
        document.apply_update((await client.join()).update)
        return RawWriter(client, document)

    async def slow_reader(self, path: str = "/sync/default") -> RawClient:
        """A plain connection with small system buffers, which reads only when told to."""
        sock = sockets.socket(sockets.AF_INET, sockets.SOCK_STREAM)
        sock.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 8192)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self.doors.port))
        return await self.raw(path, sock=sock, max_queue=1, ping_interval=None)

    def forget_raw(self) -> None:
        """Hold on to no plain connection that was opened so far."""
        self._raw.clear()

    async def context(self, reference: str = "default") -> Context:
        return await self.kernel.context(reference)

    async def call(self, tool: str, /, **params: Any) -> dict[str, Any]:
        return await self.kernel.call(self.me, tool, params)

    async def block(self, content: Any = "", **params: Any) -> str:
        new = {"kind": "file", "content": content, **params}
        return str((await self.call("block.create", **new))["block_id"])


@contextlib.asynccontextmanager
async def served_kernel(
    folder: Path,
    limits: ServerLimits = DEFAULT_SERVER_LIMITS,
    tools: Iterable[Tool] = KERNEL_TOOLS,
    kernel_limits: Limits = DEFAULT_LIMITS,
    store: str | None = None,
) -> AsyncIterator[ServedKernel]:
    """A served kernel that is closed at the end."""
    served = ServedKernel(folder, limits, tools, kernel_limits, store)
    await served.start()
    try:
        yield served
    finally:
        await served.close()


class CuttableProxy:
    """A TCP relay in front of a kernel whose connections can be broken off or stopped."""

    def __init__(self, port: int | Callable[[], int], delay: float = 0) -> None:
        """
        Args:
            port: of the kernel, or what chooses it anew for each connection.
            delay: seconds that everything takes each way.
        """
        self._target = port
        self._delay = delay
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server
        self.port: int
        self.bytes = 0
        """Bytes relayed, both ways."""
        self._flows = {True: asyncio.Event(), False: asyncio.Event()}
        """Whether what comes from clients, and what goes to them, is relayed."""
        self.go_on()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def turn_to(self, port: int) -> None:
        self._target = port

    def stop(self, *, from_clients: bool = True, to_clients: bool = True) -> None:
        """Relay nothing in these directions until `go_on`, with every connection open."""
        for way, is_stopped in ((True, from_clients), (False, to_clients)):
            if is_stopped:
                self._flows[way].clear()

    def go_on(self) -> None:
        """Relay again, what has come meanwhile first."""
        for flow in self._flows.values():
            flow.set()

    def cut(self) -> None:
        """Break off every connection, both ways, without a word."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def close(self) -> None:
        self._server.close()
        self.cut()
        self.go_on()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = self._target if isinstance(self._target, int) else self._target()
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.transport.abort()
            return
        flows = self._flows
        for source, sink, flow in (
            (reader, far_writer, flows[True]),
            (far_reader, writer, flows[False]),
        ):
            task = asyncio.create_task(self._relay(source, sink, flow))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._writers |= {writer, far_writer}

    async def _relay(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, flow: asyncio.Event
    ) -> None:
        try:
            while data := await source.read(65536):
                await flow.wait()
                self.bytes += len(data)
                if self._delay:
                    asyncio.get_running_loop().call_later(self._delay, sink.write, data)
                else:
                    sink.write(data)
                    await sink.drain()
        except OSError:
            pass
        finally:
            if self._delay:
                asyncio.get_running_loop().call_later(self._delay, sink.close)
            else:
                sink.close()
            self._writers.discard(sink)
