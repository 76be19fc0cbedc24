"""The conformance suite of MCP against the door of a kernel, with its token."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from antiphon_kernel.server.mcp import service
from tests.kernel.served import served_kernel
from tests.kernel.server.mcp.conformance_fixture import Fixture
from tests.programs import program


@asynccontextmanager
async def with_token(port: int, token: str) -> AsyncIterator[int]:
    """Relay connections to a port, each request with the token: the suite shows none."""

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            # One request a connection: the body and the answer need not be understood.
            head = re.sub(rb"(?im)^connection:.*\r\n", b"", head)
            added = f"Authorization: Bearer {token}\r\nConnection: close\r\n\r\n"
            far_writer.write(head[:-2] + added.encode())

            async def rest() -> None:
                while data := await reader.read(65_536):
                    far_writer.write(data)
                far_writer.close()

            resting = asyncio.create_task(rest())
            while data := await far_reader.read(65_536):
                writer.write(data)
                await writer.drain()
            resting.cancel()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            far_writer.close()

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.filterwarnings("ignore:The .* capability is deprecated")
@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
async def test_conformance_suite_passes(
    era: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = program("conformance")
    env = {**os.environ, "PATH": f"{suite.parent}{os.pathsep}{os.environ['PATH']}"}
    async with served_kernel(tmp_path / "kernel") as served:
        monkeypatch.setattr(service, "make_server", lambda *_: Fixture().server)
        async with with_token(served.doors.port, served.doors.token) as port:
            process = await asyncio.create_subprocess_exec(
                *(suite, "server", "--url", f"http://127.0.0.1:{port}/mcp"),
                *("--requirements", era, "--output-dir", str(tmp_path / "results")),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=env,
                cwd=tmp_path,
            )
            output, _ = await process.communicate()
    assert process.returncode == 0, output.decode().partition("=== SUMMARY ===")[2]
