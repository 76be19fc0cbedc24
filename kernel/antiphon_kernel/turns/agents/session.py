"""Session of an agent in a context: its process, what it has seen, and the turns that it plays."""

from __future__ import annotations

import asyncio
import logging
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from acp import PROTOCOL_VERSION, schema

from antiphon_kernel.config.agents import AgentConfig
from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.tasks import run_uninterrupted
from antiphon_kernel.turns.agents.agent_turn import AgentTurn
from antiphon_kernel.turns.agents.client import PlayedTurn, client_of
from antiphon_kernel.turns.agents.connection import AgentConnection, AgentFailed, AgentRefused
from antiphon_kernel.turns.agents.prompt_text import read_prompt
from antiphon_kernel.turns.turn import TurnFailed, TurnSettings
from antiphon_kernel.types.errors import invalid_params
from antiphon_kernel.types.quoting import quote

_log = logging.getLogger(__name__)

_CAPABILITIES: Final = schema.ClientCapabilities(
    fs=schema.FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=True
)

_STOP_SHARE: Final = 3
"""An agent that goes on talking after it was stopped has so many times as long as a silent one."""


class AgentSession:
    """One agent in one context; its process runs from its first turn on."""

    def __init__(
        self, kernel: Kernel, context: Context, config: AgentConfig, settings: TurnSettings
    ) -> None:
        self.modes: schema.SessionModeState | None = None
        """Modes of the agent, and the one that it is in."""
        self.config_options: list[Any] = []
        """Options of the session with their values."""
        self.commands: list[schema.AvailableCommand] = []
        """Commands that a message to it may begin with, after a slash."""
        self.usage: schema.UsageUpdate | None = None
        """Use of its window, and cost."""
        self._files_read: dict[str, str] = {}
        """Texts of files as the agent has last read or written them."""
        self._kernel, self._row, self._config = kernel, context.row, config
        self._settings, self._folder = settings, Path(config.cwd or kernel.project)
        self.log = kernel.data / f"agent-{config.name}.log"
        self._connection: AgentConnection | None = None
        self._id = ""
        self._seen = 0
        """Version of the context that it has seen."""
        self._shown = 0
        """The one that it has seen once it answers the prompt that it was sent."""
        self._can: schema.PromptCapabilities = schema.PromptCapabilities()
        self._played: PlayedTurn | None = None

    # Turns

    async def play(self, turn: AgentTurn) -> None:
        """Play a turn to its end.

        When cancelled, the agent is told so, and is waited for; one that says nothing is killed.

        Raises:
            TurnFailed: if the agent has failed, or has ended the turn without an answer.
        """
        turn.read = self._files_read
        try:
            connection = self._connection
            if connection is None or connection.has_ended:
                connection = await self._connect()
            parts, self._shown = await read_prompt(turn, self._seen, self._can)
            played = self._played = PlayedTurn(turn)
            prompt = connection.agent.prompt(session_id=self._id, prompt=list(parts))
            answered = asyncio.ensure_future(connection.answered(prompt))
            # When it is stopped, nobody may ask any more how it has ended.
            answered.add_done_callback(lambda done: done.cancelled() or done.exception())
            try:
                either: set[asyncio.Future[Any]] = {answered, played.failure}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if played.failure.done():
                    played.failure.result()
                response = await answered
                await self._look()
                await played.end(response)
            finally:
                await run_uninterrupted(self._end(connection, played, answered))
        except AgentRefused as error:
            raise TurnFailed(f"{self._config.name} {error}") from error
        except AgentFailed as error:
            advice = "The next message goes on with its session"
            if self._connection is None:
                command = quote(" ".join(self._config.command))
                advice = f"See that its command is installed and runs ({command})"
            await self.close()
            said = f"{self._config.name} {error}\n{advice}; what it said is in {self.log}."
            raise TurnFailed(said) from error

    async def _end(
        self, connection: AgentConnection, played: PlayedTurn, answered: asyncio.Future[Any]
    ) -> None:
        """End a turn: tell the agent to stop if it has not, and kill it if it does not."""
        played.stop()
        seconds = self._settings.agent_stop_seconds
        try:
            if not answered.done():
                async with asyncio.timeout(_STOP_SHARE * seconds):
                    await connection.agent.cancel(session_id=self._id)
                    await connection.answered(answered, seconds)
        except AgentRefused:
            pass  # it has stopped
        except (AgentFailed, ConnectionError, TimeoutError) as error:
            _log.warning("%s is ended, since it does not stop: %s", self._config.name, error)
            await self.close()
        self._played = None
        await played.close()

    async def _look(self) -> None:
        """Note that the agent has seen what it was shown."""
        if self._shown != self._seen:
            self._seen = self._shown
            stored = self._config.name, self._id, self._seen
            await self._kernel.journal.write_agent_session(self._row, *stored)

    # Beginning and end

    async def _connect(self) -> AgentConnection:
        """Start the process, and begin its session or go on with it."""
        await self.close()
        seconds = self._settings.agent_silence_seconds
        client = client_of(lambda session: self._played if session == self._id else None)
        connection = AgentConnection(self.log, client, self._updated)
        await connection.start(self._config, self._folder)
        try:
            about = connection.agent.initialize(
                protocol_version=PROTOCOL_VERSION,
                client_capabilities=_CAPABILITIES,
                client_info=schema.Implementation(name="antiphon", version=version("antiphon")),
            )
            said = await connection.answered(about, seconds)
            if said.protocol_version != PROTOCOL_VERSION:
                found = f"version {said.protocol_version} of the protocol"
                raise AgentFailed(f"speaks {found}, and antiphon version {PROTOCOL_VERSION}.")
            try:
                await self._open(connection, said)
            except AgentRefused as error:
                ways = [one.description or one.name for one in said.auth_methods or ()]
                more = f" It may have to be logged in: {'; '.join(ways)}." if ways else ""
                raise AgentRefused(f"{error}{more}") from error
        except BaseException:
            await run_uninterrupted(connection.end())
            raise
        self._connection = connection
        return connection

    async def _open(self, connection: AgentConnection, said: schema.InitializeResponse) -> None:
        """Go on with the stored session, if there is one and the agent can; else begin one."""
        agent, seconds = connection.agent, self._settings.agent_silence_seconds
        folder = str(self._folder)
        stored = await self._kernel.journal.agent_session(self._row, self._config.name)
        can = said.agent_capabilities or schema.AgentCapabilities()
        self._can = can.prompt_capabilities or schema.PromptCapabilities()
        resumes = getattr(can.session_capabilities, "resume", None) is not None
        opened: Any = None
        if stored is not None and (resumes or can.load_session):
            self._id, self._seen = stored
            begin: Any = agent.resume_session if resumes else agent.load_session
            try:
                opened = await connection.answered(begin(session_id=self._id, cwd=folder), seconds)
            except AgentRefused as error:
                _log.info("%s begins a new session: %s", self._config.name, error)
        if opened is None:
            opened = await connection.answered(agent.new_session(cwd=folder), seconds)
            self._id, self._seen = opened.session_id, 0
            self._files_read.clear()
        self.modes = opened.modes
        self.config_options = list(opened.config_options or ())

    async def close(self) -> None:
        """End the process, if one runs; the session goes on with the next turn."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await run_uninterrupted(connection.end())

    # What the agent says of the session, and what people choose

    async def _updated(self, notification: schema.SessionNotification) -> None:
        match update := notification.update:
            case schema.AvailableCommandsUpdate():
                self.commands = list(update.available_commands)
            case schema.CurrentModeUpdate() if self.modes is not None:
                self.modes.current_mode_id = update.current_mode_id
            case schema.ConfigOptionUpdate():
                self.config_options = list(update.config_options)
            case schema.UsageUpdate():
                self.usage = update
            case _ if self._played is not None and notification.session_id == self._id:
                await self._look()
                await self._played.take(update)

    async def choose(self, option: str, value: str | bool) -> None:
        """Give an option of the session another value; `mode` has the modes of an agent that has no
        option for them.

        Raises:
            AntiphonError: invalid_params, if it refuses, or does not run.
        """
        connection, seconds = self._connection, self._settings.agent_silence_seconds
        is_mode = option == "mode" and all(one.id != "mode" for one in self.config_options)
        try:
            if connection is None or connection.has_ended:
                raise AgentFailed("does not run here: it starts with the first message to it.")
            agent: Any = connection.agent
            if is_mode:
                request = agent.set_session_mode(session_id=self._id, mode_id=str(value))
                await connection.answered(request, seconds)
                if self.modes is not None:
                    self.modes.current_mode_id = str(value)
            else:
                given = {"config_id": option, "session_id": self._id, "value": value}
                said = await connection.answered(agent.set_config_option(**given), seconds)
                self.config_options = list(said.config_options)
        except AgentFailed as error:
            raise invalid_params(f"{self._config.name} {error}", field="agent") from error
