"""Implementation of `antiphon tail`: follow a context over one connection and print its events."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, BinaryIO, Final

import click

from antiphon.cli.call import dump_json_line
from antiphon.cli.stdio import Printer
from antiphon.cli.transcript import Transcript, is_cut_out, is_draft
from antiphon_kernel.client.standard_streams import NoReaderError
from antiphon_kernel.client.tool_client import ToolClient, read_error
from antiphon_kernel.text.lines import line_count, lines_between
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import count_of

_PAGE: Final = 1_000

_REST: Final[dict[str, Any]] = {}
"""Among what is pushed: nobody has edited for a while."""


class Tail:
    """Follows one context and prints what happens in it until the kernel ends."""

    def __init__(self, calls: ToolClient, sink: BinaryIO, *, as_json: bool) -> None:
        self._calls = calls
        self._sink = sink
        self._printer = Printer(sink)
        self._as_json = as_json
        self._pushed: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._versions: dict[str, int] = {}
        self._listed: dict[str, dict[str, Any]] = {}
        """Headers of what was there at the start."""
        self._transcript = Transcript()
        self._subscription: str | None = None
        self._printed_event = asyncio.Event()
        self.longest_start: int | None = None
        """Lines of each block that are printed at the start, the last ones; None: all."""
        self.on_header: Callable[[Mapping[str, Any]], Awaitable[None]] | None = None
        """Is called with the header of a block that has another one, when that is printed."""
        calls.on_push = self._pushed.put_nowait

    async def run(self, context: str, last: int) -> None:
        """Print the last blocks of a context, then what comes; returns when the kernel has ended.

        Raises:
            AntiphonError: if the context is not there, or may not be read any more.
        """
        with suppress(OSError, ValueError):  # where it cannot be, writing will tell
            self._watch_sink()
        begun = await self._calls.call("block.subscribe", {"context": context})
        self._subscription = begun["subscription"]
        try:
            await self._start(context, last)
            await self._follow(begun["subscription"])
        except asyncio.CancelledError:
            self._printer.print_final(self._transcript.end())
            raise
        except AntiphonError as error:
            await self._printer.print(self._transcript.end())
            if error.code is not ErrorCode.NO_KERNEL:
                raise
            click.echo("antiphon: the kernel has ended.", err=True)

    async def say(self, text: str) -> None:
        """Print lines that belong to no block."""
        await self._printer.print(self._transcript.interject(text))

    async def printed(self, versions: Mapping[str, int]) -> None:
        """Wait until these versions of blocks are printed."""
        while any(self._versions.get(block, 0) < one for block, one in versions.items()):
            self._printed_event.clear()
            await self._printed_event.wait()

    async def unsubscribe(self) -> None:
        if self._subscription is not None:
            subscription, self._subscription = self._subscription, None
            await self._calls.call("block.unsubscribe", {"subscription": subscription})

    async def _start(self, context: str, last: int) -> None:
        """Print blocks that are there already, as a second, short subscription tells them.

        It also tells what drafts say, however old: they may be sent at any time.
        """
        listed = await list_blocks(self._calls, context)
        self._listed = {one["block_id"]: one for one in listed}
        told = [
            block
            for block, header in self._listed.items()
            if self._as_json or not is_cut_out(header)
        ]
        printed = set(told[max(0, len(told) - last) :])
        self._versions = {
            block: one["version"] for block, one in self._listed.items() if block not in printed
        }
        blocks = [
            block for block, header in self._listed.items() if block in printed or is_draft(header)
        ]
        if not blocks:
            return
        only = {"block_ids": blocks, "from_versions": {}}
        subscription = (await self._calls.call("block.subscribe", only))["subscription"]
        events: dict[str, dict[str, Any]] = {}
        early: list[dict[str, Any]] = []
        while len(events) < len(blocks):
            message = await self._next()
            if message["subscription"] != subscription:
                early.append(message)
                continue
            event = _event(message)
            events.setdefault(event["block_id"], event)
        await self._calls.call("block.unsubscribe", {"subscription": subscription})
        for block in blocks:
            if block in printed:
                await self._feed(events[block], is_start=True)
            elif isinstance(events[block]["content"], str):
                event = events[block]
                content, version = event["content"], event["version"]
                self._transcript.remember(block, event["header"], content, version)
        for message in early:
            await self._feed(_event(message))

    async def _follow(self, subscription: str) -> None:
        while True:
            # No timeout: one that runs out as a cancellation comes would take it for its own.
            timer: asyncio.TimerHandle | None = None
            if (rests := self._transcript.next_flush_at()) is not None:
                put = asyncio.get_running_loop().call_later
                timer = put(max(0.0, rests - time.monotonic()), self._pushed.put_nowait, _REST)
            try:
                message = await self._next()
            finally:
                if timer is not None:
                    timer.cancel()
            if message is _REST:
                await self._printer.print(self._transcript.flush(time.monotonic()))
            elif message["subscription"] == subscription:
                await self._feed(_event(message))

    async def _next(self) -> dict[str, Any]:
        message = await self._pushed.get()
        if message is None:
            raise NoReaderError
        return message

    def _watch_sink(self) -> None:
        """A pipe that is closed at its other end is noticed without writing into it."""
        loop, pipe = asyncio.get_running_loop(), self._sink.fileno()

        def broken() -> None:
            loop.remove_reader(pipe)
            self._pushed.put_nowait(None)

        if stat.S_ISFIFO(os.fstat(pipe).st_mode):
            loop.add_reader(pipe, broken)

    async def _feed(self, event: Mapping[str, Any], *, is_start: bool = False) -> None:
        block = event["block_id"]
        if event["version"] <= self._versions.get(block, 0):
            return
        self._versions[block] = event["version"]
        if self._as_json:
            await self._printer.print(dump_json_line(event) + "\n")
            return
        if not self._transcript.knows(block) and "content" not in event:
            if not event["splices"] and not event["parts"]:
                return
            await self._recall(event)
        rendered = None
        if self._transcript.is_structured(block) or not isinstance(event.get("content", ""), str):
            rendered = (await self._calls.call("block.render", {"block_id": block}))["text"]
        if is_start and not is_draft(event["header"]):
            text = event["content"] if rendered is None else rendered
            if self.longest_start is not None and (before := beyond_last(text, self.longest_start)):
                self._transcript.skip(block, event["header"], before)
                await self.say(skipped_words(event["name"], before))
        news = self._transcript.feed(event, time.monotonic(), rendered=rendered)
        await self._printer.print(news)
        self._printed_event.set()
        if self.on_header is not None and "header" in event:
            await self.on_header({**event["header"], "block_id": block})

    async def _recall(self, event: Mapping[str, Any]) -> None:
        """Remember what a block that was not printed said before an event."""
        block, version = event["block_id"], event["from_version"]
        structured = bool(event["parts"]) or any("section" in one for one in event["splices"])
        text = ""
        if not structured:
            read = await self._calls.call("block.read", {"block_id": block, "version": version})
            text = read["content"]
        header = self._listed[block]
        self._transcript.remember(block, header, text, version, structured=structured)


async def list_blocks(calls: ToolClient, context: str) -> list[dict[str, Any]]:
    """Return the headers of all blocks of a context."""
    found: list[dict[str, Any]] = []
    page: dict[str, Any] = {"context": context, "limit": _PAGE}
    while True:
        listed = await calls.call("block.list", page)
        found += listed["blocks"]
        if "next" not in listed:
            return found
        page["after_block"] = listed["next"]


def beyond_last(text: str, lines: int) -> str:
    """Return the part of a text that is before its last `lines`."""
    return lines_between(text, 0, max(0, line_count(text) - lines))


def skipped_words(name: str, before: str) -> str:
    """Return how many lines of a block are not printed, and how to read them."""
    return (
        f"{name} has {count_of(line_count(before), 'line')} before these: /read {name} shows all."
    )


def _event(message: Mapping[str, Any]) -> dict[str, Any]:
    if "error" in message:
        raise read_error(message["error"])
    event: dict[str, Any] = message["event"]
    return event
