"""An import or a fork that fails or dies at a step is there whole or not at all."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiosqlite
import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.errors import raises
from tests.kernel.crash.faults import Fault, in_a_process, inject, open_kernel

BLOCKS = 30


Make = Callable[[Kernel, str, str], Awaitable[None]]
"""Makes a context of this label: a copy of the default one, whose export is at hand."""


async def import_into(kernel: Kernel, text: str, label: str) -> None:
    amy = kernel.open_session(kernel.owner, "test")
    await kernel.call(amy, "context.import", {"text": text, "label": label})


async def fork_into(kernel: Kernel, text: str, label: str) -> None:
    amy = kernel.open_session(kernel.owner, "test")
    await kernel.call(amy, "context.fork", {"context": "default", "label": label})


IMPORT_STEPS = (
    "BEGIN",
    "INSERT INTO contexts",
    "INSERT INTO ops",
    "INSERT INTO blocks",
    "INSERT INTO inherited_blame",
    "COMMIT",
)
FORK_STEPS = (*IMPORT_STEPS[:4], "INSERT OR REPLACE INTO snapshots", "COMMIT")
WAYS = [
    *(pytest.param(import_into, step, id=f"import-{step}") for step in IMPORT_STEPS),
    *(pytest.param(fork_into, step, id=f"fork-{step}") for step in FORK_STEPS),
]


@pytest.fixture
async def exported(tmp_path: Path) -> str:
    """The export of a context of several blocks, which is in the data folder."""
    kernel = await open_kernel(tmp_path)
    amy = kernel.open_session(kernel.owner, "test")
    new = {"role": "user", "kind": "text", "status": "done", "content": "some text"}
    for _ in range(BLOCKS):
        await kernel.call(amy, "block.create", new)
    text = (await kernel.call(amy, "context.export", {}))["text"]
    await kernel.close()
    return text


async def check_whole_or_absent(data: Path, text: str, make: Make = import_into) -> None:
    kernel = await open_kernel(data)
    if "copy" in [row.label for row in kernel.contexts.rows()]:
        await check_copy(kernel, "copy")
    await make(kernel, text, "again")
    await check_copy(kernel, "again")
    await kernel.close()
    assert [str(finding) for finding in (await run_checks(data)).all()] == []


async def check_copy(kernel: Kernel, label: str) -> None:
    document = (await kernel.context(label)).document
    assert [document.text(block) for block in document.block_ids()] == ["some text"] * BLOCKS
    amy = kernel.open_session(kernel.owner, "test")
    blame = await kernel.call(amy, "block.blame", {"block_id": f"{label}.amy.1"})
    assert [(run["username"], run["end"]) for run in blame["runs"]] == [("amy", 9)]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("make", "step"), WAYS)
async def test_new_context_that_fails_at_a_step_is_whole_or_absent(
    exported: str, tmp_path: Path, make: Make, step: str, after: bool
) -> None:
    kernel = await open_kernel(tmp_path)
    await kernel.context()
    mend = inject(Fault(step, after))
    try:
        with pytest.raises(AntiphonError) as caught:
            await make(kernel, exported, "copy")
    finally:
        mend()
    assert caught.value.code is ErrorCode.STORAGE_FAILED
    await kernel.close()
    await check_whole_or_absent(tmp_path, exported, make)


def make_and_die(data: Path, text: str, make: Make, step: str, after: bool) -> None:
    async def run() -> None:
        kernel = await open_kernel(data)
        await kernel.context()
        inject(Fault(step, after, kills=True))
        await make(kernel, text, "copy")

    asyncio.run(run())


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("make", "step"), WAYS)
async def test_new_context_of_a_kernel_that_is_killed_at_a_step_is_whole_or_absent(
    exported: str, tmp_path: Path, make: Make, step: str, after: bool
) -> None:
    ended = await in_a_process(make_and_die, tmp_path, exported, make, step, after)
    assert ended == -signal.SIGKILL
    await check_whole_or_absent(tmp_path, exported, make)


@pytest.mark.parametrize("make", [import_into, fork_into])
async def test_new_context_on_a_full_disk_leaves_nothing(
    exported: str, tmp_path: Path, connections: list[aiosqlite.Connection], make: Make
) -> None:
    kernel = await open_kernel(tmp_path)
    for one in connections:
        ((pages,),) = await one.execute_fetchall("PRAGMA page_count")
        await one.execute_fetchall(f"PRAGMA max_page_count = {pages + 2}")
    with raises(ErrorCode.STORAGE_FAILED):
        await make(kernel, exported, "copy")
    assert [row.label for row in kernel.contexts.rows()] == ["default"]
    await kernel.close()
    await check_whole_or_absent(tmp_path, exported, make)
