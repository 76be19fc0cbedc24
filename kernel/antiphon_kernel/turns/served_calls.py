"""Calls of tools of MCP servers: progress, questions to people, and results in blocks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from antiphon_kernel.mcp_servers import (
    Answer,
    Elicitation,
    McpServerFailed,
    McpServers,
    McpTool,
    ResultFile,
    read_result,
)
from antiphon_kernel.storage import Blob
from antiphon_kernel.tools.block import FileToWrite, attach, write_files
from antiphon_kernel.turns.asker import Asker
from antiphon_kernel.turns.block_writer import BlockWriter, CallBlocks
from antiphon_kernel.types.block_metadata import QUESTION
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.ids import PrincipalId
from antiphon_kernel.types.quoting import truncate

_PROGRESS_SECONDS: Final = 0.25
"""Progress is written no more often than this."""

_WITHDRAWN: Final[tuple[Answer, None]] = (("cancel", None), None)


@dataclass(eq=False, slots=True)
class WaitingQuestion:
    """A question that a person has to answer."""

    asked: Elicitation
    asker: PrincipalId
    """Principal whose rights the call has."""
    answered: asyncio.Future[tuple[Answer, str | None]] = field(default_factory=asyncio.Future)
    """The answer, and the username of whoever gives it; the first one counts."""


class ServerQuestions:
    """Questions of MCP servers that wait for people, by block of the call that they are about."""

    def __init__(self) -> None:
        self.waiting: dict[str, WaitingQuestion] = {}

    async def ask(
        self, writer: BlockWriter, call: str, asker: PrincipalId, asked: Elicitation
    ) -> Answer:
        """Ask where everybody sees it, and wait; when cancelled, it is withdrawn."""
        shown = asked.as_json()
        writer.describe(call, metadata={QUESTION: shown})
        waiting = self.waiting[call] = WaitingQuestion(asked, asker)
        answer, by = _WITHDRAWN
        try:
            answer, by = await waiting.answered
            return answer
        finally:
            del self.waiting[call]
            with suppress(AntiphonError):  # the model has to go
                said = {**shown, "action": answer[0], "by": by}
                writer.describe(call, metadata={QUESTION: said})

    def withdraw(self, call: str) -> None:
        """Let nobody answer any more what is asked about a call."""
        if (waiting := self.waiting.get(call)) is not None and not waiting.answered.done():
            waiting.answered.set_result(_WITHDRAWN)


@dataclass(frozen=True, slots=True)
class TurnServers:
    """MCP servers of one turn, with the tools that they have for it to its end."""

    servers: McpServers
    questions: ServerQuestions
    tools: tuple[McpTool, ...]
    missing: tuple[str, ...]
    """Servers of which tools are missing, with the reason."""


@dataclass(eq=False)
class ServedCall:
    """A call that runs."""

    servers: TurnServers
    tool: McpTool
    asker: Asker
    blocks: CallBlocks
    files: list[ResultFile] = field(default_factory=list)
    """Images and documents of its result."""
    _said_at: float = 0.0

    @property
    def seconds(self) -> float:
        """Return the time that it has."""
        return self.servers.servers[self.tool.server].config.seconds

    async def run(self, arguments: Mapping[str, Any], limit: asyncio.Timeout) -> str:
        """Call the tool; return the text of its result.

        Args:
            limit: put off by progress, and as long as people are asked.

        Raises:
            McpServerFailed: if the server or the tool has failed.
        """
        loop, asking = asyncio.get_running_loop(), asyncio.Lock()
        questions, writer = self.servers.questions, self.blocks.writer

        def wait_on() -> None:
            with suppress(RuntimeError):  # the call has ended meanwhile
                limit.reschedule(None if asking.locked() else loop.time() + self.seconds)

        async def note(progress: float, total: float | None, message: str | None) -> None:
            wait_on()
            self._show(progress, total, message)

        async def ask(asked: Elicitation) -> Answer:
            try:
                async with asking:
                    wait_on()
                    asker = self.asker.session.principal.id
                    return await questions.ask(writer, self.blocks.call, asker, asked)
            finally:
                wait_on()

        server = self.servers.servers[self.tool.server]
        try:
            found = await server.call(self.tool, dict(arguments), note, ask)
        finally:
            questions.withdraw(self.blocks.call)
        limits = writer.kernel.limits
        text, files = read_result(found, limits.attachments_per_message, limits.attachment_bytes)
        if found.is_error:
            raise McpServerFailed(text or "The tool has failed, and does not say why.")
        self.files += files
        return text

    def _show(self, done: float, total: float | None, message: str | None) -> None:
        """Let progress stand where the result will be."""
        now = asyncio.get_running_loop().time()
        if now - self._said_at < _PROGRESS_SECONDS:
            return
        self._said_at = now
        of = f"{done:g} of {total:g}" if total is not None else f"{done:g}"
        said = truncate(" ".join((message or "").split()))
        self.blocks.writer.describe(self.blocks.result, text=f"[{of}] {said}".rstrip())

    def clear(self) -> None:
        """Take progress away."""
        if self._said_at:
            self.blocks.writer.describe(self.blocks.result, text="")

    async def write_files(self) -> None:
        """Write images and documents as results of their own behind the text."""
        writer, context = self.blocks.writer, self.blocks.writer.context
        header, author = context.document.header(self.blocks.result), writer.actor.principal.id
        names = ("kind", "role", "parent", "tool_kind", "tool_name", "tool_call_id")
        like = {name: getattr(header, name) for name in names}
        found = [FileToWrite(one.name, Blob.of(one.data), one.media_type) for one in self.files]
        new = {str(context.next_block_id(author)): file for file in found}
        if new:
            call = writer.kernel.start_call(writer.actor, attach)
            await write_files(call, context, header.id, new, **like)
