"""The agent that a client of the protocol talks to: its sessions are contexts of kernels."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from acp import PROTOCOL_VERSION, RequestError, run_agent, schema
from acp.helpers import ContentBlock
from acp.interfaces import Agent, Client

from antiphon.acp_agent.session import AcpSession
from antiphon.locations import project_root
from antiphon_kernel.client.address import Locate
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.types.errors import AntiphonError


@asynccontextmanager
async def _answered() -> AsyncIterator[None]:
    """Let a method answer a kernel's error as the protocol does."""
    try:
        yield
    except AntiphonError as error:
        raise RequestError(-32603, error.message, error.as_json()) from error


class AcpAgent:
    """Answers the requests of one client."""

    def __init__(self, find: Callable[[Path], Locate]) -> None:
        """`find` returns where a project's kernel is, and starts it if need be."""
        self._find = find
        self._client: Client | None = None
        self._sessions: dict[str, AcpSession] = {}
        self._project = Path.cwd()
        """The project that was named last."""

    def on_connect(self, conn: Client) -> None:
        """Take the connection by which the client is told."""
        self._client = conn

    async def initialize(self, **_: Any) -> schema.InitializeResponse:
        """Say what there is."""
        return schema.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=schema.Implementation(name="antiphon", version=version("antiphon")),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(image=True, embedded_context=True),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities()
                ),
            ),
            auth_methods=[],
        )

    @_answered()
    async def new_session(self, cwd: str, **_: Any) -> schema.NewSessionResponse:
        """Make a context."""
        project = self._use(cwd)
        listed = await self._call(project, "context.list", archived=True)
        taken = {one["label"] for one in listed["contexts"]}
        label = next(one for n in itertools.count(1) if (one := f"acp-{n}") not in taken)
        made = await self._call(project, "context.create", label=label)
        session = await self._open(made["context_id"], project)
        model = await session.options()
        if not model.current_value and model.options[0].value:  # there are agents only
            with suppress(AntiphonError):  # who may not choose one says in messages whom they mean
                model = await session.options(str(model.options[0].value))
        return schema.NewSessionResponse(session_id=session.id, config_options=[model])

    @_answered()
    async def load_session(self, cwd: str, session_id: str, **_: Any) -> schema.LoadSessionResponse:
        """Open a context and tell what is in it."""
        session = await self._open(session_id, self._use(cwd))
        return schema.LoadSessionResponse(config_options=[await session.options()])

    @_answered()
    async def list_sessions(self, cwd: str | None = None, **_: Any) -> schema.ListSessionsResponse:
        """List the contexts of a project, the newest first."""
        project = self._use(cwd or self._project)
        listed = (await self._call(project, "context.list"))["contexts"]
        sessions = [
            schema.SessionInfo(
                session_id=one["context_id"],
                cwd=str(project),
                title=one["label"],
                updated_at=one.get("last_change"),
            )
            for one in reversed(listed)
        ]
        return schema.ListSessionsResponse(sessions=sessions)

    @_answered()
    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> schema.SetSessionConfigOptionResponse:
        """Choose the model that answers; there is no other option."""
        model = await self._sessions[session_id].options(str(value))
        return schema.SetSessionConfigOptionResponse(config_options=[model])

    @_answered()
    async def prompt(
        self, session_id: str, prompt: list[ContentBlock], **_: Any
    ) -> schema.PromptResponse:
        """Send a message, and answer when it is answered."""
        reason = await self._sessions[session_id].prompt(prompt)
        return schema.PromptResponse(stop_reason=reason)

    @_answered()
    async def cancel(self, session_id: str, **_: Any) -> None:
        """Stop the turn that answers the message."""
        await self._sessions[session_id].cancel()

    def _use(self, folder: str | Path) -> Path:
        self._project = project_root(Path(folder))
        return self._project

    async def _open(self, context: str, project: Path) -> AcpSession:
        assert self._client is not None
        if (before := self._sessions.pop(context, None)) is not None:
            await before.close()
        session = AcpSession(context, self._find, project, self._client)
        self._sessions[context] = session
        await session.open()
        return session

    async def _call(self, project: Path, tool: str, **params: Any) -> dict[str, Any]:
        locate = await asyncio.to_thread(self._find, project)
        async with ToolClient(locate, once=True) as calls:
            return await calls.call(tool, params)


async def serve(find: Callable[[Path], Locate]) -> None:
    """Answer the client on standard input and output until it has gone."""
    await run_agent(cast(Agent, AcpAgent(find)))
