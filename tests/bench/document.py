"""The document: what writing, keeping and opening cost, and what grows.

    antiphon bench document [--json] [--long]

Times are medians (p95 in brackets). Figures that are ratios compare within this run: with plain
pycrdt, or the same with a hundredth of the blocks or of the history.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, closing
from functools import partial
from pathlib import Path
from typing import Any, Final

from pycrdt import Doc, Text

from antiphon_kernel.contexts import apply_update
from antiphon_kernel.document.document import Document
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.registry import Registry
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.ids import ContextId
from antiphon_kernel.types.records import BlockHeader
from tests.bench.figures import Figure, arguments, figure, print_figures
from tests.bench.filled import Filled, acts, cpu_microseconds, filled, long_history, many_blocks

PYCRDT: Final = "plain pycrdt"
KB, MB = 1_000, 1_000_000
FEW, MANY = 100, 10_000
TOKEN: Final = "word "
BATCH: Final = "fifty code points are what a flush writes at most."
BLOCK: Final = f"{'a' * 32}.{'b' * 32}.1"


def measure_appending() -> Iterator[Figure]:
    """50 characters at the end of a text, with somebody watching."""
    for size, name, budget in ((KB, "1 KB", 30), (100 * KB, "100 KB", 60), (MB, "1 MB", 80)):
        own, plain = [], []
        for _ in range(9):
            document, bare = _watched_document(size), _watched_text(size)
            own.append(_microseconds(partial(_append, document)))
            plain.append(_microseconds(partial(_append_plainly, bare)))
        title = f"append 50 characters, observed, block of {name}"
        yield figure(title, "us", own, baseline=plain, against=PYCRDT, budget=budget)


def _watched_document(size: int) -> Document:
    document = Document.create(1, context=ContextId("a" * 32), epoch="1" * 32, label="default")
    header = BlockHeader(
        id=BLOCK,
        kind=BlockKind.TEXT,
        role=Role.MODEL,
        status=Status.RUNNING,
        order="V",
        created="2026-01-01T00:00:00.000Z",
        author="b" * 32,
    )
    document.create_block(header)
    for start in range(0, size, len(BATCH) * 20):
        document.append(BLOCK, (BATCH * 20)[: size - start])
    document.watch(lambda _: None)
    return document


def _append(document: Document) -> None:
    with document.transaction("append"):
        document.append(BLOCK, BATCH)


def _watched_text(size: int) -> Text:
    doc: Doc[Any] = Doc(client_id=1)
    text = doc.get("text", type=Text)
    for start in range(0, size, len(BATCH) * 20):
        text += (BATCH * 20)[: size - start]
    text.observe(lambda event: event.delta)
    return text


def _append_plainly(text: Text) -> None:
    text += BATCH


def _microseconds(act: Callable[[], None], calls: int = 20) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        act()
    return (time.perf_counter() - began) / calls * 1e6


async def measure_streaming(folder: Path) -> AsyncIterator[Figure]:
    """Yield the cost of 1 MB that a model streams by token, alone and with a person typing."""
    for typing, state_budget in ((False, 1.05), (True, 1.5)):
        place = folder / f"typing-{typing}"
        place.mkdir()
        async with filled(place) as kernel:
            block = await kernel.block("")
            written = await _stream(kernel, block, MB, typing=typing)
            state = len(kernel.context.document.update_since())
        suffix = ", a person typing" if typing else ""
        name = f"encoded state / text, 1 MB streamed{suffix}"
        yield figure(name, "x", [state / written], budget=state_budget)
        if not typing:
            name = "journal / text, 1 MB streamed"
            yield figure(name, "x", [_ops_bytes(place) / written], budget=2.0)


async def _stream(kernel: Filled, block: str, size: int, *, typing: bool) -> int:
    """Stream `size` code points; how many there are in the end."""
    chance = random.Random(5)
    model = kernel.kernel.open_session(kernel.kernel.owner, "model")
    person = kernel.owner
    appends = kernel.context.appends
    document, length = kernel.context.document, 0
    for number in range(size // len(TOKEN)):
        appends.add(model, block, TOKEN)
        length += len(TOKEN)
        if typing and number % (200 // len(TOKEN)) == 0:
            appends.flush(block)
            at = chance.randrange(length + 1)
            typed = partial(document.splice, block, at, 0, "typed ")
            kernel.context.write(person, "splice", typed, blocks=[block])
            length += len("typed ")
        if number % 2_000 == 0:
            await kernel.context.wait_persisted()
    appends.flush(block)
    await kernel.context.wait_persisted()
    return length


def _ops_bytes(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "data" / "journal.db")) as database:
        [(size,)] = database.execute("SELECT SUM(pgsize) FROM dbstat WHERE name = 'ops'")
    return int(size)


async def measure_editing(folder: Path) -> Figure:
    """One line of 10,000, until the change is on disk; against one of 10."""
    async with filled(folder) as kernel:
        long = await kernel.block("".join(f"line {n} of many\n" for n in range(MANY)))
        short = await kernel.block("".join(f"line {n} of few\n" for n in range(10)))
        samples: dict[str, list[float]] = {long: [], short: []}
        chance = random.Random(7)
        for _ in range(60):
            for block, lines in ((long, MANY), (short, 10)):
                line = chance.randrange(lines)
                change = {"op": "replace", "start_line": line, "end_line": line + 1}
                began = time.perf_counter()
                await kernel.call(
                    "block.edit", block_id=block, operations=[{**change, "content": "changed"}]
                )
                samples[block].append((time.perf_counter() - began) * 1000)
    name = "block.edit in 10,000 lines, on disk"
    return figure(
        name, "ms", samples[long], baseline=samples[short], against="in 10 lines", budget=2
    )


async def measure_opening(folder: Path) -> Figure:
    """A context of 10,000 blocks and 10 MB, from the journal to where it can be read."""
    async with filled(folder) as full:
        await full.add_blocks(MANY, "x" * KB)
    samples = []
    for _ in range(5):
        kernel = await Kernel.open(folder / "data", folder, registry=Registry(()))
        began = time.perf_counter()
        context = await kernel.context()
        assert len(context.document.block_ids()) == MANY
        samples.append((time.perf_counter() - began) * 1000)
        await kernel.close()
    return figure("open a context of 10,000 blocks, 10 MB", "ms", samples, budget=300)


async def measure_undo(folder: Path) -> AsyncIterator[Figure]:
    """Yield the size of an undo item in the journal, and the time of an undo after a restart."""
    edits = 300
    async with filled(folder) as kernel:
        block = await kernel.block("start\n" * 50)
        for number in range(edits):
            await kernel.call("block.splice", block_id=block, offset=number, insert="ab")
    with closing(sqlite3.connect(folder / "data" / "journal.db")) as database:
        [(size,)] = database.execute("SELECT SUM(payload) FROM dbstat WHERE name = 'undo'")
    yield figure("an undo item kept", "B", [size / edits], budget=1000)
    async with filled(folder) as kernel:
        for _ in range(edits):
            await kernel.call("block.undo", block_id=block)
        text = (await kernel.call("block.read", block_id=block))["content"]
    lost = 0 if text == "start\n" * 50 else 1
    yield figure(f"undo items lost by a restart, of {edits}", "", [lost], budget=0)


async def measure_growth(folder: Path) -> AsyncIterator[Figure]:
    """Processor time of a call with 100 and with 10,000 blocks, and versions of the block."""
    for what, fill in (("blocks", many_blocks), ("versions", long_history)):
        costs: dict[str, dict[int, Sequence[float]]] = {}
        for size in (FEW, MANY):
            place = folder / f"{what}-{size}"
            place.mkdir()
            async with filled(place) as kernel:
                block = await fill(kernel, size)
                for name, act in acts(kernel, block):
                    costs.setdefault(name, {})[size] = await cpu_microseconds(act)
        for name, by_size in costs.items():
            few, many = by_size[FEW], by_size[MANY]
            ratio = statistics.median(many) / statistics.median(few)
            yield figure(f"{name}: cost at 10,000 {what} / at 100", "x", [ratio], budget=1.5)


async def measure_million(folder: Path) -> Figure:
    """Processor time of an acknowledged call behind 1,000,000 operations, and behind 1,000."""
    costs: list[float] = []
    async with filled(folder) as kernel:
        blocks = [await kernel.block("") for _ in range(16)]

        async def append(count: int) -> None:
            for number in range(count):
                block = blocks[number % len(blocks)]
                await kernel.call("block.append", block_id=block, text="a")

        for behind in (KB, MB):
            await asyncio.gather(*(append((behind - kernel.context.seq) // 20) for _ in range(20)))
            before = time.process_time()
            await asyncio.gather(*(append(250) for _ in range(20)))
            costs.append((time.process_time() - before) / 5_000)
    name = "a call: cost at 1,000,000 operations / at 1,000"
    return figure(name, "x", [costs[1] / costs[0]], budget=1.5)


async def measure_first_update(folder: Path) -> Figure:
    """The first raw update after a start among 10,000 blocks, and the second."""
    samples: tuple[list[float], list[float]] = ([], [])
    async with filled(folder) as full:
        block = (await full.add_blocks(MANY, "x" * 200))[0]
        await full.context.structure.read()
    for client in range(5_000, 5_005):
        async with filled(folder) as kernel:
            writer = Document(client)
            writer.apply_update(kernel.context.document.update_since())
            for took in samples:
                with writer.transaction("typing") as typed:
                    writer.splice(block, 0, 0, "x")
                assert typed.update is not None
                began = time.process_time()
                await apply_update(kernel.context, kernel.owner, typed.update, "bench")
                took.append((time.process_time() - began) * 1_000)
    name = "first raw update after a start, 10,000 blocks"
    return figure(name, "ms", samples[0], baseline=samples[1], against="the second", budget=200)


async def measure(*, is_long: bool = False) -> AsyncGenerator[Figure, None]:
    """Every figure, as soon as it is known."""
    with tempfile.TemporaryDirectory(prefix="antiphon-bench-") as name:
        folder = Path(name)

        def fresh(place: str) -> Path:
            (folder / place).mkdir()
            return folder / place

        for one in measure_appending():
            yield one
        async for one in measure_streaming(fresh("streaming")):
            yield one
        yield await measure_editing(fresh("editing"))
        yield await measure_opening(fresh("opening"))
        async for one in measure_undo(fresh("undo")):
            yield one
        yield await measure_first_update(fresh("first"))
        async for one in measure_growth(fresh("growth")):
            yield one
        if is_long:
            yield await measure_million(fresh("million"))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--long", action="store_true", help="a million operations too: minutes")
    options = parser.parse_args()

    async def run() -> None:
        async with aclosing(measure(is_long=options.long)) as figures:
            async for one in figures:
                print_figures([one], as_json=options.json)

    asyncio.run(run())


if __name__ == "__main__":
    main()
