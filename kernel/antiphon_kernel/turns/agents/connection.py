"""Connection to an agent: lines of JSON over pipes, whatever comes in them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar, cast

from acp import RequestError, schema
from acp.client.connection import ClientSideConnection
from acp.interfaces import Client
from pydantic import ValidationError

from antiphon_kernel.service_process import ServiceProcess
from antiphon_kernel.types.json_validation import replace_half_characters
from antiphon_kernel.types.quoting import truncate

_log = logging.getLogger(__name__)

T = TypeVar("T")

_UPDATE: Final = "session/update"


class AgentFailed(Exception):
    """The agent cannot be talked to any more; the message goes on from its name."""


class AgentRefused(AgentFailed):
    """The agent has refused a request, and can be talked to."""


class AgentConnection:
    """The connection to one process; `agent` has a method for each request of the protocol.

    It is the transport of the library, too. What is no message is logged and skipped. Updates are
    handed on in order, each before the next line is read: an agent that says more than can be
    written waits.
    """

    def __init__(
        self,
        process: ServiceProcess,
        client: object,
        updated: Callable[[schema.SessionNotification], Awaitable[None]],
        line_bytes: int,
    ) -> None:
        """
        Args:
            client: answers the requests of the agent; what it has no method for is refused.
            updated: takes the updates of sessions, one after the other.
            line_bytes: the longest line that the agent may send.
        """
        self._process, self._updated, self._most = process, updated, line_bytes
        self._read = bytearray()
        self._problem = ""
        self.agent = ClientSideConnection(cast(Client, client), self)

    @property
    def has_ended(self) -> bool:
        """Return whether its process has ended, or is being ended."""
        return self._process.has_ended

    async def answered(self, request: Awaitable[T], silence: float | None = None) -> T:
        """Return the answer to a request.

        Args:
            silence: seconds without a word of the agent after which it has failed.

        Raises:
            AgentRefused: if it refuses.
            AgentFailed: if it has failed or ended.
        """
        loop, asked = asyncio.get_running_loop(), asyncio.ensure_future(request)
        began = loop.time()
        try:
            while silence is not None and not asked.done():
                left = max(self._process.heard_at, began) + silence - loop.time()
                if left <= 0:
                    raise AgentFailed(f"has said nothing for {silence:g} s")
                await asyncio.wait({asked}, timeout=left)
            return await asked
        except RequestError as error:
            raise AgentRefused(f"refuses: {error}{_details(error)}") from error
        except ValidationError as error:
            said = f"has answered what the protocol does not have: {error.title}"
            raise AgentFailed(said) from error
        except ConnectionError as error:
            raise AgentFailed(self._problem or self._process.how_it_ended()) from error
        finally:
            asked.cancel()

    async def end(self) -> None:
        """End the process and everything that waits for it."""
        await self.agent.close()
        await self._process.end()

    # The transport

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message."""
        await self._process.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message that is no update; None at the end."""
        while (line := await self._line()) is not None:
            try:
                message = _message(line)
                if message.get("method") != _UPDATE or "id" in message:
                    return message
                update = schema.SessionNotification.model_validate(message.get("params"))
            except (ValueError, RecursionError):
                if line.strip():
                    said = truncate(line[:400].decode(errors="replace"))
                    _log.warning("what an agent has sent is skipped: %s", said)
            else:
                await self._updated(update)
        await self._process.end()
        return None

    async def close(self) -> None:
        """Do nothing: the pipes are closed with the process."""

    async def _line(self) -> bytes | None:
        searched = 0
        while (at := self._read.find(b"\n", searched)) < 0:
            searched = len(self._read)
            if searched > self._most:
                self._problem = f"has sent a line of more than {self._most:,} bytes"
                return None
            data = await self._process.read()
            if not data:
                return None
            self._read += data
        line = bytes(self._read[:at])
        del self._read[: at + 1]
        return line


def _message(line: bytes) -> dict[str, Any]:
    """Return a request, notification or answer; raises ValueError if a line is none of these."""
    message = json.loads(line)
    if b"\\ud" in line.lower():
        message = json.loads(replace_half_characters(json.dumps(message, ensure_ascii=False)))
    match message:
        case (
            {"method": str()}
            | {"id": int(), "result": _}
            | {"id": int(), "error": {"code": int(), "message": str()}}
        ):
            return cast("dict[str, Any]", message)
    raise ValueError("no message")


def _details(error: RequestError) -> str:
    """Return what an error says beside its message."""
    match error.data:
        case {"message": str(said)} | {"details": str(said)} | {"error": str(said)} | str(said):
            return f" ({truncate(said)})"
    return ""
