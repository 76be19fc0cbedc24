"""Clients of the MCP library at the door of a kernel, in both eras."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, Implementation, TextContent

from tests.kernel.served import ServedKernel

LEGACY, MODERN = "legacy", "2026-07-28"
ERAS: Final = (LEGACY, MODERN)


@asynccontextmanager
async def connected(
    served: ServedKernel,
    era: str,
    *,
    name: str = "claude-code",
    token: str | None = None,
    query: str = "",
    heard: asyncio.Queue[Any] | None = None,
) -> AsyncIterator[Client]:
    """A client that has connected.

    Args:
        token: the owner's if None.
        heard: gets what the kernel says unasked (2025-11-25).
    """
    headers = {"Authorization": f"Bearer {token or served.doors.token}"}

    async def hear(message: Any) -> None:
        if heard is not None:
            heard.put_nowait(message)

    async with (
        httpx2.AsyncClient(headers=headers, timeout=30, verify=False) as http,
        Client(
            streamable_http_client(f"{served.doors.http}/mcp{query}", http_client=http),
            mode=era,
            client_info=Implementation(name=name, version="1"),
            message_handler=hear,
        ) as client,
    ):
        yield client


def text_of(result: CallToolResult) -> str:
    """Return the text of a result, which has nothing else."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def done(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return what a tool has answered, which it has said as text, too."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    assert json.loads(text_of(result)) == result.structured_content
    answer: dict[str, Any] = result.structured_content
    return answer


async def failed(client: Client, tool: str, **arguments: Any) -> str:
    """Return what a tool has failed with."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return text_of(result)
