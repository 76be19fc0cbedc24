"""`antiphon mcp` as agents outside start it: by its lines and by the library's client."""

from __future__ import annotations

import asyncio
import json
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import Implementation, TextContent

from tests.e2e.machine import ANTIPHON, Machine
from tests.fork_server import start_process

ME = {"name": "Some Agent", "version": "1"}


def request(number: int, method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"


def test_lines_are_answered_with_lines_until_the_input_ends(machine: Machine) -> None:
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": ME}
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": ME,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call = {"name": "write_message", "arguments": {"context": "default", "content": "Hello."}}
    sessions = [request(1, "initialize", **opening), request(2, "tools/call", **call)]
    stateless = [
        request(1, "server/discover", _meta=meta),
        request(2, "tools/call", **call, _meta=meta),
    ]
    for number, lines in enumerate((sessions, stateless), 1):
        large = [request(3, "ping", _meta=meta, text="x" * 9_000_000)] if number == 1 else []
        done = machine.run("mcp", stdin="".join([*lines, "no message\n", "\n", *large]))
        assert done.returncode == 0, done.stderr
        answers = {one.get("id"): one for one in map(json.loads, done.stdout.splitlines())}
        assert set(answers) == {1, 2, None, *(3 for _ in large)}
        assert not large or "too large" in answers[3]["error"]["message"]
        assert answers[None]["error"]["code"] == -32700
        wrote = answers[2]["result"]["structuredContent"]
        assert wrote["name"] == f"default.some-agent.{number}"
        said = f"antiphon: started a kernel for {machine.project}\n" if number == 1 else ""
        assert done.stderr == said
    listing = request(1, "tools/list", _meta=meta)
    named = machine.run("mcp", "--as", "opus", stdin=listing)
    assert len(json.loads(named.stdout)["result"]["tools"]) == 13
    refused = machine.run("mcp", "--data", str(machine.project / "README.md"), stdin="")
    assert refused.returncode == 2
    assert refused.stdout == ""


def test_clients_of_both_eras_go_on_with_the_next_kernel(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    forking = SimpleNamespace(**(vars(subprocess) | {"Popen": start_process}))
    monkeypatch.setattr("asyncio.unix_events.subprocess", forking)
    server = StdioServerParameters(
        command=ANTIPHON, args=["mcp"], env=machine.env, cwd=machine.project
    )

    def client(era: str, name: str) -> Client:
        info = Implementation(name=name, version="1")
        return Client(stdio_client(server), mode=era, client_info=info)

    async def write(client: Client, text: str) -> str:
        said = {"context": "default", "content": text}
        result = await client.call_tool("write_message", said)
        (content,) = result.content
        assert isinstance(content, TextContent)
        return content.text

    async def play() -> None:
        async with client("legacy", "codex") as codex, client("2026-07-28", "goose") as goose:
            for one, name in ((codex, "codex"), (goose, "goose")):
                assert f"default.{name}.1" in await write(one, "One.")
            await asyncio.to_thread(machine.end_kernel)
            assert "default.goose.2" in await write(goose, "Two.")
            assert "default.codex.2" in await write(codex, "Two." * 500_000)
            long = await codex.call_tool("read_block", {"block_id": "default.codex.2"})
            assert len(str(long.structured_content)) > 2_000_000

    asyncio.run(play())
