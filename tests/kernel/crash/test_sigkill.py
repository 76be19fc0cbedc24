"""Killed at a random moment, again and again on one data folder: nothing acknowledged is lost.

ANTIPHON_CRASHES says how often (`make crash`: 200).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.client.address import read_address
from antiphon_kernel.client.discovery import kernel_at
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.contexts.opening import open_document
from antiphon_kernel.document.document import Document
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.storage import Journal, copy_pages
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError
from tests.kernel.crash.faults import STEPS, Fault, moments, open_kernel
from tests.kernel.crash.writer import numbers, pair
from tests.waiting import until

CRASHES = int(os.environ.get("ANTIPHON_CRASHES", "3"))
DEATHS = 4
A_FOLDER = 25
"""Crashes of one data folder: all that is in it is examined after each."""
ROOT = Path(__file__).parents[3]

Facts = list[list[Any]]


class Nursery:
    """Maker of kernels and writers."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._children: list[int] = []

    async def kernel(self, data: Path, faults: Sequence[Fault] = ()) -> int:
        """The process id of a kernel that answers."""
        pid = await self._fork(data=str(data), faults=[asdict(fault) for fault in faults])

        def answers() -> bool:
            address = kernel_at(data)
            return address is not None and address.pid == pid

        await until(answers, f"a kernel; see {data / 'kernel.log'}")
        return pid

    async def writer(self, data: Path, prefix: str, facts: Path) -> int:
        """The process id of a writer, which adds what it knows to the file `facts`."""
        return await self._fork(data=str(data), prefix=prefix, facts=str(facts))

    async def _fork(self, **asked: Any) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # The test has a state folder of its own, and with it the folders that it trusts.
        asked["state"] = os.environ["XDG_STATE_HOME"]
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        pid = int(await asyncio.to_thread(self._process.stdout.readline))
        self._children.append(pid)
        return pid

    async def end_all(self) -> None:
        """End everyone from here who still lives."""
        while self._children:
            pid = self._children.pop()
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            await gone(pid)


@pytest.fixture(scope="module")
def warm() -> Iterator[Nursery]:
    command = [sys.executable, "-m", "tests.kernel.crash.nursery"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield Nursery(process)


@pytest.fixture
async def nursery(warm: Nursery) -> AsyncIterator[Nursery]:
    yield warm
    await warm.end_all()


async def gone(pid: int) -> None:
    def is_gone() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return False

    await until(is_gone, "the process dies")


async def written_until_killed(
    nursery: Nursery, data: Path, kernel: int, prefix: str, known: int | None
) -> Facts:
    """Let a writer write, kill the kernel once so much is known (None: it dies by itself)."""
    facts = data.with_name(f"facts-{prefix}")
    facts.touch()
    writer = await nursery.writer(data, prefix, facts)
    if known is not None:
        await until(lambda: facts.read_bytes().count(b"\n") >= known, "the writer writes")
        os.kill(kernel, signal.SIGKILL)
    await gone(kernel)
    await gone(writer)
    return [json.loads(line) for line in facts.read_bytes().splitlines()]


@dataclass
class Acknowledged:
    """Everything that kernels have promised so far."""

    words: dict[str, int] = field(default_factory=dict)
    """Block to the highest number."""
    pairs: dict[str, int] = field(default_factory=dict)
    contexts: set[str] = field(default_factory=set)

    def learn(self, facts: Facts) -> None:
        blocks: dict[str, str] = {}
        for kind, *rest in facts:
            if kind == "block":
                blocks[rest[0]] = rest[1]
                (self.pairs if rest[0] == "pair" else self.words).setdefault(
                    rest[1], 0 if rest[0] == "pair" else -1
                )
            elif kind == "word":
                self.words[blocks[rest[0]]] = rest[1]
            elif kind == "pair":
                self.pairs[blocks["pair"]] = rest[0]
            elif kind == "context":
                self.contexts.add(rest[0])

    def check(self, document: Document, labels: set[str]) -> None:
        for block, highest in self.words.items():
            found = numbers(document.text(block))
            assert found == list(range(len(found)))
            assert len(found) > highest
        for block, highest in self.pairs.items():
            text = document.text(block)
            number = int(text.split()[0])
            assert text == pair(number)
            assert number >= highest
        assert self.contexts <= labels


async def at_rest(data: Path, folder: Path) -> tuple[Document, set[str]]:
    """The default context and all labels as they are on disk, looked at without changing them."""
    copy = folder / "copy.db"
    copy.unlink(missing_ok=True)
    copy_pages(data / "journal.db", copy)
    journal = await Journal.open(copy)
    try:
        rows = {row.label: row for row in await journal.contexts()}
        _, document = await open_document(journal, rows["default"], 1)
        return document, set(rows)
    finally:
        await journal.close()


async def check(acknowledged: Acknowledged, data: Path, folder: Path) -> None:
    report = await run_checks(data)
    assert [str(finding) for finding in report.all()] == []
    document, labels = await at_rest(data, folder)
    acknowledged.check(document, labels)


async def test_acknowledged_writes_survive_sigkill_at_any_moment(
    nursery: Nursery, tmp_path: Path
) -> None:
    seed = int(os.environ.get("ANTIPHON_SEED", "1"))
    dice = random.Random(seed)
    data, acknowledged = tmp_path / "data", Acknowledged()
    words = 0
    for crash in range(CRASHES):
        if crash and not crash % A_FOLDER:
            words += sum(acknowledged.words.values())
            data, acknowledged = tmp_path / f"data-{crash}", Acknowledged()
        kernel = await nursery.kernel(data)
        known = dice.randint(1, 80)
        facts = await written_until_killed(nursery, data, kernel, f"c{crash}", known)
        acknowledged.learn(facts)
        await check(acknowledged, data, tmp_path)
    assert words + sum(acknowledged.words.values()) > CRASHES
    # Whatever is open after a crash is ended by the next kernel.
    await nursery.kernel(data)


@pytest.mark.parametrize(("step", "after"), moments(STEPS))
async def test_kernel_that_dies_at_a_step_of_a_write_has_lost_nothing(
    nursery: Nursery, tmp_path: Path, step: str, after: bool
) -> None:
    data = tmp_path / "data"
    dice = random.Random(f"{step} {after}")
    acknowledged = Acknowledged()
    for crash in range(max(1, CRASHES // 100)):
        # Few sessions begin and few client ids are new while the writer writes.
        seldom = step in ("INSERT INTO sessions", "INSERT INTO clients")
        fault = Fault(step, after, kills=True, count=1 if seldom else dice.randint(1, 12))
        kernel = await nursery.kernel(data, [fault])
        acknowledged.learn(await written_until_killed(nursery, data, kernel, f"c{crash}", None))
        await check(acknowledged, data, tmp_path)


async def test_drift_arrives_once_wherever_its_kernel_died(
    nursery: Nursery, tmp_path: Path
) -> None:
    """Killed after the commit of what is staged, or of what arrives, and at steps of either."""
    data = tmp_path / "data"

    async def ask(tool: str, **params: Any) -> dict[str, Any]:
        calls = ToolClient(lambda: read_address(data))
        try:
            return await calls.call(tool, params)
        finally:
            await calls.close()

    kernel, texts = await nursery.kernel(data), list[str]()
    await ask("context.create", label="notes")
    for count, step, after in (
        *((count, "INSERT INTO drifts", after) for count in (1, 2) for after in (False, True)),
        *((count, "COMMIT", True) for count in (1, 2, 3)),
    ):
        text = f"{step} {count} {after}"
        made = await ask("block.create", kind="text", content=text, status="done")
        os.kill(kernel, signal.SIGKILL)
        await gone(kernel)
        kernel = await nursery.kernel(data, [Fault(step, after, kills=True, count=count)])
        with contextlib.suppress(AntiphonError, OSError):
            await ask("drift.push", to="notes", blocks=[made["block_id"]])
            os.kill(kernel, signal.SIGKILL)
        await gone(kernel)
        kernel = await nursery.kernel(data)
        drifts = (await ask("drift.list"))["drifts"]
        while any(one["state"] == "staged" for one in drifts):
            await asyncio.sleep(0.01)
            drifts = (await ask("drift.list"))["drifts"]
        assert {one["state"] for one in drifts} <= {"delivered"}, text
        if len(drifts) > len(texts):
            texts.append(text)
        blocks = (await ask("block.list", context="notes"))["blocks"]
        heads = [one["block_id"] for one in blocks if one["kind"] == "drift"]
        assert sorted(heads) == sorted(one["block_id"] for one in drifts), text
        assert len(blocks) == 2 * len(texts), text
    assert 2 < len(texts) < 7
    os.kill(kernel, signal.SIGKILL)
    await gone(kernel)
    assert [str(finding) for finding in (await run_checks(data)).all()] == []


async def test_folder_opens_however_often_its_kernel_has_died(tmp_path: Path) -> None:
    data = tmp_path / "0"
    answers: list[str] = []
    prompt, typed = "", ""
    for crash in range(DEATHS):
        kernel = await open_kernel(data)
        amy = kernel.open_session(kernel.owner, "test")
        model = await kernel.principal(f"aria-{crash % 3}", PrincipalKind.MODEL)
        aria = kernel.open_session(model, "turn")
        if not prompt:
            new = {"role": "user", "kind": "text", "content": "go on", "status": "done"}
            prompt = (await kernel.call(amy, "block.create", new))["block_id"]
        answer = {"role": "model", "kind": "text", "parent_id": prompt, "content": "I was "}
        answers.append((await kernel.call(aria, "block.create", answer))["block_id"])
        await kernel.call(aria, "block.append", {"block_id": answers[-1], "text": f"here {crash}"})
        typed = f"{crash} " + typed
        insert = {"block_id": prompt, "offset": 0, "insert": f"{crash} "}
        await kernel.call(amy, "block.splice", insert)
        died_of_it = tmp_path / str(crash + 1)
        # What is on disk when the machine stops now.
        shutil.copytree(data, died_of_it, ignore=shutil.ignore_patterns("*-shm"))
        await kernel.close()
        shutil.rmtree(data)
        data = died_of_it
    assert [str(finding) for finding in (await run_checks(data)).all()] == []
    kernel = await open_kernel(data)
    document = (await kernel.context()).document
    assert document.text(prompt) == typed + "go on"
    assert [document.text(one) for one in answers] == [f"I was here {n}" for n in range(DEATHS)]
    headers = [document.header(one) for one in answers]
    assert {(one.status, one.stop_reason) for one in headers} == {("error", "interrupted")}
    assert list(document.block_ids()) == [prompt, *answers]
    assert all(kernel.members[f"aria-{n}"].kind is PrincipalKind.MODEL for n in range(3))
    amy = kernel.open_session(kernel.owner, "test")
    for _ in range(3):
        await kernel.call(amy, "block.undo", {"block_id": prompt})
    undone = " ".join(map(str, reversed(range(DEATHS - 3))))
    assert document.text(prompt) == f"{undone} go on"
    await kernel.close()
    assert [str(finding) for finding in (await run_checks(data)).all()] == []
