"""`antiphon mcp`: messages of MCP between standard input and output and `/mcp` of a kernel."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any, BinaryIO, Final
from urllib.parse import urlencode

import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
)
from mcp_types import INTERNAL_ERROR, PROTOCOL_VERSION_META_KEY

from antiphon.cli.stdio import Printer, lines
from antiphon_kernel.client.address import KernelAddress, Locate
from antiphon_kernel.types.errors import AntiphonError

_LAST_ANSWERS_SECONDS: Final = 5.0
"""How long answers are waited for after the end of the input."""

_Message = Mapping[str, Any]
"""One as far as it is known; empty for a line that is none."""

_LISTENING: Final = "subscriptions/listen"
"""A request that is answered when nobody wants to hear any more."""

_OPENING: Final = "initialize"
_OPEN: Final = {"method": _OPENING}

_EVENTS: Final = "text/event-stream"
_HEADERS: Final = {
    "Accept": f"application/json, {_EVENTS}",
    "Content-Type": "application/json",
    # One that is kept may have ended with its kernel when the next request is written.
    "Connection": "close",
}

_GONE: Final = (
    "The kernel went away before it answered; the call may have taken effect. Look, then call"
    " again."
)


class McpBridge:
    """Messages of one client on their way to the kernel that runs then, and back.

    If it has ended, another one is started for the next message, and the session that the client
    has opened is opened again there.
    """

    def __init__(
        self, source: BinaryIO, sink: BinaryIO, find: Callable[[], Locate], query: Mapping[str, str]
    ) -> None:
        """`find` looks for the kernel, and starts it if it does not run; it may take seconds."""
        self._source, self._printer, self._printing = source, Printer(sink), asyncio.Lock()
        self._find = find
        self._kernel: KernelAddress
        self._path = f"/mcp?{urlencode(query)}"
        self._opening, self._session = b"", ""
        """The message that has opened a session, and its number; none in the era without them."""
        self._asked: dict[Any, asyncio.Task[None]] = {}
        """Requests that are not answered yet, by their ids."""
        self._hearing: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Pass messages on until the input ends.

        Raises:
            AntiphonError: if there is no kernel at the start.
        """
        await asyncio.to_thread(self._find)
        async for line in lines(self._source):
            if line.strip():
                await self._take(line)
        if asked := [one for one in self._asked.values() if one.get_name() != _LISTENING]:
            await asyncio.wait(asked, timeout=_LAST_ANSWERS_SECONDS)
        if self._session:
            with suppress(httpx2.TransportError):
                await (await self._request("DELETE", b"", {})).aclose()

    async def _take(self, line: bytes) -> None:
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        message = found if isinstance(found, dict) else {}  # the kernel says what is wrong
        method, number = message.get("method"), message.get("id")
        if method == "notifications/cancelled" and not self._session:
            # Without a session the end of the request says it to the kernel.
            cancelled = message.get("params", {}).get("requestId")
            if (asked := self._asked.pop(cancelled, None)) is not None:
                asked.cancel()
            return
        task = asyncio.create_task(self._pass_on("POST", line, message), name=method)
        if method is not None and number is not None:
            self._asked[number] = task
        if method == _OPENING or number is None:
            await task  # before what follows
        if self._session and (self._hearing is None or self._hearing.done()):
            self._hearing = asyncio.create_task(self._pass_on("GET", b"", {}))

    async def _pass_on(self, verb: str, content: bytes, message: _Message) -> None:
        """Pass a message on, and back what is answered."""
        number, said = message.get("id"), _GONE
        try:
            async with aclosing(await self._sent(verb, content, message)) as response:
                kind = response.headers.get("content-type", "")
                if kind.startswith(_EVENTS):
                    async for event in httpx2.EventSource(response, max_event_size=None):
                        if event.data:
                            await self._print(json.loads(event.data))
                elif verb == "POST":
                    said = (await response.aread()).decode()
                    if said and kind.startswith("application/json"):
                        await self._print({**json.loads(said), "id": number})
        except AntiphonError as refused:
            said = refused.message
        except httpx2.TransportError:
            pass
        if "method" in message and number in self._asked:
            error = {"code": INTERNAL_ERROR, "message": said}
            await self._print({"jsonrpc": "2.0", "id": number, "error": error})

    async def _print(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            self._asked.pop(message.get("id"), None)
        async with self._printing:
            await self._printer.print(json.dumps(message) + "\n")

    async def _sent(self, verb: str, content: bytes, message: _Message) -> httpx2.Response:
        """Send a message to the kernel that runs now; open the session anew if it is not known.

        Raises:
            AntiphonError: if no kernel can be found or started.
            TransportError: if the kernel ends meanwhile.
        """
        self._kernel = (await asyncio.to_thread(self._find))()
        response = await self._request(verb, content, message)
        if response.status_code == 404 and self._session:
            await response.aclose()
            async with aclosing(await self._sent("POST", self._opening, _OPEN)) as opened:
                await opened.aread()
            response = await self._request(verb, content, message)
        if message.get("method") == _OPENING:
            self._opening = content
            self._session = response.headers.get(MCP_SESSION_ID, "")
        return response

    async def _request(self, verb: str, content: bytes, message: _Message) -> httpx2.Response:
        kernel, socket = self._kernel, self._kernel.reachable_socket
        uds = str(socket) if socket is not None else None
        # It is on this machine, and without TLS, whose context takes long to make.
        transport = httpx2.AsyncHTTPTransport(uds=uds, verify=False)
        client = httpx2.AsyncClient(transport=transport, base_url=kernel.http, timeout=None)
        headers = {**_HEADERS, **kernel.headers, **self._headers(message)}
        request = client.build_request(verb, self._path, content=content, headers=headers)
        return await client.send(request, stream=True)

    def _headers(self, message: _Message) -> dict[str, str]:
        """Return what a message says of itself, as HTTP has it in headers too."""
        params = message.get("params") or {}
        version = (params.get("_meta") or {}).get(PROTOCOL_VERSION_META_KEY)
        if version is None:
            is_within = self._session and message.get("method") != _OPENING
            return {MCP_SESSION_ID: self._session} if is_within else {}
        method = message["method"]
        headers = {MCP_PROTOCOL_VERSION_HEADER: version, MCP_METHOD_HEADER: method}
        if (name := params.get(NAME_BEARING_METHODS.get(method, ""))) is not None:
            headers[MCP_NAME_HEADER] = name
        return {key: encode_header_value(str(value)) for key, value in headers.items()}
