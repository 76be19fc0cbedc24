"""The agent that a client of the protocol talks to: its sessions are contexts of kernels."""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar, cast

from acp import PROTOCOL_VERSION, RequestError, run_agent, schema
from acp.helpers import ContentBlock
from acp.interfaces import Agent, Client

from antiphon.acp_agent.session import AcpSession
from antiphon.locations import project_root
from antiphon_kernel.client.address import Locate
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params

P = ParamSpec("P")
R = TypeVar("R")

_CODES: Final = {ErrorCode.CONTEXT_NOT_FOUND: -32002, ErrorCode.INVALID_PARAMS: -32602}


def _answered(method: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """Let a method answer a kernel's error as the protocol does."""

    @functools.wraps(method)
    async def answered(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            return await method(*arguments, **named)
        except AntiphonError as error:
            code = _CODES.get(ErrorCode(error.code), -32603)
            raise RequestError(code, error.message, error.as_json()) from error

    return answered


class AcpAgent:
    """Answers the requests of one client."""

    def __init__(self, find: Callable[[Path], Locate]) -> None:
        """`find` returns where a project's kernel is, and starts it if need be."""
        self._find = find
        self._client: Client | None = None
        self._name = "acp"
        """Beginning of the labels of new contexts."""
        self._sessions: dict[str, AcpSession] = {}
        self._project = Path.cwd()
        """The project that was named last."""

    def on_connect(self, conn: Client) -> None:
        """Take the connection by which the client is told."""
        self._client = conn

    async def close(self) -> None:
        """Let go of all contexts."""
        for session in self._sessions.values():
            await session.close()

    async def initialize(
        self, client_info: schema.Implementation | None = None, **_: Any
    ) -> schema.InitializeResponse:
        """Say what there is."""
        words = re.findall("[a-z0-9]+", client_info.name.lower()) if client_info else []
        self._name = (words or ["acp"])[0][:32]
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

    @_answered
    async def new_session(self, cwd: str, **_: Any) -> schema.NewSessionResponse:
        """Make a context."""
        project, number = self._use(cwd), 1
        listed = await self._call(project, "context.list", archived=True)
        taken = {one["label"] for one in listed["contexts"]}
        while f"{self._name}-{number}" in taken:
            number += 1
        made = await self._call(project, "context.create", label=f"{self._name}-{number}")
        session = await self._open(made["context_id"], project)
        options = await session.options()
        if options and not options[0].current_value:  # there are agents only
            with suppress(AntiphonError):  # who may not choose one says in messages whom they mean
                options = await session.options(session.names[0])
        return schema.NewSessionResponse(session_id=session.id, config_options=options)

    @_answered
    async def load_session(self, cwd: str, session_id: str, **_: Any) -> schema.LoadSessionResponse:
        """Open a context and tell what is in it."""
        session = await self._open(session_id, self._use(cwd))
        return schema.LoadSessionResponse(config_options=await session.options())

    @_answered
    async def list_sessions(self, cwd: str | None = None, **_: Any) -> schema.ListSessionsResponse:
        """List the contexts of a project, the newest first."""
        project = self._project if cwd is None else self._use(cwd)
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

    @_answered
    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> schema.SetSessionConfigOptionResponse:
        """Choose the model that answers; there is no other option."""
        options = await self._session(session_id).options(str(value))
        return schema.SetSessionConfigOptionResponse(config_options=options)

    @_answered
    async def prompt(
        self, session_id: str, prompt: list[ContentBlock], **_: Any
    ) -> schema.PromptResponse:
        """Send a message, and answer when it is answered."""
        reason = await self._session(session_id).prompt(prompt)
        return schema.PromptResponse(stop_reason=reason)

    @_answered
    async def cancel(self, session_id: str, **_: Any) -> None:
        """Stop the turn that answers the message."""
        await self._session(session_id).cancel()

    def _session(self, session_id: str) -> AcpSession:
        if (session := self._sessions.get(session_id)) is None:
            raise AntiphonError(
                ErrorCode.CONTEXT_NOT_FOUND,
                f"No session {session_id!r} is open here: load it, or begin a new one.",
            )
        return session

    def _use(self, cwd: str) -> Path:
        if not Path(cwd).is_absolute() or not Path(cwd).is_dir():
            raise invalid_params(f"{cwd!r} is no folder here: cwd is an absolute path of one.")
        self._project = project_root(Path(cwd))
        return self._project

    async def _open(self, context: str, project: Path) -> AcpSession:
        assert self._client is not None
        if (before := self._sessions.pop(context, None)) is not None:
            await before.close()
        find = functools.partial(self._find, project)
        session = AcpSession(context, find, project, self._client)
        try:
            await session.open()
        except AntiphonError:
            await session.close()
            raise
        self._sessions[context] = session
        return session

    async def _call(self, project: Path, tool: str, **params: Any) -> dict[str, Any]:
        calls = ToolClient(await asyncio.to_thread(self._find, project), once=True)
        try:
            return await calls.call(tool, params)
        finally:
            await calls.close()


async def serve(find: Callable[[Path], Locate]) -> None:
    """Answer the client on standard input and output until it has gone.

    Args:
        find: returns where a project's kernel is, and starts it if need be.
    """
    agent = AcpAgent(find)
    try:
        await run_agent(cast(Agent, agent))
    finally:
        await agent.close()
