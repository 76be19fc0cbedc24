"""Lines that `antiphon tail` prints, and reading and writing by the line with a model."""

from __future__ import annotations

import asyncio
import math
import os
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.cli.linear import LinearSession
from antiphon.cli.tail import Transcript, changed_lines
from antiphon.followed_block import REST_SECONDS
from antiphon.options import AppOptions
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.turns.asker import Asker
from antiphon_kernel.turns.block_writer import BlockWriter
from antiphon_kernel.turns.permission import PermissionRequest
from antiphon_kernel.types.enums import BlockKind, CallPermission, PrincipalKind
from antiphon_kernel.types.roles import Permission
from tests.app.opened import World, world
from tests.waiting import until

NAMES = {"p1": "ada", "p2": "aria"}


class Blocks:
    """Blocks that change, and what is printed of it."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        self.headers: dict[str, dict[str, Any]] = {}
        self.versions: Counter[str] = Counter()
        self.now = 0.0

    def create(self, who: str, number: int, text: str, **header: Any) -> str:
        block = f"c.{who}.{number}"
        name = {"username": NAMES[who], "name": f"default.{NAMES[who]}.{number}"}
        given = {**name, "kind": "text", "role": "model", "status": "running"}
        self.headers[block] = given | header
        return self.event(block, content=text, header=self.headers[block])

    def insert(self, block: str, offset: int, text: str, delete: int = 0, who: str = "p1") -> str:
        splice = {"offset": offset, "delete_count": delete, "insert": text}
        return self.event(block, splices=[splice], username=NAMES[who])

    def change(self, block: str, **header: Any) -> str:
        self.headers[block] = self.headers[block] | header
        return self.event(block, splices=[], header=self.headers[block])

    def event(self, block: str, **fields: Any) -> str:
        self.versions[block] += 1
        event = {"block_id": block, "version": self.versions[block], **fields}
        return self.transcript.feed(event, self.now)


def test_block_is_named_once_and_goes_on_as_it_grows() -> None:
    blocks = Blocks()
    assert blocks.create("p2", 3, "One ") == "── aria · default.aria.3\nOne "
    assert blocks.insert("c.p2.3", 4, "two\nthr") == "two\nthr"
    assert blocks.insert("c.p2.3", 11, "ee") == "ee"
    assert blocks.change("c.p2.3", status="done") == "\n"
    assert blocks.transcript.end() == ""


def test_transcript_prints_other_block_once_current_line_is_complete() -> None:
    blocks = Blocks()
    blocks.create("p2", 1, "A long")
    assert blocks.create("p1", 1, "half") == ""
    assert blocks.insert("c.p2.1", 6, " line") == " line"
    begun = "\n\n── ada · default.ada.1\nhalf done\nmore"
    assert blocks.insert("c.p1.1", 4, " done\nmore") == begun
    assert blocks.insert("c.p2.1", 11, ".") == ""
    assert blocks.insert("c.p2.1", 12, "\n") == "\n\n── aria · default.aria.1\n.\n"
    assert blocks.insert("c.p1.1", 14, "!") == "\n── ada · default.ada.1\n!"


CUT_OUT = {"excluded": True, "metadata": {"cut_out": True}}


def test_cut_out_block_is_printed_when_it_is_brought_back() -> None:
    blocks = Blocks()
    assert blocks.create("p2", 1, "One", status="done", **CUT_OUT) == ""
    assert blocks.insert("c.p2.1", 3, "!") == ""
    assert blocks.transcript.end() == ""
    assert blocks.change("c.p2.1", excluded=False) == "── aria · default.aria.1\nOne!\n"


def test_change_of_cut_out_block_is_printed_when_it_is_brought_back() -> None:
    blocks = Blocks()
    blocks.create("p2", 1, "One\nTwo\n", status="done")
    blocks.change("c.p2.1", **CUT_OUT)
    assert blocks.insert("c.p2.1", 0, "A", delete=1) == ""
    assert blocks.transcript.flush(math.inf) == ""
    assert blocks.change("c.p2.1", excluded=False) == ""
    said = "\n── aria · default.aria.1 · changed by ada\n- One\n+ Ane\n"
    assert blocks.transcript.flush(math.inf) == said


@pytest.mark.parametrize("status", ["pending", "running"])
def test_draft_is_printed_when_it_is_sent(status: str) -> None:
    blocks = Blocks()
    assert blocks.create("p1", 1, "Hel", role="user", status=status) == ""
    assert blocks.insert("c.p1.1", 3, "p") == ""
    assert blocks.insert("c.p1.1", 3, "lo", delete=1) == ""
    assert blocks.change("c.p1.1", status="done") == "── ada · default.ada.1\nHello\n"


def test_transcript_edit_above_is_printed_once_editing_pauses() -> None:
    blocks = Blocks()
    blocks.create("p2", 1, "Two chairs\nsing\n")
    assert blocks.transcript.next_flush_at() is None
    assert blocks.insert("c.p2.1", 6, "o", delete=1) == ""
    blocks.now = 0.9
    assert blocks.insert("c.p2.1", 7, "", delete=1) == ""
    assert blocks.insert("c.p2.1", 15, "and ", who="p2") == "and "
    assert blocks.transcript.next_flush_at() == 0.9 + REST_SECONDS
    assert blocks.transcript.flush(1.5) == ""
    assert blocks.transcript.flush(2.0).splitlines() == [
        "",
        "",
        "── aria · default.aria.1 · changed by ada",
        "- Two chairs",
        "+ Two chors",
    ]
    assert blocks.transcript.next_flush_at() is None


def test_transcript_edit_that_is_reverted_prints_nothing() -> None:
    blocks = Blocks()
    blocks.create("p2", 1, "same\n")
    blocks.insert("c.p2.1", 0, "x")
    blocks.insert("c.p2.1", 0, "", delete=1)
    assert blocks.transcript.flush(math.inf) == ""


def test_changes_of_older_blocks_are_said_though_they_were_not_printed() -> None:
    blocks = Blocks()
    name = {"username": "aria", "name": "default.aria.1"}
    header = {**name, "kind": "text", "role": "model", "status": "done"}
    blocks.transcript.remember("c.p2.1", header, "old\n", 4)
    blocks.versions["c.p2.1"] = 4
    assert blocks.insert("c.p2.1", 0, "very ") == ""
    assert blocks.transcript.end().splitlines()[1:] == ["- old", "+ very old"]


def test_transcript_block_that_failed_prints_reason() -> None:
    blocks = Blocks()
    blocks.create("p1", 1, "no such file\n", kind="tool_result", role="tool")
    ended = blocks.change("c.p1.1", status="done", exit_code=2)
    assert ended == "(exit code 2)\n"
    blocks.create("p2", 1, "I was go")
    ended = blocks.change("c.p2.1", status="error", stop_reason="interrupted", stopped_by="ada")
    assert ended == "\n(interrupted by ada)\n"


def test_transcript_escapes_control_characters_and_prints_each_version_once() -> None:
    blocks = Blocks()
    assert "\x1b" not in blocks.create("p1", 1, "\x1b[31mred\n")
    event = {"block_id": "c.p1.1", "version": 1, "splices": [], "content": "again"}
    assert blocks.transcript.feed(event, 0.0) == ""


@given(st.data())
def test_transcript_prints_every_line_once_under_its_block(data: st.DataObject) -> None:
    """Compare the lines under a block's headings with its text, however the writers take turns."""
    blocks, texts, printed = Blocks(), dict.fromkeys(("p1", "p2"), ""), ""
    for who in texts:
        printed += blocks.create(who, 1, "")
    for _ in range(data.draw(st.integers(0, 25))):
        who = data.draw(st.sampled_from(sorted(texts)))
        text = data.draw(st.text(alphabet="ab\n", max_size=4))
        printed += blocks.insert(f"c.{who}.1", len(texts[who]), text)
        texts[who] += text
    printed += blocks.transcript.end()
    said: dict[str, str] = defaultdict(str)
    name = ""
    for line in printed.split("\n"):
        if line.startswith("── "):
            name = line.rsplit(".", 1)[0].rsplit(".", 1)[1]
        else:
            said[name] += line
    for who, text in texts.items():
        assert said[NAMES[who]] == text.replace("\n", "")
    assert printed.endswith("\n") or not printed


@given(st.lists(st.sampled_from("abc"), max_size=8), st.lists(st.sampled_from("abc"), max_size=8))
def test_changes_lead_from_one_text_to_the_other(before: list[str], after: list[str]) -> None:
    lines = Counter("\n".join(before).split("\n"))
    for row in changed_lines("\n".join(before), "\n".join(after)):
        lines[row[2:]] += 1 if row.startswith("+ ") else -1
    assert +lines == Counter("\n".join(after).split("\n"))
    assert not -lines


class Pipes:
    """A session, what it is told and what it has printed."""

    def __init__(self, here: World) -> None:
        locate = AppOptions(data=here.data).locate
        self._calls = ToolClient(locate)
        source, self._typed = os.pipe()
        self._printed, sink = os.pipe()
        self._files = [os.fdopen(source, "rb", buffering=0), os.fdopen(sink, "wb", buffering=0)]
        session = LinearSession(self._calls, *self._files)
        self.running = asyncio.create_task(session.run("default"))
        self.text = ""
        asyncio.get_running_loop().add_reader(self._printed, self._read)

    def _read(self) -> None:
        self.text += os.read(self._printed, 65_536).decode()

    def type(self, line: str) -> None:
        os.write(self._typed, f"{line}\n".encode())

    def end(self) -> None:
        os.close(self._typed)

    async def sees(self, text: str) -> None:
        await until(lambda: text in self.text, lambda: f"{text!r} in {self.text}")

    async def close(self) -> None:
        self.running.cancel()
        await asyncio.wait({self.running})
        asyncio.get_running_loop().remove_reader(self._printed)
        os.close(self._printed)
        for file in self._files:
            file.close()
        await self._calls.close()


@pytest.fixture
async def asking(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path, asks=True) as one:
        yield one


@pytest.fixture
async def pipes(asking: World) -> AsyncIterator[Pipes]:
    one = Pipes(asking)
    try:
        yield one
    finally:
        await one.close()


async def test_linear_session_begins_with_the_end_of_a_long_block(asking: World) -> None:
    await asking.cell("".join(f"line {number}\n" for number in range(100)) + "unfinished")
    pipes = Pipes(asking)
    try:
        await pipes.sees("unfinished")
        assert "line 81\n" in pipes.text
        assert "line 80\n" not in pipes.text
        left_out = "81 lines before these: /read default.bela.1 shows all."
        assert left_out in pipes.text
        pipes.type("/read")
        await until(lambda: pipes.text.count("unfinished") == 2, "the end again")
        assert pipes.text.count(left_out) == 2
        assert "line 80\n" not in pipes.text
        pipes.type("/read default.bela.1")
        await pipes.sees("line 0\n")
    finally:
        await pipes.close()


async def test_linear_session_prints_an_answer_as_it_comes_and_stops_it(
    asking: World, pipes: Pipes
) -> None:
    pipes.type("hi")
    await until(lambda: asking.aria.prompts == ["hi"], "the model is asked")
    asking.aria.write("first line\nsecond")
    await pipes.sees("first line\n")
    pipes.type("/stop")
    await pipes.sees("Stopped: aria.")
    await pipes.sees("(interrupted by amy)")


async def test_linear_session_asks_about_a_call_and_lets_it_run(
    asking: World, pipes: Pipes
) -> None:
    pipes.type("hi")
    await until(lambda: bool(asking.aria.prompts), "the model is asked")
    asking.aria.run("echo $((6 * 7))")
    await pipes.sees("Asked: may shell run with")
    pipes.type("/once")
    await pipes.sees("\n42\n")
    asking.aria.end()


async def test_linear_session_says_what_an_agent_offers(asking: World, pipes: Pipes) -> None:
    kernel, context = asking.kernel, await asking.context()
    actor = kernel.open_session(await kernel.principal("aria", PrincipalKind.MODEL), "turn")
    about: dict[str, Any] = {"tool_name": "Search", "choices": {"once": "Yes"}}
    call = await BlockWriter(kernel, context, actor).create(
        BlockKind.TOOL_CALL, await asking.cell("Go."), "x", status="pending", **about
    )
    asker = Asker(kernel, asking.me, Permission.OWN)
    request = PermissionRequest(
        *(context, call, actor.principal.id, "search", {}, asker),
        choices={CallPermission.ONCE, CallPermission.DENIED},
    )
    deciding = asyncio.create_task(asking.turns.permissions.decide(request))
    await pipes.sees("Asked: may Search run with {}? /once (Yes), /no (no).")
    pipes.type("/once")
    assert await deciding is None
    asker.close()


async def test_linear_session_whose_input_has_ended_allows_no_call_and_ends(
    asking: World, pipes: Pipes
) -> None:
    pipes.type("hi")
    await until(lambda: bool(asking.aria.prompts), "the model is asked")
    pipes.end()
    asking.aria.run("echo $((6 * 7))")
    await pipes.sees("Asked: may shell run with")
    asking.aria.write("Then not.")
    asking.aria.end()
    await until(pipes.running.done, lambda: f"its end: {pipes.text}")
    await pipes.sees("Then not.")
    assert "42" not in pipes.text
