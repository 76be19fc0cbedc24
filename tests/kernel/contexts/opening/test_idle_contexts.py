"""Contexts that nobody uses are closed; whoever comes back finds everything as it was."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import random
import signal
import weakref
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.contexts import Context, UseScope
from antiphon_kernel.contexts.opening import open_contexts
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.limits import DEFAULT_LIMITS, Limits
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.presence import PresenceState
from antiphon_kernel.types.records import Actor
from tests.clocks import ManualClock
from tests.errors import raises
from tests.kernel.crash.faults import Fault, inject
from tests.kernel.kernel.calls import Caller, OpenKernel
from tests.waiting import until

AT_ONCE = Limits(idle_context_seconds=0, idle_check_seconds=1e6, snapshot_transactions_on_close=1)
"""Every context is closed that nobody uses when it is looked, each with a snapshot."""

Idle = Callable[[], Awaitable[list[str]]]
"""Lets the time pass after which contexts are idle; the labels of those that are closed."""


class OpenContextsRecord:
    """The contexts of a kernel that are open, as its signals say."""

    def __init__(self, kernel: Kernel) -> None:
        self.open: dict[str, weakref.ref[Context]] = {}
        self.closed: list[str] = []
        kernel.opened.listen(self._opened)
        kernel.closed.listen(self._closed)

    def _opened(self, context: Context) -> None:
        assert context.label not in self.open, "a context is opened twice"
        self.open[context.label] = weakref.ref(context)

    def _closed(self, context: Context) -> None:
        known = self.open.pop(context.label, None)  # None: opened with the kernel
        assert known is None or known() is context
        self.closed.append(context.label)


@pytest.fixture
def record(kernel: Kernel) -> OpenContextsRecord:
    return OpenContextsRecord(kernel)


@pytest.fixture
def idle(kernel: Kernel, clock: ManualClock, record: OpenContextsRecord) -> Idle:
    async def pass_time() -> list[str]:
        clock.ms += round(DEFAULT_LIMITS.idle_context_seconds * 1000)
        await kernel.open_contexts.close_idle()
        closed, record.closed = record.closed, []
        return closed

    return pass_time


@pytest.fixture
def given_back(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A number for each time that free memory went back to the system."""
    times: list[int] = []
    monkeypatch.setattr(open_contexts, "return_free_memory", lambda: times.append(1))
    return times


@pytest.fixture
async def eager(open_kernel: OpenKernel) -> Kernel:
    """A kernel that closes every context that nobody uses in this moment."""
    return await open_kernel(AT_ONCE)


async def write_everything(call: Caller) -> str:
    """A block with a history of edits, of which one is undone; its id."""
    block = str((await call("block.create", kind="file", content="one two"))["block_id"])
    await call("block.splice", block_id=block, offset=3, insert=" and a half")
    await call("block.append", block_id=block, text=" three\n")
    await call("block.splice", block_id=block, offset=0, delete_count=4)
    await call("block.undo", block_id=block)
    return block


async def read_everything(call: Caller, block: str) -> list[Any]:
    return [
        await call(tool, **params)
        for tool, params in (
            ("block.read", {"block_id": block}),
            ("block.blame", {"block_id": block}),
            ("block.history", {"block_id": block}),
            ("context.page", {}),
            ("context.layout", {}),
            ("kernel.search", {"query": "three"}),
            ("kernel.usage", {}),
        )
    ]


async def test_unused_context_after_the_limit_is_closed_and_its_memory_is_free(
    call: Caller, idle: Idle, collection_off: None, given_back: list[int]
) -> None:
    await write_everything(call)
    with UseScope():
        context = await call.context()
    opened, document = weakref.ref(context), weakref.ref(context.document)
    del context
    assert await idle() == ["default"]
    await asyncio.sleep(0)
    assert (opened(), document(), len(given_back)) == (None, None, 1)


async def test_free_memory_goes_back_once_when_no_context_is_used(
    call: Caller, kernel: Kernel, given_back: list[int]
) -> None:
    block = (await call("block.create", kind="text", content="long " * 100))["block_id"]
    await kernel.open_contexts.close_idle()
    await call("block.splice", block_id=block, offset=0, insert="more ")
    await kernel.open_contexts.close_idle()
    assert not given_back
    await kernel.open_contexts.close_idle()
    await kernel.open_contexts.close_idle()
    assert len(given_back) == 1


async def test_context_used_within_the_limit_stays_open(
    call: Caller, idle: Idle, clock: ManualClock, kernel: Kernel, record: OpenContextsRecord
) -> None:
    await write_everything(call)
    clock.ms += round(DEFAULT_LIMITS.idle_context_seconds * 1000) - 1
    await kernel.open_contexts.close_idle()
    assert record.closed == []
    await call("block.list")
    clock.ms += round(DEFAULT_LIMITS.idle_context_seconds * 1000) - 1
    await kernel.open_contexts.close_idle()
    assert record.closed == []


async def test_reopened_context_answers_as_before_and_undoes_and_redoes(
    call: Caller, idle: Idle
) -> None:
    block = await write_everything(call)
    before = await read_everything(call, block)
    await call.kernel.search.wait_indexed()
    assert await idle() == ["default"]
    assert await read_everything(call, block) == before
    await call.kernel.search.wait_indexed()
    assert await idle() == ["default"]
    await call("block.redo", block_id=block)
    assert (await call("block.read", block_id=block))["content"] == "and a half two three\n"
    assert await idle() == ["default"]
    for _ in range(4):
        await call("block.undo", block_id=block)
    assert (await call("block.read", block_id=block))["content"] == ""


End = Callable[[], Awaitable[object]] | None
"""Ends the use of a context; None if that is another matter."""


async def subscribe(call: Caller, block: str) -> End:
    made = await call("block.subscribe", block_ids=[block])
    return lambda: call("block.unsubscribe", subscription=made["subscription"])


async def use_in_another_task(call: Caller, block: str) -> End:
    done = asyncio.Event()

    async def use() -> None:
        await call.context()
        await done.wait()

    task = asyncio.create_task(use())
    await asyncio.sleep(0)

    async def end() -> None:
        done.set()
        await task

    return end


async def append_without_flush(call: Caller, block: str) -> None:
    await call("block.append", block_id=block, text="x", stream=True)


async def be_present(call: Caller, block: str) -> None:
    with UseScope():
        context = await call.context()
        context.presence.put(77, PresenceState("p", "opus", PrincipalKind.MODEL, 3, "s"))


async def run_a_block(call: Caller, block: str) -> None:
    await call("block.create", kind="tool_call", content="one")


async def run_a_block_once(call: Caller, block: str) -> None:
    actor = call.kernel.open_session(call.kernel.owner, "tcp", lasts=False)
    await call.kernel.call(actor, "block.create", {"kind": "tool_call", "content": "one"})
    await call.kernel.close_session(actor)


async def use_in_this_task(call: Caller, block: str) -> None:
    await call.context()


@pytest.mark.parametrize(
    "use",
    [
        *(subscribe, use_in_another_task, use_in_this_task, append_without_flush, be_present),
        *(run_a_block, run_a_block_once),
    ],
)
async def test_context_that_is_needed_stays_open(
    call: Caller, idle: Idle, use: Callable[[Caller, str], Awaitable[End]]
) -> None:
    block = await write_everything(call)
    end = await use(call, block)
    assert await idle() == []
    if end is not None:
        await end()
        assert await idle() == ["default"]


async def test_write_to_a_closed_context_is_refused(call: Caller, idle: Idle, amy: Actor) -> None:
    block = await write_everything(call)
    with UseScope():
        context = await call.context()
    assert await idle() == ["default"]
    with raises(ErrorCode.STORAGE_FAILED):
        context.append(amy, block, "lost")
    with raises(ErrorCode.STORAGE_FAILED):
        context.appends.add(amy, block, "lost")
    with raises(ErrorCode.STORAGE_FAILED):
        await context.history(block)


async def test_unused_context_is_closed_without_being_asked_for(open_kernel: OpenKernel) -> None:
    kernel = await open_kernel(Limits(idle_context_seconds=0, idle_check_seconds=0.01))
    record = OpenContextsRecord(kernel)
    amy = Caller(kernel, kernel.open_session(kernel.owner, "test"))
    for _ in range(3):
        record.closed.clear()
        await amy("block.create", kind="file", content="one")
        await until(lambda: record.closed)


async def test_calls_during_closing_lose_nothing_and_open_no_context_twice(eager: Kernel) -> None:
    record = OpenContextsRecord(eager)
    amy = Caller(eager, eager.open_session(eager.owner, "test"))
    made = await amy("block.create", kind="file", content="")
    block, over, rng = str(made["block_id"]), asyncio.Event(), random.Random(1)

    async def write(letter: str) -> None:
        for _ in range(10):
            await amy("block.splice", block_id=block, offset=0, insert=letter)
            await amy("block.append", block_id=block, text=letter)
            seen = len(record.closed)
            await until(lambda: len(record.closed) > seen or rng.random() < 0.1)  # noqa: B023

    async def close() -> None:
        while not over.is_set():
            await eager.open_contexts.close_idle()
            await asyncio.sleep(0)

    closing = asyncio.create_task(close())
    await asyncio.gather(*map(write, "ab"))
    over.set()
    await closing
    await eager.open_contexts.close_idle()
    assert len(record.closed) > 5
    assert not record.open
    text = (await amy("block.read", block_id=block))["content"]
    assert sorted(text) == sorted("ab" * 20)
    for _ in range(2 * 20):
        await amy("block.undo", block_id=block)
    assert (await amy("block.read", block_id=block))["content"] == ""


async def test_context_that_is_asked_for_while_it_is_stored_stays_open(eager: Kernel) -> None:
    record = OpenContextsRecord(eager)
    amy = Caller(eager, eager.open_session(eager.owner, "test"))
    block = await write_everything(amy)
    closing = asyncio.create_task(eager.open_contexts.close_idle())
    await asyncio.sleep(0)
    context = await eager.context()
    assert not closing.done()
    await closing
    assert record.closed == []
    assert await eager.context() is context
    await amy("block.append", block_id=block, text="four")


@pytest.mark.sqlite
async def test_context_that_cannot_be_stored_stays_open(
    eager: Kernel, caplog: pytest.LogCaptureFixture
) -> None:
    record = OpenContextsRecord(eager)
    amy = Caller(eager, eager.open_session(eager.owner, "test"))
    block = await write_everything(amy)
    mend = inject(Fault("INSERT INTO snapshots", after=False))
    try:
        with caplog.at_level(logging.ERROR):
            await eager.open_contexts.close_idle()
    finally:
        mend()
    assert record.closed == []
    assert "context default stays open" in caplog.text
    await amy("block.append", block_id=block, text="more")
    await eager.open_contexts.close_idle()
    assert not record.open
    assert (await amy("block.read", block_id=block))["content"].endswith("three\nmore")


THREE = {"role": "user", "content": "three"}


async def branch_off(call: Caller) -> tuple[str, dict[str, Any]]:
    """Fork a conversation of two messages behind the first; its id, and the other second one."""
    said = [{"role": "user", "content": text} for text in ("one", "two")]
    last = (await call("message.append", messages=said))["message_id"]
    parent = (await call("message.path", message=last))["messages"][0]["message_id"]
    return parent, await call("message.append", parent=parent, messages=[THREE])


async def test_branches_of_a_conversation_are_closed_together_and_found_again(
    call: Caller, idle: Idle
) -> None:
    parent, forked = await branch_off(call)
    assert forked["forked"]
    with UseScope():
        await call.context(forked["context_id"])
        assert await idle() == []
    before = await call("message.children", message=parent)
    assert len(await idle()) == 2
    assert await call("message.children", message=parent) == before
    again = await call("message.append", parent=parent, messages=[THREE])
    assert (again["context_id"], again["reused"]) == (forked["context_id"], 1)


async def test_message_in_a_branch_that_was_closed_is_found_in_its_tree(
    call: Caller, idle: Idle
) -> None:
    _, forked = await branch_off(call)
    assert not (await call("message.children", message=forked["message_id"]))["messages"]
    assert len(await idle()) == 2
    new = {"context": forked["context_id"], "role": "user", "kind": "text", "content": "four"}
    await call("block.create", **new, status="done")
    (child,) = (await call("message.children", message=forked["message_id"]))["messages"]
    assert "four" in str(child["message"])


def close_and_die(data: Path, step: str, after: bool) -> None:
    async def run() -> None:
        registry = Registry(KERNEL_TOOLS)
        kernel = await Kernel.open(
            data, data.parent, registry=registry, owner="amy", clock=ManualClock(), limits=AT_ONCE
        )
        await write_everything(Caller(kernel, kernel.open_session(kernel.owner, "test")))
        inject(Fault(step, after, kills=True))
        await kernel.open_contexts.close_idle()

    asyncio.run(run())


@pytest.mark.sqlite
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_kernel_that_is_killed_while_closing_a_context_loses_nothing(
    data: Path, open_kernel: OpenKernel, after: bool
) -> None:
    arguments = (data, "INSERT INTO snapshots", after)
    process = multiprocessing.get_context("fork").Process(target=close_and_die, args=arguments)
    process.start()
    await asyncio.to_thread(process.join)
    assert process.exitcode == -signal.SIGKILL
    kernel = await open_kernel(AT_ONCE)
    amy = Caller(kernel, kernel.open_session(kernel.owner, "test"))
    read = await amy("block.read", block_id="default.amy.1")
    assert read["content"] == "one and a half two three\n"
    await kernel.close()
    assert [str(finding) for finding in (await run_checks(data)).all()] == []
