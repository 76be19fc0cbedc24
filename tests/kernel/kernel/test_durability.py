"""What was acknowledged is there after a crash; a commit that failed leaves nothing behind."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.kernel.kernel import Kernel
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor

WRITER = """
import asyncio, sys
from pathlib import Path
from antiphon_kernel.kernel.kernel import Kernel
from antiphon_kernel.kernel.registry import Registry
from antiphon_kernel.kernel.tools.catalogue import KERNEL_TOOLS
from antiphon_kernel.types.enums import PrincipalKind

async def main():
    data = Path(sys.argv[1])
    kernel = await Kernel.open(data, data, registry=Registry(KERNEL_TOOLS), owner="amy")
    aria = kernel.open_session(await kernel.principal("aria", PrincipalKind.MODEL), "turn")
    made = await kernel.call(aria, "block.create", {"role": "model", "kind": "text"})
    print(made["block_id"], flush=True)
    for number in range(1_000_000):
        word = f"{number} 😀 "
        await kernel.call(aria, "block.append", {"block_id": made["block_id"], "text": word})
        print(number, flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("seed", range(6))
async def test_every_acknowledged_append_survives_sigkill(
    data: Path, open_kernel: Any, seed: int
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(data), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    block = (await process.stdout.readline()).decode().strip()
    for _ in range(random.Random(seed).randint(1, 60)):
        await process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    rest = (await process.stdout.read()).decode().split()
    await process.wait()
    kernel: Kernel = await open_kernel()
    context = await kernel.context()
    text = context.document.text(block)
    words = text.split(" 😀 ")
    assert words[-1] == ""
    numbers = [int(word) for word in words[:-1]]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) - 1 >= (int(rest[-1]) if rest else 0)
    header = context.document.header(block)
    assert (header.status, header.stop_reason) == ("error", "interrupted")


async def test_a_session_that_ends_interrupts_what_it_left_running(kernel: Kernel) -> None:
    aria = kernel.open_session(await kernel.principal("aria", PrincipalKind.MODEL), "turn")
    block = (
        await kernel.call(
            aria, "block.create", {"role": "model", "kind": "text", "content": "half a"}
        )
    )["block_id"]
    await kernel.call(aria, "block.append", {"block_id": block, "text": " word", "stream": True})
    await kernel.close_session(aria)
    context = await kernel.context()
    assert context.document.text(block) == "half a word"
    assert context.document.header(block).stop_reason == "interrupted"


async def test_a_models_block_that_was_never_written_to_is_not_left_pending(
    kernel: Kernel, open_kernel: Any
) -> None:
    aria = kernel.open_session(await kernel.principal("aria", PrincipalKind.MODEL), "turn")
    made = await kernel.call(aria, "block.create", {"role": "model", "kind": "text"})
    await kernel.close()
    context = await (await open_kernel()).context()
    assert context.document.header(made["block_id"]).stop_reason == "interrupted"


async def test_a_persons_draft_keeps_its_status_over_a_restart(
    kernel: Kernel, amy: Actor, make: Any, open_kernel: Any
) -> None:
    block = await make("draft")
    await kernel.close_session(amy)
    await kernel.close()
    context = await (await open_kernel()).context()
    assert context.document.header(block).status == "running"


async def test_a_failed_commit_is_told_and_the_context_is_read_again_from_disk(
    kernel: Kernel, amy: Actor, make: Any, data: Path
) -> None:
    import aiosqlite

    block = await make("safe", status="done")
    stopped: list[AntiphonError] = []
    context = await kernel.context()
    context.on_failure(stopped.append)
    async with aiosqlite.connect(data / "journal.db") as rival:
        await rival.execute(
            "CREATE TRIGGER full BEFORE INSERT ON ops BEGIN SELECT raise(ABORT, 'disk full'); END"
        )
        await rival.commit()
        calls = [
            kernel.call(amy, "block.splice", {"block_id": block, "offset": 0, "insert": "lost "})
            for _ in range(5)
        ]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        await rival.execute("DROP TRIGGER full")
        await rival.commit()
    assert {one.code for one in outcomes if isinstance(one, AntiphonError)} == {
        ErrorCode.STORAGE_FAILED
    }
    assert len(outcomes) == 5
    assert len(stopped) == 1
    found = await kernel.call(amy, "block.read", {"block_id": block})
    assert (found["content"], found["version"]) == ("safe", 1)
    await kernel.call(amy, "block.splice", {"block_id": block, "offset": 0, "insert": "very "})
    assert (await kernel.context()).document.text(block) == "very safe"
