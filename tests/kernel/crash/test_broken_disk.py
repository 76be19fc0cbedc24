"""Every step of a write fails once, and the disk runs full: what was acknowledged stays.

An import or a fork that fails or dies at a step is there whole or not at all.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiosqlite
import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.errors import raises
from tests.kernel.crash.faults import STEPS, Fault, in_a_process, inject, moments, open_kernel
from tests.kernel.crash.writer import numbers, pair, word


class Work:
    """Several people write at once; what was acknowledged is remembered."""

    def __init__(self, kernel: Kernel, actors: list[Actor]) -> None:
        self.kernel = kernel
        self.actors = actors
        self.block = ""
        self.pair_block = ""
        self.words: list[int] = []
        self.tried = 0
        self.pairs = [0]
        self.contexts: list[str] = []
        self.refused: list[AntiphonError] = []

    async def begin(self) -> None:
        made = {"role": "user", "kind": "text"}
        call = self.kernel.call
        self.block = (await call(self.actors[0], "block.create", made))["block_id"]
        made["content"] = pair(0)
        self.pair_block = (await call(self.actors[1], "block.create", made))["block_id"]

    async def some(self) -> None:
        """One round of calls, all at the same time."""
        doing = [self._append(self.tried), self._edit(), self._found(), self._joins()]
        self.tried += 1
        for failure in await asyncio.gather(*doing, return_exceptions=True):
            if isinstance(failure, AntiphonError):
                self.refused.append(failure)
            elif failure is not None:
                raise failure

    async def _append(self, number: int) -> None:
        insert = {"block_id": self.block, "offset": 0, "insert": word(number)}
        await self.kernel.call(self.actors[0], "block.splice", insert)
        self.words.append(number)

    async def _edit(self) -> None:
        number = self.pairs[-1] + 1
        lines = pair(number).splitlines()
        operations = [
            {"op": "replace", "start_line": at, "end_line": at + 1, "content": lines[at]}
            for at in (0, 1)
        ]
        edit = {"block_id": self.pair_block, "operations": operations}
        await self.kernel.call(self.actors[1], "block.edit", edit)
        self.pairs.append(number)

    async def _found(self) -> None:
        label = f"c{self.tried}"
        await self.kernel.call(self.actors[2], "context.create", {"label": label})
        self.contexts.append(label)

    async def _joins(self) -> None:
        actor = self.kernel.open_session(self.kernel.owner, f"join {self.tried}")
        await self.kernel.call(actor, "block.read", {"block_id": self.block})

    async def check(self, kernel: Kernel) -> None:
        """All that was acknowledged is in an open kernel, and nothing half."""
        document = (await kernel.context()).document
        found = numbers(document.text(self.block))
        assert found == sorted(set(found), reverse=True)
        assert set(self.words) <= set(found) <= set(range(self.tried))
        text = document.text(self.pair_block)
        assert text in map(pair, range(self.pairs[-1], self.pairs[-1] + 2))
        labels = {row.label for row in kernel.contexts.rows()}
        assert set(self.contexts) <= labels
        for label in labels:
            await kernel.context(label)


@pytest.fixture
async def work(tmp_path: Path) -> AsyncIterator[Work]:
    kernel = await open_kernel(tmp_path)
    actors = [kernel.open_session(await kernel.principal(name), "test") for name in ("a", "b", "c")]
    work = Work(kernel, actors)
    await work.begin()
    yield work
    await kernel.close()


async def goes_on_and_reopens(work: Work, data: Path) -> None:
    await work.check(work.kernel)
    before = len(work.words)
    await work.some()
    assert len(work.words) == before + 1
    await work.check(work.kernel)
    await work.kernel.close()
    assert [str(finding) for finding in (await run_checks(data)).all()] == []
    kernel = await open_kernel(data)
    await work.check(kernel)
    await kernel.close()


@pytest.mark.parametrize(
    ("step", "after"), moments(step for step in STEPS if "clients" not in step)
)
async def test_step_that_fails_is_told_and_nothing_acknowledged_is_lost(
    work: Work, tmp_path: Path, step: str, after: bool
) -> None:
    await work.some()
    assert work.refused == []
    mend = inject(Fault(step, after))
    try:
        for _ in range(3):
            await work.some()
    finally:
        mend()
    assert work.refused
    assert {error.code for error in work.refused} == {ErrorCode.STORAGE_FAILED}
    await goes_on_and_reopens(work, tmp_path)


async def test_commit_that_the_database_refuses_leaves_nothing(work: Work, tmp_path: Path) -> None:
    """COMMIT itself fails, by a reference that is only checked then."""
    await work.some()
    async with aiosqlite.connect(tmp_path / "journal.db") as rival:
        await rival.executescript(
            "CREATE TABLE poison (x REFERENCES kernel (key) DEFERRABLE INITIALLY DEFERRED);"
            "CREATE TRIGGER poisoned AFTER INSERT ON ops"
            " BEGIN INSERT INTO poison VALUES ('nobody'); END"
        )
        await rival.commit()
        await work.some()
        await rival.executescript("DROP TRIGGER poisoned; DROP TABLE poison")
        await rival.commit()
    assert len(work.refused) >= 2
    await goes_on_and_reopens(work, tmp_path)


async def test_full_disk_is_told_and_nothing_acknowledged_is_lost(
    tmp_path: Path, connections: list[aiosqlite.Connection]
) -> None:
    kernel = await open_kernel(tmp_path)
    actors = [kernel.open_session(await kernel.principal(name), "test") for name in ("a", "b", "c")]
    work = Work(kernel, actors)
    await work.begin()
    await work.some()

    async def limit(pages: int) -> None:
        for one in connections:
            await one.execute_fetchall(f"PRAGMA max_page_count = {pages}")

    with sqlite3.connect(tmp_path / "journal.db") as reader:
        (pages,) = reader.execute("PRAGMA page_count").fetchone()
    await limit(pages + 3)
    for _ in range(400):
        await work.some()
        if len(work.refused) > 20:
            break
    assert {error.code for error in work.refused} == {ErrorCode.STORAGE_FAILED}
    read = await kernel.call(work.actors[0], "block.read", {"block_id": work.block})
    assert set(work.words) <= set(numbers(read["content"]))
    await limit(2**30)
    await goes_on_and_reopens(work, tmp_path)


BLOCKS = 30


Make = Callable[[Kernel, str, str], Awaitable[None]]
"""Makes a context of this label: a copy of the default one, whose export is at hand."""


async def import_into(kernel: Kernel, text: str, label: str) -> None:
    amy = kernel.open_session(kernel.owner, "test")
    await kernel.call(amy, "context.import", {"text": text, "label": label})


async def fork_into(kernel: Kernel, text: str, label: str) -> None:
    amy = kernel.open_session(kernel.owner, "test")
    await kernel.call(amy, "context.fork", {"context": "default", "label": label})


IMPORT_STEPS = ("BEGIN", "INSERT INTO contexts", "INSERT INTO inherited_blame", "COMMIT")
FORK_STEPS = ("INSERT INTO ops", "INSERT INTO blocks", "INSERT INTO snapshots", "COMMIT")
WAYS = [
    (make, *moment)
    for make, steps in ((import_into, IMPORT_STEPS), (fork_into, FORK_STEPS))
    for moment in moments(steps)
]
DEATHS = WAYS[1::4]
"""Some of them: that a statement that did not end is undone is up to SQLite."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder whose context has several blocks, which tests copy."""
    folder = tmp_path_factory.mktemp("template")

    async def fill() -> None:
        kernel = await open_kernel(folder)
        amy = kernel.open_session(kernel.owner, "test")
        new = {"role": "user", "kind": "text", "status": "done", "content": "some text"}
        for _ in range(BLOCKS):
            await kernel.call(amy, "block.create", new)
        text = (await kernel.call(amy, "context.export", {}))["text"]
        (folder / "export").write_text(text, "utf-8")
        await kernel.close()

    asyncio.run(fill())
    return folder


@pytest.fixture
def exported(template: Path, tmp_path: Path) -> str:
    """The export of the context that is in the data folder."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    return (tmp_path / "export").read_text("utf-8")


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


@pytest.mark.parametrize(("make", "step", "after"), WAYS)
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


@pytest.mark.parametrize(("make", "step", "after"), DEATHS)
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
