"""Implementation of `antiphon --linear`: the context as lines that are never drawn again.

For screen readers, slow lines and pipes: what is printed stays, a line that is typed is a message,
and one that begins with `/` is a command.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO, Final

from antiphon.cli.stdio import lines
from antiphon.cli.tail import Tail, beyond_last, skipped_words
from antiphon.completion import parse_command
from antiphon.followed_block import is_draft, list_blocks
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.types.block_metadata import CHOICES, QUESTION, is_asked
from antiphon_kernel.types.enums import ANSWERING_KINDS, CallPermission, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import join_names

SHOWN_BLOCKS: Final = 10
"""Blocks that are printed at the beginning."""

SHOWN_LINES: Final = 20
"""Lines of each of them that are printed, the last ones."""

NOBODY_THERE: Final = "Standard input has ended: there is nobody who could allow it."

_SHELL: Final = "!"


LinearCommand = tuple[str, str, Callable[[str], Awaitable[None]]]
"""A command that begins with `/`: its arguments as the help names them, its help, what it does."""


class LinearSession:
    """One person who reads and writes by the line."""

    def __init__(self, calls: ToolClient, source: BinaryIO, sink: BinaryIO) -> None:
        self._calls = calls
        self._source = source
        self._sink = sink
        self._context = ""
        self._tail = Tail(calls, sink, as_json=False)
        self._following: asyncio.Task[None] | None = None
        self._asked: list[str] = []
        """Calls that wait for a decision, the oldest first."""
        self._sent: str | None = None
        self._ended = False
        self._is_over = False
        self._commands: Mapping[str, LinearCommand] = {
            "help": ("", "This list.", self._help),
            "read": (
                "[BLOCK]",
                "The end of the last blocks again, or all of one, its lines numbered.",
                self._read,
            ),
            "edit": (
                "BLOCK LINE TEXT",
                "Put a text in the place of a line, counted from 0.",
                self._edit,
            ),
            "undo": ("[BLOCK]", "Take back your last edit.", self._undo),
            "stop": ("", "Stop whatever is running here.", self._stop),
            "once": ("", "Let the call run that waits.", partial(self._decide, "once")),
            "always": ("", "Let it run, and later ones like it.", partial(self._decide, "always")),
            "no": ("[REASON]", "Do not let it run.", partial(self._decide, "no")),
            "people": ("", "Who is here.", self._people),
            "model": ("[NAME]", "Who answers here; choose another.", self._model),
            "contexts": ("", "The contexts of this kernel.", self._contexts),
            "context": ("LABEL", "Go on in another context.", self._go_to),
            "new": ("LABEL", "Make a context and go on in it.", self._new),
            "rename": ("LABEL", "Give this context another name.", self._rename),
            "quit": ("", "Leave; Ctrl+D does the same.", self._quit),
        }

    async def run(self, context: str) -> None:
        """Read lines until they end; returns then, or when the kernel has ended."""
        self._follow(context)
        await self._tail.say(f"antiphon, context {context}. A line is a message; /help lists more.")
        with suppress(AntiphonError):  # what the context cannot be read for is said by its tail
            here = await self._calls.call("context.model", {"context": self._context})
            if "model" not in here:
                listed = await self._calls.call("model.list", {})
                await self._tail.say(listed.get("advice") or "No model answers here.")
        reading = asyncio.create_task(self._read_lines(), name="lines")
        try:
            while not reading.done():
                following = self._following
                tasks = {reading} if following is None else {reading, following}
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                if following is not None and following.done() and following is self._following:
                    following.result()  # the kernel has ended, or this is what has failed
                    return
            reading.result()
        finally:
            for task in (reading, self._following):
                if task is not None:
                    task.cancel()
                    with suppress(asyncio.CancelledError, AntiphonError):
                        await task

    def _follow(self, context: str) -> None:
        self._context = context
        self._tail = Tail(self._calls, self._sink, as_json=False)
        self._tail.on_header = self._header_changed
        self._tail.longest_start = SHOWN_LINES
        following = self._tail.run(context, SHOWN_BLOCKS)
        self._following = asyncio.create_task(following, name="tail")

    async def _read_lines(self) -> None:
        begun = ""
        async for line in lines(self._source):
            text = line.decode("utf-8", "replace").rstrip("\r")
            if text.endswith("\\"):
                begun += text[:-1] + "\n"
                continue
            await self._take(begun + text)
            begun = ""
            if self._is_over:
                return
        await self._take(begun)
        self._ended = True
        await self._finish()

    async def _take(self, text: str) -> None:
        """Do what a line says; a failure is said and ends nothing."""
        if not text.strip():
            return
        found = parse_command(text)
        try:
            if found is None:
                await self._send(text)
            elif (command := self._commands.get(found[0])) is None:
                await self._tail.say(f"There is no command /{found[0]}: /help lists them.")
            else:
                await command[2](found[1])
        except AntiphonError as error:
            if error.code is ErrorCode.NO_KERNEL:
                raise
            await self._tail.say(f"Not done: {error.message}")

    async def _finish(self) -> None:
        """Wait until everything that was asked for is answered and printed."""
        while self._asked:
            await self._decide("no", NOBODY_THERE)
        if self._sent is not None:
            async with self._calls.another() as waiting:
                await waiting.call("turn.wait", {"message": self._sent})
        while True:
            listed = await self._listed()
            await self._tail.printed({one["block_id"]: one["version"] for one in listed})
            if not any(one["status"] == Status.RUNNING for one in listed):
                return
            await asyncio.sleep(0.1)

    async def _listed(self) -> list[dict[str, Any]]:
        """Return the headers of the last blocks that are no drafts."""
        found = await list_blocks(self._calls, self._context)
        return [one for one in found[-50:] if not is_draft(one)]

    async def _header_changed(self, header: Mapping[str, Any]) -> None:
        block = header["block_id"]
        if is_asked(header):
            question = header["metadata"][QUESTION]
            await self._tail.say(
                f"{question['server']} asks: {question['message']} {question.get('url', '')}"
                f" `antiphon call elicitation.answer` with block_id {block} answers."
            )
        waits = header.get("permission") == CallPermission.ASKED
        if not waits or header["status"] not in (Status.PENDING, Status.RUNNING):
            if block in self._asked:
                self._asked.remove(block)
            return
        if block in self._asked:
            return
        self._asked.append(block)
        said = json.dumps(header.get("input", {}), ensure_ascii=False)
        choices, answers = header.get("metadata", {}).get(CHOICES), "/once, /always or /no REASON"
        if choices is not None:
            words = {"no": "no", **choices}
            answers = ", ".join(
                f"/{one} ({words[one]})" for one in ("once", "always", "no") if one in words
            )
        await self._tail.say(
            f"Asked: may {header.get('tool_name', 'a tool')} run with {said}? {answers}."
        )
        if self._ended:
            await self._decide("no", NOBODY_THERE)

    # Lines

    async def _send(self, text: str) -> None:
        if text.startswith(_SHELL) and text[1:].strip():
            params = {"context": self._context, "command": text[1:].strip()}
            await self._calls.call("shell.run", params)
            return
        message = {"context": self._context, "role": "user", "kind": "text", "status": "done"}
        made = await self._calls.call("block.create", {**message, "content": text})
        self._sent = made["block_id"]

    async def _help(self, _: str) -> None:
        rows = [
            "A line is a message; ! at its start runs it, \\ at its end goes on in the next line.",
            *(
                f"/{name}{' ' if arguments else ''}{arguments}: {meaning}"
                for name, (arguments, meaning, _) in self._commands.items()
            ),
        ]
        await self._tail.say("\n".join(rows))

    async def _read(self, block: str) -> None:
        if block:
            read = await self._calls.call("block.read", {"block_id": block, "line_numbers": True})
            await self._tail.say(f"{read['name']}, {read['line_count']} lines:\n{read['content']}")
            return
        for one in (await self._listed())[-SHOWN_BLOCKS:]:
            text = (await self._calls.call("block.render", {"block_id": one["block_id"]}))["text"]
            says = f"{one['username']}, {one['kind']}, {one['name']}:\n"
            if before := beyond_last(text, SHOWN_LINES):
                says += skipped_words(one["name"], before) + "\n"
            await self._tail.say(says + text[len(before) :])

    async def _edit(self, argument: str) -> None:
        block, _, rest = argument.partition(" ")
        number, _, text = rest.partition(" ")
        if not number.isdecimal():
            await self._tail.say("/edit takes a block, the number of a line, and its new text.")
            return
        line = int(number)
        operation = {"op": "replace", "start_line": line, "end_line": line + 1, "content": text}
        await self._calls.call("block.edit", {"block_id": block, "operations": [operation]})

    async def _undo(self, block: str) -> None:
        target = {"block_id": block} if block else {"context": self._context}
        undone = await self._calls.call("block.undo", target)
        await self._tail.say(f"Taken back in {join_names(undone['undone_names'])}.")

    async def _stop(self, _: str) -> None:
        stopped = (await self._calls.call("turn.interrupt", {"context": self._context}))["stopped"]
        await self._tail.say(f"Stopped: {join_names(stopped)}.")

    async def _decide(self, decision: str, reason: str) -> None:
        if not self._asked:
            await self._tail.say("No call waits for a decision.")
            return
        block = self._asked.pop(0)
        said = {"reason": reason} if reason and decision == "no" else {}
        params = {"block_id": block, "decision": decision, **said}
        await self._calls.call("permission.decide", params)

    async def _people(self, _: str) -> None:
        found = (await self._calls.call("kernel.members", {}))["members"]
        rows = [
            f"{one['username']}, {one['kind']}, {one['role']},"
            f" {'here' if one['sessions'] else 'away'}"
            for one in found
            if one["kind"] in ("human", *ANSWERING_KINDS)
        ]
        await self._tail.say("\n".join(rows))

    async def _model(self, name: str) -> None:
        chosen = {"model": name} if name else {}
        here = await self._calls.call("context.model", {"context": self._context, **chosen})
        await self._tail.say(
            f"{here.get('model', 'Nobody')} answers here. Models: {join_names(here['models'])}."
        )

    async def _contexts(self, _: str) -> None:
        found = (await self._calls.call("context.list", {}))["contexts"]
        await self._tail.say(f"Contexts: {join_names(one['label'] for one in found)}.")

    async def _go_to(self, label: str) -> None:
        found = (await self._calls.call("context.list", {}))["contexts"]
        if label not in {one[key] for one in found for key in ("label", "context_id")}:
            await self._tail.say(f"There is no context {label}: /contexts lists them.")
            return
        await self._tail.printed({one["block_id"]: one["version"] for one in await self._listed()})
        before, self._following = self._following, None
        await self._tail.unsubscribe()
        if before is not None:
            before.cancel()
            with suppress(asyncio.CancelledError):
                await before
        self._asked.clear()
        self._sent = None
        self._follow(label)
        await self._tail.say(f"Context {label}.")

    async def _new(self, label: str) -> None:
        await self._calls.call("context.create", {"label": label})
        await self._go_to(label)

    async def _rename(self, label: str) -> None:
        params = {"context": self._context, "label": label}
        await self._calls.call("context.rename", params)
        self._context = label
        await self._tail.say(f"This context is called {label} now.")

    async def _quit(self, _: str) -> None:
        self._is_over = True
