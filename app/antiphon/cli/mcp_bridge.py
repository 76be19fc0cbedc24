"""`antiphon mcp`: messages of MCP between standard input and output and `/mcp` of a kernel."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from typing import Any, BinaryIO, Final
from urllib.parse import urlencode, urlsplit

import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
)
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    PARSE_ERROR,
    PROTOCOL_VERSION_META_KEY,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from antiphon.cli.stdio import Printer, lines
from antiphon_kernel.client.address import KernelAddress, Locate
from antiphon_kernel.types.errors import AntiphonError, ErrorCode

_LAST_ANSWERS_SECONDS: Final = 5.0
"""How long answers are waited for after the end of the input."""

_OPENING: Final = "initialize"
_LISTENING: Final = "subscriptions/listen"
"""A request that is answered when nobody wants to hear any more."""


class KernelTransport(httpx2.AsyncBaseTransport):
    """Carries requests to the kernel, wherever it is by now; starts another one if it has ended.

    The session that the client has opened is opened again there, under its old number.
    """

    def __init__(self, find: Callable[[], Locate]) -> None:
        """`find` looks for the kernel, and starts it if it does not run; it may take seconds."""
        self._find = find
        self._connecting = asyncio.Lock()
        self._address: KernelAddress | None = None
        self._inner = httpx2.AsyncHTTPTransport()
        self._opening: httpx2.Request | None = None
        self._session = ""

    async def connect(self) -> None:
        """Find the kernel.

        Raises:
            AntiphonError: no_kernel, untrusted_folder.
        """
        async with self._connecting:
            if self._address is None:
                self._address = (await asyncio.to_thread(self._find))()
                socket = self._address.reachable_socket
                # A connection that is kept may have ended when the next request is written.
                limits = httpx2.Limits(max_keepalive_connections=0)
                uds = str(socket) if socket is not None else None
                self._inner = httpx2.AsyncHTTPTransport(uds=uds, limits=limits)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer a request; also one that no kernel has taken, with an error."""
        try:
            response = await self._send(request)
            opening = self._opening
            if response.status_code == 404 and MCP_SESSION_ID in request.headers and opening:
                await response.aclose()
                await (await self._send(opening)).aread()
                response = await self._send(request)
        except AntiphonError as error:
            return _refused(request, error)
        except httpx2.TransportError:
            said = (
                "The kernel went away before it answered; the call may have taken effect. Look,"
                " then call again."
            )
            return _refused(request, AntiphonError(ErrorCode.NO_KERNEL, said))
        return response

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        if MCP_SESSION_ID in request.headers:
            request.headers[MCP_SESSION_ID] = self._session
        try:
            response = await self._sent(request)
        except httpx2.ConnectError:
            self._address = None
            response = await self._sent(request)
        if not response.headers.get("content-type", "").startswith("application/json"):
            if request.method == "POST" and _method(request) == _OPENING:
                self._opening, self._session = request, response.headers.get(MCP_SESSION_ID, "")
            return response
        # Read here, where it is known what to say of a kernel that goes away meanwhile.
        content = await response.aread()
        return httpx2.Response(response.status_code, headers=response.headers, content=content)

    async def _sent(self, request: httpx2.Request) -> httpx2.Response:
        await self.connect()
        assert self._address is not None
        request.headers.update(self._address.headers)
        if self._address.reachable_socket is None:
            place = urlsplit(self._address.http)
            request.url = request.url.copy_with(host=place.hostname, port=place.port)
        return await self._inner.handle_async_request(request)


def _method(request: httpx2.Request) -> object:
    said = json.loads(request.content)
    return said.get("method") if isinstance(said, dict) else None


def _refused(request: httpx2.Request, error: AntiphonError) -> httpx2.Response:
    data = ErrorData(code=INTERNAL_ERROR, message=error.message)
    body = JSONRPCError(jsonrpc="2.0", id=None, error=data).model_dump(mode="json")
    return httpx2.Response(503, json=body, request=request)


class McpBridge:
    """Messages of one client on their way to a kernel and back."""

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source = source
        self._printer = Printer(sink)
        self._version: str | None = None
        """Version of the protocol that a session was opened with."""
        self._asked: dict[str | int, str] = {}
        """Methods of the requests that are not answered yet."""
        self._answered = asyncio.Event()

    async def run(self, find: Callable[[], Locate], query: Mapping[str, str]) -> None:
        """Pass messages on until the input ends.

        Raises:
            AntiphonError: if there is no kernel at the start.
        """
        transport = KernelTransport(find)
        await transport.connect()
        url = f"http://localhost/mcp?{urlencode(query)}"
        async with (
            httpx2.AsyncClient(transport=transport, timeout=None) as http,
            streamable_http_client(url, http_client=http, max_sse_event_size=None) as streams,
        ):
            work = (self._answer(streams[0]), self._read(streams[1]))
            tasks = {asyncio.create_task(one) for one in work}
            try:
                ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
        for task in ended:
            task.result()

    async def _read(self, sending: WriteStream[SessionMessage]) -> None:
        async for line in lines(self._source):
            if not line.strip():
                continue
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValidationError as error:
                said = f"This is no message of JSON-RPC: {error.errors()[0]['msg']}."
                data = ErrorData(code=PARSE_ERROR, message=said)
                await self._print(JSONRPCError(jsonrpc="2.0", id=None, error=data))
                continue
            if isinstance(message, JSONRPCRequest):
                self._asked[message.id] = message.method
            metadata = ClientMessageMetadata(headers=self._headers(message))
            await sending.send(SessionMessage(message, metadata))
            await self._until_answered({_OPENING})  # only then is there a session to ask in
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_ANSWERS_SECONDS):
                await self._until_answered({*self._asked.values()} - {_LISTENING})

    async def _until_answered(self, methods: Set[str]) -> None:
        while not methods.isdisjoint(self._asked.values()):
            self._answered.clear()
            await self._answered.wait()

    async def _answer(self, received: ReadStream[SessionMessage | Exception]) -> None:
        async for one in received:
            if isinstance(one, Exception):
                continue  # what the client waits for is answered with an error
            message = one.message
            if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
                method = self._asked.pop(message.id, None)
                if method == _OPENING and isinstance(message, JSONRPCResponse):
                    self._version = message.result.get("protocolVersion")
            await self._print(message)
            self._answered.set()

    async def _print(self, message: JSONRPCMessage) -> None:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
        await self._printer.print(f"{text}\n")

    def _headers(self, message: JSONRPCMessage) -> dict[str, str]:
        """Return what a message says of itself, as HTTP has it in headers too."""
        if not isinstance(message, JSONRPCRequest | JSONRPCNotification):
            return {}
        params: dict[str, Any] = message.params or {}
        meta = params.get("_meta")
        version = meta.get(PROTOCOL_VERSION_META_KEY) if isinstance(meta, dict) else None
        if version is None:
            return {MCP_PROTOCOL_VERSION_HEADER: self._version} if self._version else {}
        headers = {MCP_PROTOCOL_VERSION_HEADER: version, MCP_METHOD_HEADER: message.method}
        if (name := params.get(NAME_BEARING_METHODS.get(message.method, ""))) is not None:
            headers[MCP_NAME_HEADER] = name
        return {key: encode_header_value(str(value)) for key, value in headers.items()}
