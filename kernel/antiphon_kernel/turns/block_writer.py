"""Writing blocks through the kernel's tools so that none is ever left open.

A call is two blocks: the call, and the result that answers it.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.layout import ROUND
from antiphon_kernel.providers import TokenUsage
from antiphon_kernel.shell import run_shell, wants_terminal
from antiphon_kernel.tasks import run_uninterrupted
from antiphon_kernel.tools.edit import append, append_streamed
from antiphon_kernel.types.block_metadata import USAGE
from antiphon_kernel.types.enums import BlockKind, Status, ToolKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import PrincipalId
from antiphon_kernel.types.json_validation import replace_half_characters
from antiphon_kernel.types.records import Actor
from antiphon_kernel.validation import check_value, reject_long_text

_log = logging.getLogger(__name__)

SHELL = "shell"
"""The tool's name in blocks and for models."""

NO_TERMINAL = "[The command asked for a terminal; commands here run without one.]"
"""Stands below the output of a command that has failed for want of one."""

OUTPUT_LIMIT = 200_000
"""Code points of one result that are kept, half of them of its beginning."""


class BlockWriter:
    """Creates, streams and finishes blocks of one actor in one context.

    Whatever is cancelled meanwhile, a block that was created is known here until it is finished.
    """

    def __init__(self, kernel: Kernel, context: Context, actor: Actor) -> None:
        self.kernel = kernel
        self.context = context
        self.actor = actor
        self._open: list[str] = []

    async def create(
        self,
        kind: BlockKind,
        parent: str | None,
        content: str | Sequence[str] = "",
        *,
        status: Literal["pending"] | None = None,
        after: str | None = None,
        schema: Mapping[str, Any] | None = None,
        **fields: object,
    ) -> str:
        """A new block; `fields` go into its header.

        Args:
            content: its text; its items, if `schema` is that of a list.
            status: pending, although there is something in it.
            after: block that it stands behind; the end of the context if absent.
        """
        params = {
            "context": self.context.id,
            "parent_id": parent,
            "kind": kind,
            "content": content,
            "after": after,
            "status": status,
            "metadata": fields,
        } | ({"schema": schema} if schema is not None else {})
        return await run_uninterrupted(self._create(params))

    def adopt(self, block: str) -> None:
        """Take over a block that was left open."""
        self._open.append(block)
        self.kernel.writers.writes(self.actor, block)

    async def begin(self, block: str) -> None:
        """A block is being worked on, before there is anything in it."""
        params = {"block_id": block, "status": Status.RUNNING}
        await self.kernel.call(self.actor, "block.status", params)

    async def append(self, block: str, text: str) -> None:
        """Stream text to the end of a block."""
        await append_streamed(self.kernel.start_call(self.actor, append), block, text)

    def describe(self, block: str, *, text: str | None = None, **fields: Any) -> None:
        """Write header fields of a block; what is said of `metadata` is added to what is there.

        Nothing is written if all of it is said already.

        Args:
            text: the text that the block has from now on; the same if absent.

        Raises:
            AntiphonError: invalid_params or too_large, before anything is written.
        """
        context = self.context
        context.appends.flush(block)
        document = context.document
        header = document.header(block)
        if "metadata" in fields:
            fields["metadata"] = header.metadata | fields["metadata"]
        fields = {name: one for name, one in fields.items() if getattr(header, name) != one}
        for name, value in fields.items():
            check_value(name, value, context.limits)
        if text is not None:
            text = replace_half_characters(text)
            reject_long_text(context.limits, len(text))
        if not fields and text in (None, document.text(block)):
            return

        def change() -> None:
            document.set_fields(block, **fields)
            if text is not None and document.text(block) != text:
                document.splice(block, 0, document.length(block), text)

        context.write(self.actor, "status", change, blocks=[block], undo=None)

    async def count(self, used: TokenUsage, asker: PrincipalId, block: str | None) -> None:
        """Add what was used to the sums of the kernel, and say so in a block, if there is one."""
        if block is not None:
            self.describe(block, metadata={USAGE: used.as_json()})
        await self.kernel.usage.add(self.context.id, self.actor.principal.id, asker, used)

    async def finish(self, block: str, status: Status, **fields: object) -> None:
        """End a block; one that somebody else has ended already stays as it is."""
        if block in self._open:
            await run_uninterrupted(self._finish(block, status, fields))

    async def finish_all(self, status: Status, **fields: object) -> None:
        """End every block that is open, the latest first, except calls that wait for a decision."""
        for block in reversed(tuple(self._open)):
            if block not in self.kernel.tool_permissions.undecided:
                await self.finish(block, status, **fields)

    async def open_command(self, command: str) -> CallBlocks:
        """Create the blocks of a person's command that is about to run; both, even if cancelled."""

        async def create() -> CallBlocks:
            fields = {"input": {"command": command}, **_call_fields(SHELL)}
            call = await self.create(BlockKind.TOOL_CALL, None, command, **fields)
            return await self.open_result(call)

        return await run_uninterrupted(create())

    async def begin_call(self, parent: str, name: str, content: str, made_in: int) -> str:
        """Create the block of a model's call, which is pending until it runs.

        Args:
            name: of the tool.
            content: the arguments, as far as they are known.
            made_in: the round of the turn that the model makes it in.
        """
        fields = {**_call_fields(name), ROUND: made_in}
        return await self.create(BlockKind.TOOL_CALL, parent, content, status="pending", **fields)

    async def open_result(self, call: str) -> CallBlocks:
        """Create the block of a call's result; both run from now on, even if this is cancelled."""
        return await run_uninterrupted(self._open_result(call))

    async def _open_result(self, call: str) -> CallBlocks:
        await self.begin(call)
        header = self.context.document.header(call)
        names = ("tool_kind", "tool_name", "tool_call_id")
        fields = {name: getattr(header, name) for name in names}
        # Behind its own call, also where the model has made several at once.
        result = await self.create(BlockKind.TOOL_RESULT, call, after=call, **fields)
        # It may stay empty for long; a crash meanwhile ends what is running, not what is pending.
        await self.begin(result)
        return CallBlocks(self, call, result, self.kernel.clock.monotonic())

    async def _create(self, params: dict[str, Any]) -> str:
        created = await self.kernel.call(self.actor, "block.create", params)
        block = str(created["block_id"])
        self._open.append(block)
        return block

    async def _finish(self, block: str, status: Status, fields: dict[str, object]) -> None:
        params = {"block_id": block, "status": status, **fields}
        try:
            await self.kernel.call(self.actor, "block.status", params)
        except AntiphonError as error:
            if error.code is not ErrorCode.INVALID_TRANSITION:
                raise
            _log.info("block %s was ended by somebody else: %s", block, error)
        self._open.remove(block)


def _call_fields(name: str) -> dict[str, Any]:
    kind = ToolKind.MCP if "__" in name else ToolKind.BUILTIN
    kind = ToolKind.SHELL if name == SHELL else kind
    return {"tool_kind": kind, "tool_name": name, "tool_call_id": uuid.uuid4().hex}


class KeptOutput:
    """The beginning and the end of an output that comes in pieces.

    The beginning is handed on as it comes; the end is held back until it is known.
    """

    def __init__(self, limit: int = OUTPUT_LIMIT) -> None:
        """`limit` is the number of code points that are kept."""
        self._head_room = limit // 2
        self._tail_limit = limit - limit // 2
        self._tail = ""
        """The end so far, and the character before it."""
        self._last = "\n"
        self.left_out = 0
        """Code points of which nothing is kept; complete once the rest has been taken."""

    @property
    def is_holding_back(self) -> bool:
        """Whether there is output that has not been handed on."""
        return bool(self._tail)

    def add(self, text: str) -> str:
        """Take the next piece; return what of it belongs to the beginning."""
        head, rest = text[: self._head_room], text[self._head_room :]
        self._head_room -= len(head)
        self._last = head[-1:] or self._last
        tail = self._tail + rest
        dropped = max(len(tail) - self._tail_limit - 1, 0)
        self._tail = tail[dropped:]
        self.left_out += dropped
        return head

    def take_rest(self) -> str:
        """Return what follows the beginning: the end, behind a line that says what is missing."""
        text, self._tail = self._tail, ""
        start = max(len(text) - self._tail_limit, 0)
        if not self.left_out and not start:
            return text
        # It begins with a whole line, unless too much would be lost by that.
        most = start + self._tail_limit // 100
        start = text.find("\n", max(start - 1, 0), most) + 1 or start
        self.left_out += start
        before = "" if self._last == "\n" else "\n"
        return f"{before}[{self.left_out:,} characters left out]\n{text[start:]}"


@dataclass(eq=False, slots=True)
class CallBlocks:
    """A call and the block that its result goes to, both of which run."""

    writer: BlockWriter
    call: str
    result: str
    began: float
    """Reading of the monotonic clock when it began to run."""
    output: list[str] = field(default_factory=list)
    """Output of the command that has been written."""
    kept: KeptOutput = field(default_factory=KeptOutput)
    """Output of the command so far."""

    async def run_command(
        self,
        command: str,
        save: Callable[[], Awaitable[list[str]]] | None = None,
        on_start: Callable[[str], None] = lambda result: None,
        seconds: float | None = None,
    ) -> None:
        """Run a shell command into its blocks.

        While output is held back, the result is marked as truncated.

        When cancelled, the processes are gone and the blocks are still open: the canceller knows
        why.

        Args:
            save: saves files that the command may read, and says which of them it cannot.
            on_start: is told where the output goes.
            seconds: that it may run.
        """
        writer, kept = self.writer, self.kept

        async def show(text: str) -> None:
            was_holding_back, head = kept.is_holding_back, kept.add(text)
            await self._write(head)
            if not head:  # somebody may have ended the block: that is seen by writing only
                await writer.append(self.result, "")
            if kept.is_holding_back and not was_holding_back:
                writer.describe(self.result, truncated=True)

        on_start(self.result)
        try:
            for problem in await save() if save is not None else ():
                await show(f"[{problem}]\n")
            try:
                async with asyncio.timeout(seconds):
                    exit_code = await run_shell(command, writer.kernel.project, show)
            finally:
                await writer.kernel.files.look()
        except TimeoutError:
            said = f"Stopped: it had not ended after {seconds:g} seconds."
            await self.fail(said, stop_reason="time_limit")
            return
        except (OSError, ValueError) as error:
            await self.fail(f"The command could not be started: {error}")
            return
        except asyncio.CancelledError:
            if writer.kernel.sessions.dismissal(writer.actor) is None:
                try:
                    await run_uninterrupted(self._write_rest())
                except AntiphonError as error:  # the block was ended by somebody else
                    _log.warning("the end of the output of %s is not kept: %s", self.call, error)
            raise
        await self._write_rest()
        failed = exit_code != 0
        if failed and wants_terminal("".join(self.output)):
            await self._write(self._on_a_line(f"{NO_TERMINAL}\n"))
        await writer.finish(self.result, Status.DONE, exit_code=exit_code, is_error=failed)
        await self.end(Status.ERROR if failed else Status.DONE, exit_code=exit_code)

    async def end(self, status: Status, **fields: object) -> None:
        """End the block of the call and say how long it ran."""
        seconds = self.writer.kernel.clock.monotonic() - self.began
        await self.writer.finish(self.call, status, duration_ms=round(seconds * 1000), **fields)

    async def fail(self, message: str, **fields: object) -> None:
        """Answer the call, which could not be carried out, or not to its end."""
        await self._write_rest()
        await self.writer.append(self.result, self._on_a_line(message))
        await self.writer.finish(self.result, Status.ERROR, is_error=True, **fields)
        await self.end(Status.ERROR, is_error=True, **fields)

    def _on_a_line(self, text: str) -> str:
        """Return a text as it stands on a line of its own below the output."""
        output = "".join(self.output[-1:])
        return text if not output or output.endswith("\n") else f"\n{text}"

    async def _write(self, text: str) -> None:
        if text:
            self.output.append(text)
            await self.writer.append(self.result, text)

    async def _write_rest(self) -> None:
        """Write the output that was held back, and whether that is all of it."""
        if self.kept.is_holding_back:
            await self._write(self.kept.take_rest())
            self.writer.describe(self.result, truncated=self.kept.left_out > 0)
