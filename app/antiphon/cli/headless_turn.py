"""Implementation of `antiphon run`: submit a message, follow the turn that answers it, print it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

import click

from antiphon.cli.call import dump_json_line
from antiphon.cli.stdio import Printer
from antiphon.followed_block import read_event
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.text.mentions import mentions
from antiphon_kernel.text.sanitize import sanitize
from antiphon_kernel.types.block_metadata import (
    CHOICES,
    ERROR_KIND,
    MAX_ROUNDS,
    RETRY,
    USAGE,
    is_asked,
)
from antiphon_kernel.types.constants import CUT_OFF, INTERRUPTED, MAX_TOKENS, ExitCode
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import join_names, quote

_EVERY_TOOL: Final = "*"
_ASKED: Final = "asked"
_FINAL: Final = ("done", "error")
_LIMITS: Final = ("limit", MAX_TOKENS)
_CUTS: Final[Mapping[str | None, str]] = {
    MAX_TOKENS: "The answer was cut: it reached the most tokens that an answer may have.",
    CUT_OFF: "The answer was cut: the connection to the provider ended before it did.",
}
_REFUSAL: Final = (
    "Nobody can be asked: this is a run without a person, and it was not started with --allow for"
    " this tool."
)


@dataclass(eq=False)
class HeadlessTurn:
    """Plays one turn and prints it as text, as one JSON object, or as an object an event."""

    calls: ToolClient
    sink: BinaryIO
    output: str
    """`text`, `json` or `stream-json`."""
    text: str
    """The message that is answered."""
    context: str
    """Label or id."""
    model: str | None
    """Or an agent; the default model if absent."""
    allow: Collection[str]
    """Tools for models whose calls are allowed, or `*`."""
    max_rounds: int | None
    _pushed: asyncio.Queue[dict[str, Any] | None] = field(default_factory=asyncio.Queue)
    """Events, and None when the turn has ended."""
    _texts: list[str] = field(default_factory=list)
    """The answer as far as it has come."""
    _denied: list[dict[str, Any]] = field(default_factory=list)
    _usage: dict[str, float] = field(default_factory=dict)
    _error: dict[str, Any] | None = None
    _is_interrupted: bool = False
    _message: str = ""
    _headers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Of the message and what answers it, by block."""
    _shown: set[tuple[str, str]] = field(default_factory=set)
    """Blocks and what of them has been printed."""

    def __post_init__(self) -> None:
        self._printer = Printer(self.sink)
        self.calls.on_push = self._pushed.put_nowait

    async def play(self) -> ExitCode:
        """Play the turn to its end; when cancelled, interrupt it.

        Raises:
            AntiphonError: if it could not begin, or the kernel went away.
            CommandError: if there is no such model or agent.
        """
        model = await self._model()
        context_id = await self._context()
        await self.calls.call("block.subscribe", {"context": context_id})
        async with self.calls.another() as waiting:
            is_stopped = await self._submitted(model, context_id)
            await self._follow(waiting, is_stopped=is_stopped)
        return await self._end()

    async def _model(self) -> str:
        listed = await self.calls.call("model.list", {})
        agents = (await self.calls.call("agent.list", {}))["agents"]
        known = [one["name"] for one in (*listed["models"], *agents)]
        if self.model is not None and self.model not in known:
            said = f"there is no model or agent {quote(self.model)}"
            raise click.UsageError(f"{said}; there are: {join_names(known) or 'none'}")
        mentioned = (one for one in mentions(self.text) if one in known)
        default = next((one["name"] for one in listed["models"] if one["default"]), None)
        answering = self.model or next(mentioned, default)
        if answering is None:
            raise AntiphonError(ErrorCode.INVALID_PARAMS, listed["advice"])
        return str(answering)

    async def _context(self) -> str:
        """Return the id of the context, which is made if its label is free."""
        wanted = self.context
        found = await self.calls.call("context.list", {"archived": True})
        for one in found["contexts"]:
            if wanted in (one["context_id"], one["label"]):
                return str(one["context_id"])
        made = await self.calls.call("context.create", {"label": wanted})
        return str(made["context_id"])

    async def _submitted(self, model: str, context_id: str) -> bool:
        """Submit the message; return whether that was cancelled, when it is too late."""
        submitting = asyncio.ensure_future(self._submit(model, context_id))
        try:
            await asyncio.shield(submitting)
        except asyncio.CancelledError:
            await submitting
            return True
        return False

    async def _submit(self, model: str, context_id: str) -> None:
        is_addressed = self.model is None or model in mentions(self.text)
        text = self.text if is_addressed else f"@{model} {self.text}"
        metadata = {MAX_ROUNDS: self.max_rounds} if self.max_rounds is not None else {}
        message = {"role": "user", "kind": "text", "status": "done", "content": text}
        made = await self.calls.call(
            "block.create", {**message, "context": context_id, "metadata": metadata}
        )
        self._message = made["block_id"]
        self._headers[self._message] = {}
        await self._event(
            "init",
            model=model,
            context=self.context,
            context_id=context_id,
            message=self._message,
        )

    async def _follow(self, waiting: ToolClient, *, is_stopped: bool) -> None:
        """Print what comes until the turn has ended; when cancelled, end it first."""
        ended = asyncio.ensure_future(waiting.call("turn.wait", {"message": self._message}))
        ended.add_done_callback(lambda _: self._pushed.put_nowait(None))
        try:
            if not is_stopped:
                await self._until(ended)
        except asyncio.CancelledError:
            is_stopped = True
        if is_stopped:
            self._is_interrupted = True
            await self.calls.call("turn.interrupt", {"message": self._message})
            await self._until(ended)
        if ended.result()["interrupted"]:
            self._is_interrupted = True

    async def _until(self, ended: asyncio.Future[dict[str, Any]]) -> None:
        while not ended.done():
            await self._take(await self._pushed.get())
        # The answer to a call comes behind every event before it.
        await self.calls.call("session.whoami", {})
        while not self._pushed.empty():
            await self._take(self._pushed.get_nowait())

    async def _take(self, pushed: Mapping[str, Any] | None) -> None:
        if pushed is None:
            return
        event = read_event(pushed)
        header, block = event.get("header"), event["block_id"]
        if header is None:
            return
        if header.get("parent_id") not in self._headers or block == self._message:
            return
        self._headers[block] = header
        kind, is_final = header["kind"], header["status"] in _FINAL
        if kind == "tool_result":
            await self._show_call(header["parent_id"])
        elif kind == "tool_call":
            if header.get("permission") == _ASKED:
                await self._decide(block, header)
            elif is_asked(header) and self._is_new(block, "question"):
                with suppress(AntiphonError):  # somebody else may have answered meanwhile
                    said = {"block_id": block, "action": "cancel"}
                    await self.calls.call("elicitation.answer", said)
            elif is_final:
                await self._show_call(block)
        if is_final:
            await self._show(block, header)

    async def _show(self, block: str, header: Mapping[str, Any]) -> None:
        """Print a block that is whole."""
        kind = header["kind"]
        if header.get("stop_reason") == INTERRUPTED and kind != "tool_result":
            self._is_interrupted = True
        if kind != "tool_call" and self._is_new(block, "whole"):
            content = (await self.calls.call("block.read", {"block_id": block}))["content"]
            match kind:
                case "text":
                    self._texts.append(content)
                    await self._event("message", block=block, text=content)
                    if self.output == "text":
                        text = content if content.endswith("\n") else f"{content}\n"
                        is_terminal = os.isatty(self.sink.fileno())
                        await self._printer.print(sanitize(text) if is_terminal else text)
                case "thinking":
                    await self._event("thinking", block=block, text=content)
                case "tool_result":
                    fields = {"call": header["parent_id"], "is_error": bool(header.get("is_error"))}
                    for name in ("exit_code", "truncated"):
                        fields |= {name: header[name]} if header.get(name) is not None else {}
                    await self._event("tool_result", block=block, **fields, output=content)
                case "error":
                    await self._failed(block, header, content)
            reason = header.get("stop_reason")
            if reason in _CUTS:
                self._error = {"kind": reason, "message": _CUTS[reason]}
        used = header.get("metadata", {}).get(USAGE)
        if isinstance(used, dict) and self._is_new(block, "usage"):
            for name, amount in used.items():
                self._usage[name] = self._usage.get(name, 0) + amount
            await self._event("usage", block=block, **used)

    async def _failed(self, block: str, header: Mapping[str, Any], content: str) -> None:
        metadata = header.get("metadata", {})
        if RETRY in metadata and header["status"] == "done":
            await self._event("error", block=block, message=content, retried=True)
            return
        error = {"message": content, "kind": metadata.get(ERROR_KIND, "other")}
        self._error = error
        await self._event("error", block=block, **error)

    async def _show_call(self, block: str) -> None:
        header = self._headers[block]
        if header and self._is_new(block, "call"):
            await self._event(
                "tool_use", block=block, tool=header.get("tool_name"), input=header.get("input")
            )

    async def _decide(self, block: str, header: Mapping[str, Any]) -> None:
        """Decide about a call in the place of a person who is not there."""
        if not self._is_new(block, "decided"):
            return
        await self._show_call(block)
        choices = header.get("metadata", {}).get(CHOICES, {"once": ""})
        tool = str(choices.get("tool", header.get("tool_name")))
        is_allowed = _EVERY_TOOL in self.allow or tool in self.allow
        decision: dict[str, Any] = {"decision": "once" if "once" in choices else "always"}
        if not is_allowed:
            decision = {"decision": "no", "reason": _REFUSAL}
        # Somebody else may have decided meanwhile, or the call be gone.
        with suppress(AntiphonError):
            await self.calls.call("permission.decide", {"block_id": block, **decision})
            if not is_allowed:
                self._denied.append({"block": block, "tool": tool})
        await self._event("permission", block=block, tool=tool, allowed=is_allowed)

    def _is_new(self, block: str, part: str) -> bool:
        if (block, part) in self._shown:
            return False
        self._shown.add((block, part))
        return True

    # Printing

    async def _event(self, kind: str, /, **fields: Any) -> None:
        if self.output == "stream-json":
            await self._printer.print(dump_json_line({"type": kind, **fields}) + "\n")

    async def _end(self) -> ExitCode:
        code = ExitCode.PERMISSION if self._denied else ExitCode.OK
        if self._is_interrupted:
            code = ExitCode.INTERRUPTED
        elif self._error is not None:
            code = ExitCode.LIMIT if self._error.get("kind") in _LIMITS else ExitCode.FAILED
        result = {
            "type": "result",
            "outcome": "done" if code is ExitCode.OK else code.name.lower(),
            "exit_code": int(code),
            "text": "\n\n".join(self._texts),
            "message": self._message,
            "usage": self._usage,
            "denied": self._denied,
            "error": self._error,
        }
        if self.output != "text":
            await self._printer.print(dump_json_line(result) + "\n")
            return code
        complaints: list[str] = []
        if self._is_interrupted:
            complaints.append("the turn was interrupted; what was written stays.")
        elif self._error is not None:
            complaints.append(" ".join(self._error["message"].split()))
        if tools := sorted({one["tool"] for one in self._denied}):
            needed = f"{join_names(tools)} needed a permission that nobody gave"
            options = " ".join(f"--allow {tool}" for tool in tools)
            complaints.append(f"{needed}: {options} gives it.")
        for line in complaints:
            click.echo(f"antiphon: {sanitize(line)}", err=True)
        return code
