"""Calling the kernel's tools over one WebSocket."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Self

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.connecting import CallNotMade, open_socket
from antiphon_kernel.types.constants import CALL_BYTES
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, no_kernel, permission_denied
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.yjs.close_codes import SHUTTING_DOWN, CloseCode, is_final

_PAUSE_SECONDS: Final = 0.05
"""Pause before a call is made once more that a kernel which ends has not begun with."""


class ToolClient:
    """Tool calls in the order in which they are made; connects when first needed."""

    def __init__(
        self,
        locate: Callable[[], KernelAddress],
        *,
        as_name: str | None = None,
        as_kind: str | None = None,
        once: bool = False,
        comes_again: bool = True,
    ) -> None:
        """
        Args:
            as_kind: what `as_name` is, a person if None.
            once: whether the connection is for a single call: a block that this leaves open is not
                interrupted at once, so that the next command can write in it.
            comes_again: whether a call with which a kernel that ends has not begun is made again.
        """
        self._locate = locate
        self._query = {"once": "1"} if once else {}
        if as_kind is not None:
            self._query["kind"] = as_kind
        self.on_push: Callable[[dict[str, Any]], Awaitable[None] | None] = lambda _: None
        """Gets what comes unasked: `{"subscription", "event"}`, and as the last one of a
        subscription that is cut off `{"subscription", "error"}`. What it returns is waited for
        before more is read."""
        self._following: dict[str, ClientConnection] = {}
        self._as_name = as_name
        self._comes_again = comes_again
        self._socket: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None
        self._connecting = asyncio.Lock()
        self._ids = itertools.count(1)
        self._pending: dict[int, asyncio.Future[dict[str, Any]]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def another(self) -> ToolClient:
        """Return a client of the same kernel and caller with a connection of its own."""
        return ToolClient(self._locate, as_name=self._as_name, as_kind=self._query.get("kind"))

    async def call(self, tool: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result of one tool call.

        Raises:
            AntiphonError: what the tool failed with; `too_large` if it is more than a kernel takes
                at a time; `no_kernel` if the kernel cannot be reached (CallNotMade), or went away
                before it answered (the call may have taken effect then).
        """
        number = next(self._ids)
        frame = json.dumps({"id": number, "tool": tool, "params": dict(params)})
        if len(frame) > CALL_BYTES:
            raise AntiphonError(
                ErrorCode.TOO_LARGE,
                f"This call of {quote(tool)} has {len(frame)} bytes as JSON, one call takes"
                f" {CALL_BYTES} at most: send less at a time.",
                limit=CALL_BYTES,
                limit_name="frame",
            )
        while True:
            async with self._connecting:
                if self._socket is None:
                    self._socket = await open_socket(
                        self._locate(), ("call",), as_name=self._as_name, **self._query
                    )
                    reading = self._read(self._socket)
                    self._reader = asyncio.create_task(reading, name="answers to tool calls")
                socket = self._socket
                answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
                self._pending[number] = answer
                try:
                    await socket.send(frame)
                except ConnectionClosed:
                    await asyncio.sleep(0)
            try:
                result = await answer
                break
            except CallNotMade:
                if not self._comes_again:
                    raise
                await asyncio.sleep(_PAUSE_SECONDS)  # another kernel may be there, or this one yet
                continue
            finally:
                self._pending.pop(number, None)
        if tool == "block.subscribe":
            self._following[result["subscription"]] = socket
            if self._socket is not socket:
                await self._cut_off(socket)
        elif tool == "block.unsubscribe":
            self._following.pop(result["subscription"], None)
        return result

    def cut(self) -> None:
        """Drop the connection, which is of no use any more; the next call makes another one."""
        if self._socket is not None:
            self._socket.transport.abort()

    async def close(self) -> None:
        """Let go of the connection; calls that wait for an answer fail with `no_kernel`."""
        if self._socket is not None:
            await self._socket.close()
        if self._reader is not None:
            await self._reader

    async def _read(self, socket: ClientConnection) -> None:
        try:
            async for message in socket:
                await self._answered(json.loads(message))
        except ConnectionClosed:
            pass
        finally:
            if self._socket is socket:
                self._socket = None
            for answer in self._pending.values():
                if not answer.done():
                    answer.set_exception(_lost(socket))
            await self._cut_off(socket)

    async def _answered(self, message: dict[str, Any]) -> None:
        if "subscription" in message:
            if "error" in message:
                self._following.pop(message["subscription"], None)
            await self._push(message)
            return
        # What the kernel could not read has no id: it can only have been the oldest call.
        number = message["id"] if message["id"] is not None else next(iter(self._pending), 0)
        answer = self._pending.get(number)
        if answer is None or answer.done():
            return
        error = message.get("error")
        if error is None:
            answer.set_result(message["result"])
        else:
            answer.set_exception(read_error(error))

    async def _push(self, message: dict[str, Any]) -> None:
        if (handling := self.on_push(message)) is not None:
            await handling

    async def _cut_off(self, socket: ClientConnection) -> None:
        for subscription, over in list(self._following.items()):
            if over is socket:
                del self._following[subscription]
                error = _lost(socket).as_json()
                await self._push({"subscription": subscription, "error": error})


def read_error(stated: Mapping[str, Any]) -> AntiphonError:
    """The error that a kernel states as `{code, message, ...details}`."""
    details = {key: value for key, value in stated.items() if key not in ("code", "message")}
    code = str(stated["code"])
    known = ErrorCode(code) if code in list(ErrorCode) else code
    return AntiphonError(known, str(stated["message"]), **details)


def _lost(socket: ClientConnection) -> AntiphonError:
    if socket.close_code is not None and is_final(socket.close_code):
        reason = socket.close_reason or f"refused with code {socket.close_code}"
        return permission_denied(reason)
    if (socket.close_code, socket.close_reason) == (CloseCode.RESTART, SHUTTING_DOWN):
        return CallNotMade("The kernel has ended and did not begin with the call: call again.")
    if socket.close_code == CloseCode.TOO_LARGE:
        return AntiphonError(
            ErrorCode.TOO_LARGE,
            "The kernel takes less than this call in one message: send less at a time.",
            limit_name="frame",
        )
    return no_kernel(
        "The kernel went away before it answered; the call may have taken effect. "
        "Look, then call again.",
    )
