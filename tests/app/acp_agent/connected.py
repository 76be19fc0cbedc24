"""A client of the protocol's own library, connected to our agent by pipes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

from acp import schema
from acp.agent.connection import AgentSideConnection
from acp.client.connection import ClientSideConnection
from acp.connection import StreamDirection, StreamEvent
from acp.interfaces import Agent, Client

from antiphon.acp_agent.agent import AcpAgent
from antiphon_kernel.client.address import read_address
from tests.acp_schema import AGENT, CLIENT, AcpLines
from tests.app.opened import World
from tests.waiting import until


class Editor:
    """A program that shows sessions, and the answers of its user."""

    def __init__(self) -> None:
        self.agent: Any = None
        """The agent, to be asked."""
        self.lines = AcpLines()
        self.updates: list[Any] = []
        self.asked: list[tuple[schema.ToolCallUpdate, list[str]]] = []
        """Questions, and the answers that were offered."""
        self.answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        """The option that is chosen; None for a question that is put away."""
        self.problems: list[Exception] = []

    def on_connect(self, conn: Agent) -> None:
        """Nothing to prepare."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)

    async def request_permission(
        self,
        session_id: str,
        tool_call: schema.ToolCallUpdate,
        options: list[schema.PermissionOption],
        **_: Any,
    ) -> schema.RequestPermissionResponse:
        self.asked.append((tool_call, [one.option_id for one in options]))
        chosen = await asyncio.shield(self.answer)
        outcome: Any = schema.DeniedOutcome(outcome="cancelled")
        if chosen is not None:
            outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen)
        return schema.RequestPermissionResponse(outcome=outcome)

    def observe(self, event: StreamEvent) -> None:
        sender = AGENT if event.direction is StreamDirection.INCOMING else CLIENT
        try:
            self.lines.check(sender, event.message)
        except Exception as error:  # noqa: BLE001  the library would only log it
            self.problems.append(error)

    def said(self, kind: str = "agent_message_chunk") -> str:
        """Return the text of all chunks of a kind, one behind the other."""
        chunks = (one for one in self.updates if one.session_update == kind)
        return "".join(getattr(one.content, "text", f"<{one.content.type}>") for one in chunks)

    def calls(self) -> dict[str, dict[str, Any]]:
        """Return the calls, each as it is after its updates."""
        found: dict[str, dict[str, Any]] = {}
        for one in self.updates:
            if one.session_update in ("tool_call", "tool_call_update"):
                found.setdefault(one.tool_call_id, {}).update(
                    {key: value for key, value in one if value is not None}
                )
        return found

    async def sees(self, text: str, kind: str = "agent_message_chunk") -> None:
        await until(lambda: text in self.said(kind), lambda: f"{text!r} in {self.updates}")

    async def asks(self, count: int) -> None:
        """Wait until so many questions were asked."""
        await self.until(lambda: len(self.asked) == count)

    async def until(self, condition: Callable[[], object]) -> None:
        await until(condition, lambda: f"in {self.updates}")


@asynccontextmanager
async def connected(here: World) -> AsyncIterator[Editor]:
    """An editor that is connected to an agent for the kernel of a world, and has initialized it."""
    loop = asyncio.get_running_loop()
    editor = Editor()
    agent = AcpAgent(lambda _: lambda: read_address(here.data))
    pipes = os.pipe(), os.pipe()
    ends: list[Any] = []
    for read, write in pipes:
        reader = asyncio.StreamReader()
        reading = partial(asyncio.StreamReaderProtocol, reader)
        await loop.connect_read_pipe(reading, os.fdopen(read, "rb"))
        transport, flow = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, os.fdopen(write, "wb")
        )
        ends.append((reader, asyncio.StreamWriter(transport, flow, None, loop)))
    (to_agent, client_writer), (to_client, agent_writer) = ends
    ours = AgentSideConnection(cast(Agent, agent), agent_writer, to_agent)
    theirs = ClientSideConnection(
        cast(Client, editor), client_writer, to_client, observers=[editor.observe]
    )
    editor.agent = theirs
    try:
        await theirs.initialize(protocol_version=1)
        yield editor
        await editor.until(lambda: not editor.problems)
    finally:
        await theirs.close()
        await ours.close()
        client_writer.close()
        agent_writer.close()
    assert editor.problems == []
