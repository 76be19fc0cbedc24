"""The least that a server in Python can do: commit an update to SQLite in a thread, then send it.

python -m tests.bench.fanout.bare_server FILE

It checks nothing and keeps no document; it speaks as much of the Yjs protocol as the load needs.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final

import uvloop
from websockets.asyncio.server import ServerConnection, broadcast, serve
from websockets.exceptions import ConnectionClosed

NOTHING: Final = b"\x00\x01\x02\x00\x00"
"""A sync step 2 without any content."""


class Rows:
    """A table in a file, written from one thread."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("CREATE TABLE ops (number INTEGER PRIMARY KEY, data BLOB)")
        self._thread = ThreadPoolExecutor(1)

    async def add(self, data: bytes) -> None:
        """Commit one row."""
        insert = partial(self._connection.execute, "INSERT INTO ops (data) VALUES (?)", (data,))
        await asyncio.get_running_loop().run_in_executor(self._thread, insert)


async def run(path: str) -> None:
    rows, rooms = Rows(path), dict[str, set[ServerConnection]]()

    async def follow(socket: ServerConnection) -> None:
        assert socket.request is not None
        room = rooms.setdefault(socket.request.path, set())
        room.add(socket)
        with suppress(ConnectionClosed):
            async for message in socket:
                assert isinstance(message, bytes)
                if message.startswith(b"\x00\x02"):
                    await rows.add(message)
                    broadcast(room - {socket}, message)
                else:
                    await socket.send(NOTHING)
        room.discard(socket)

    async with serve(follow, "127.0.0.1", 0, compression=None) as server:
        print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    uvloop.run(run(sys.argv[1]))
