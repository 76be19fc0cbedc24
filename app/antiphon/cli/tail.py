"""`antiphon tail`: a context as it grows, in lines that are never redrawn.

What is printed stays. Text that comes to the end of a block follows at once; a block whose line is
not finished keeps its place until another one has a whole line to show. What changes inside
printed text is said as lines that went and lines that came, when the editing has come to rest.
"""

from __future__ import annotations

import asyncio
import math
import os
import stat
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, Final

import click

from antiphon.cli.call import dump_json_line
from antiphon.cli.stdio import Printer
from antiphon.followed_block import (
    REST_SECONDS,
    FollowedBlock,
    is_cut_out,
    is_draft,
    list_blocks,
    read_event,
)
from antiphon_kernel.client.standard_streams import NoReaderError
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.text.lines import line_count, lines_between
from antiphon_kernel.text.sanitize import sanitize
from antiphon_kernel.text.sequence_diff import changed_ranges
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import count_of


class Transcript:
    """Turns events of a subscription to a context into text for a pipe or a terminal."""

    def __init__(self) -> None:
        self.cells: dict[str, FollowedBlock] = {}
        """Blocks whose text is known, so that a patch can be applied to it."""
        self._open: str | None = None
        """The block whose last printed line is not finished."""
        self._last: str | None = None
        """The block that was printed last."""
        self._behind: dict[str, None] = {}
        """Blocks of which something is not printed yet."""
        self._edited: dict[str, float] = {}
        """Blocks that have changed where they were printed, and when that is told."""
        self._begun = False

    def remember(
        self,
        block: str,
        header: Mapping[str, Any],
        text: str,
        version: int,
        *,
        structured: bool = False,
    ) -> None:
        """A block that is not printed, but whose changes are."""
        cell = self.cells[block] = FollowedBlock(header, version)
        cell.structured, cell.end_said = structured, cell.over
        cell.text = text
        if cell.waits:
            self._behind[block] = None
        else:
            cell.said, cell.shown = text, len(text)

    def skip(self, block: str, header: Mapping[str, Any], text: str) -> None:
        """Take the beginning of a block as printed."""
        self.cells[block] = FollowedBlock(header, text=text, said=text, shown=len(text))

    def feed(self, event: Mapping[str, Any], now: float, *, rendered: str | None = None) -> str:
        """Return the text to print for an event.

        Args:
            event: of `block.subscribe`; one that is known already prints nothing.
            now: seconds on any clock.
            rendered: the content as text, where it is not one text by itself.
        """
        block = event["block_id"]
        cell = self.cells.setdefault(block, FollowedBlock(event.get("header", {})))
        if event["version"] <= cell.version:
            return ""
        was_cut_out = is_cut_out(cell.header)
        if cell.take(event, rendered) or (was_cut_out and not cell.waits):
            cell.edit(event)
            self._edited[block] = now + REST_SECONDS
        self._behind[block] = None
        # Text that is new at the ends of blocks, of the unfinished line's first.
        grown = [*self._grow([block])]
        if self._open is None:
            grown += self._grow(tuple(self._behind))
        return "".join(grown)

    def flush(self, now: float) -> str:
        """The changes inside printed text that have come to rest by `now`."""
        resting = [one for one, due in self._edited.items() if due <= now]
        return "".join(piece for one in resting for piece in self._correction(one))

    def next_flush_at(self) -> float | None:
        """Return the time at which `flush` has output, in the seconds of `feed`; None if never."""
        return min(self._edited.values(), default=None)

    def end(self) -> str:
        """Return the remaining output when no more events come."""
        changes = self.flush(math.inf)
        rest = [
            piece
            for block in tuple(self._behind)
            if not self.cells[block].waits
            for piece in self._print(block, self.cells[block].rest)
        ]
        return "".join([changes, *rest, *self._break()])

    def interject(self, text: str) -> str:
        """Return lines of somebody who is no author, on lines of their own."""
        self._last = None
        self._begun = True
        return "".join([*self._break(), sanitize(text), "\n"])

    def _grow(self, blocks: Sequence[str]) -> Iterator[str]:
        for block in blocks:
            cell = self.cells[block]
            if cell.waits:
                continue
            piece = cell.rest
            if self._open not in (None, block) and not cell.over:
                piece = piece[: piece.rfind("\n") + 1]
            yield from self._print(block, piece)
            if cell.over:
                yield from self._over(block, cell)
            if cell.shown == len(cell.text):
                del self._behind[block]

    def _print(self, block: str, piece: str) -> Iterator[str]:
        if not piece:
            return
        cell = self.cells[block]
        if self._last != block:
            yield from self._heading(cell.name)
            self._last = block
        cell.said += piece
        cell.shown += len(piece)
        self._open = None if piece.endswith("\n") else block
        yield sanitize(piece)

    def _over(self, block: str, cell: FollowedBlock) -> Iterator[str]:
        """A block that is over gives its line away, and says so if it has not ended well."""
        if self._open == block:
            yield from self._break()
        if cell.end_said:
            return
        cell.end_said = True
        how = _ending(cell.header)
        if how is not None:
            if self._last != block:
                yield from self._heading(cell.name)
                self._last = block
            yield f"({sanitize(how)})\n"

    def _correction(self, block: str) -> Iterator[str]:
        del self._edited[block]
        cell = self.cells[block]
        if cell.waits:
            return
        now = cell.text[: cell.shown]
        if now == cell.said:
            return
        editors = ", ".join(cell.editors)
        yield from self._heading(cell.name + " · changed" + (f" by {editors}" if editors else ""))
        self._last = None
        for row in changed_lines(cell.said, now):
            yield sanitize(row) + "\n"
        cell.said = now
        cell.editors.clear()

    def _heading(self, name: str) -> Iterator[str]:
        yield from self._break()
        yield ("\n" if self._begun else "") + f"── {sanitize(name)}\n"
        self._begun = True

    def _break(self) -> Iterator[str]:
        if self._open is not None:
            yield "\n"
        self._open = None


def changed_lines(before: str, after: str) -> Iterator[str]:
    """Lines that went, with `- `, and that came in their place, with `+ `."""
    old, new = before.split("\n"), after.split("\n")
    for one in changed_ranges(old, new):
        yield from (f"- {line}" for line in old[one.start : one.end])
        yield from (f"+ {line}" for line in new[one.new_start : one.new_end])


def _ending(header: Mapping[str, Any]) -> str | None:
    """How a block ended, unless it ended well or its result says so."""
    if header["kind"] == "tool_call":
        return None
    if header.get("exit_code", 0) != 0:
        return f"exit code {header['exit_code']}"
    if header["status"] != "error":
        return None
    reason = header.get("stop_reason", "error")
    return f"{reason} by {header['stopped_by']}" if "stopped_by" in header else str(reason)


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
        self._starting: set[str] = set()
        """Blocks that are printed at the start, whose content comes first."""
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
        listed = {one["block_id"]: one for one in await list_blocks(self._calls, context)}
        told = [one for one, header in listed.items() if self._as_json or not is_cut_out(header)]
        self._starting = set(told[max(0, len(told) - last) :])
        self._listed = listed
        self._versions = {
            block: one["version"] for block, one in listed.items() if block not in self._starting
        }
        asked = {"context": context, "from_versions": self._versions}
        subscription = (await self._calls.call("block.subscribe", asked))["subscription"]
        self._subscription = subscription
        try:
            await self._follow(subscription)
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

    async def _follow(self, subscription: str) -> None:
        while True:
            # No timeout: one that runs out as a cancellation comes would take it for its own.
            timer: asyncio.TimerHandle | None = None
            if (rests := self._transcript.next_flush_at()) is not None:
                put = asyncio.get_running_loop().call_later
                timer = put(max(0.0, rests - time.monotonic()), self._pushed.put_nowait, _REST)
            try:
                message = await self._pushed.get()
            finally:
                if timer is not None:
                    timer.cancel()
            if message is None:
                raise NoReaderError
            if message is _REST:
                await self._printer.print(self._transcript.flush(time.monotonic()))
            elif message["subscription"] == subscription:
                await self._feed(read_event(message))

    def _watch_sink(self) -> None:
        """A pipe that is closed at its other end is noticed without writing into it."""
        loop, pipe = asyncio.get_running_loop(), self._sink.fileno()

        def broken() -> None:
            loop.remove_reader(pipe)
            self._pushed.put_nowait(None)

        if stat.S_ISFIFO(os.fstat(pipe).st_mode):
            loop.add_reader(pipe, broken)

    async def _feed(self, event: Mapping[str, Any]) -> None:
        block = event["block_id"]
        if event["version"] <= self._versions.get(block, 0):
            return
        self._versions[block], is_start = event["version"], block in self._starting
        self._starting.discard(block)
        if self._as_json:
            await self._printer.print(dump_json_line(event) + "\n")
            return
        if block not in self._transcript.cells and "content" not in event:
            is_edited = event["splices"] or event["parts"]
            if not is_edited and not is_draft(self._listed[block]):
                return
            await self._recall(event)
        rendered = None
        known = self._transcript.cells.get(block)
        if (known is not None and known.structured) or not isinstance(
            event.get("content", ""), str
        ):
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


def beyond_last(text: str, lines: int) -> str:
    """Return the part of a text that is before its last `lines`."""
    return lines_between(text, 0, max(0, line_count(text) - lines))


def skipped_words(name: str, before: str) -> str:
    """Return how many lines of a block are not printed, and how to read them."""
    return (
        f"{name} has {count_of(line_count(before), 'line')} before these: /read {name} shows all."
    )
