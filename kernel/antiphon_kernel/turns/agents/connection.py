"""Process of an agent, and lines of JSON over its pipes, whatever comes in them."""

from __future__ import annotations

import asyncio
import json
import logging
import shlex
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from acp import RequestError, schema
from acp.client.connection import ClientSideConnection
from acp.interfaces import Client
from pydantic import ValidationError

from antiphon_kernel.config.agents import AgentConfig
from antiphon_kernel.shell import LINGER_SECONDS, ErrorLog, read_lines, run_service, wait_exited
from antiphon_kernel.types.json_validation import replace_half_characters
from antiphon_kernel.types.quoting import truncate

_log = logging.getLogger(__name__)

T = TypeVar("T")

_UPDATE: Final = "session/update"


class AgentFailed(Exception):
    """The agent cannot be talked to any more; the message follows its name."""


class AgentRefused(AgentFailed):
    """The agent has refused a request, and can be talked to."""


class AgentConnection:
    """The process of an agent; `agent` has a method for each request of the protocol.

    It is the transport of the library, too. What is no message is logged and skipped. Updates are
    handed on in order, each before the next line is read: an agent that says more than can be
    written waits.
    """

    def __init__(
        self,
        log: Path,
        client: object,
        updated: Callable[[schema.SessionNotification], Awaitable[None]],
    ) -> None:
        """Prepare a connection.

        Args:
            log: file of what the agent complains of.
            client: answers its requests; what it has no method for is refused.
            updated: takes the updates of sessions, one after the other.
        """
        self._log, self._client, self._updated = ErrorLog(log, self._heard), client, updated
        self._stack, self._problem = AsyncExitStack(), ""
        self._ending: asyncio.Task[None] | None = None

    async def start(self, config: AgentConfig, folder: Path) -> None:
        """Start the agent; nothing of what it starts is left once it has ended.

        Raises:
            AgentFailed: if it could not be started.
        """
        command = f"exec {shlex.join(config.command)}"
        service = run_service(command, folder, config.env, self._log)
        try:
            self._process = await self._stack.enter_async_context(service)
        except OSError as error:
            raise AgentFailed(f"cannot be started: {error}.") from error
        self._heard()
        self._lines = read_lines(self._process, self._heard)
        self.agent = ClientSideConnection(cast(Client, self._client), self)

    @property
    def has_ended(self) -> bool:
        """Return whether its process has ended, or is being ended."""
        return self._ending is not None or self._process.returncode is not None

    async def answered(self, request: Awaitable[T], silence: float | None = None) -> T:
        """Return the answer to a request.

        Args:
            silence: seconds without a word of the agent after which it has failed.

        Raises:
            AgentRefused: if it refuses.
            AgentFailed: if it has failed or ended.
        """
        asked = asyncio.ensure_future(request)
        self._heard()
        try:
            while silence is not None and not asked.done():
                left = self._heard_at + silence - asyncio.get_running_loop().time()
                if left <= 0:
                    raise AgentFailed(f"has said nothing for {silence:g} s.")
                await asyncio.wait({asked}, timeout=left)
            return await asked
        except RequestError as error:
            said = f"refuses: {str(error).rstrip('.')}{_details(error)}."
            raise AgentRefused(said) from error
        except ValidationError as error:
            said = f"has answered what the protocol does not have: {error.title}."
            raise AgentFailed(said) from error
        except ConnectionError as error:
            raise AgentFailed(self._problem or self._how_it_ended()) from error
        finally:
            asked.cancel()

    async def end(self) -> None:
        """End the process, politely and then not, once nobody reads what it says any more."""
        await self.agent.close()
        await self._end_process()

    async def _end_process(self) -> None:
        if self._ending is None:
            self._ending = asyncio.create_task(self._stack.aclose(), name="end of an agent")
        await asyncio.shield(self._ending)

    def _how_it_ended(self) -> str:
        code = self._process.returncode or 0
        said = f"has ended with exit code {code}" if code >= 0 else f"was killed (signal {-code})"
        last = "".join(f"\n    {line}" for line in self._log.last)
        return f"{said}. Its last lines:{last}" if last else f"{said}, without a word on stderr."

    def _heard(self) -> None:
        self._heard_at = asyncio.get_running_loop().time()

    # The transport

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message; if the process has ended, the end of what it says tells."""
        assert self._process.stdin is not None
        with suppress(ConnectionError):
            line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
            self._process.stdin.write(line)
            await self._process.stdin.drain()

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message that is no update; None at the end."""
        try:
            async for line in self._lines:
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
        except ValueError as error:
            self._problem = f"has sent {error}."
        with suppress(TimeoutError):  # it may say by its exit code why it has ended
            async with asyncio.timeout(LINGER_SECONDS):
                await wait_exited(self._process)
        await self._end_process()
        return None

    async def close(self) -> None:
        """Do nothing: the pipes are closed with the process."""


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
