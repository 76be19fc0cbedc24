"""The kernel in a process of its own: calls, fan-out, the check of raw updates, memory, start.

    antiphon bench kernel [--json] [--quick] [--modules FOLDER]

Other servers get the same loads in the same run where node is there: see fanout/comparison.py.
Their packages come from `--modules`, a folder with `node_modules`, or are installed for the run.
Updates and calls per second: more is better.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from websockets.asyncio.client import connect

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.contexts import apply_update
from antiphon_kernel.document.document import Document
from antiphon_kernel.limits import DEFAULT_LIMITS
from antiphon_kernel.turns.block_writer import BlockWriter
from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Status
from antiphon_kernel.validation import UpdateScope, validate
from antiphon_kernel.yjs.frames import SyncStep1, encode_frame
from tests.bench.fanout.comparison import PACKAGES, compare, serving_antiphon
from tests.bench.figures import Figure, arguments, figure, print_figures
from tests.bench.filled import filled
from tests.processes import cpu_seconds, memory_of

FOLDER: Final = Path(__file__).parent
IDLE: Final = 200
CALLERS: Final = 20
USED: Final = 10
"""Contexts that stay open while the others are closed."""
TEXT: Final = "The two of them write in turn. " * 7


# Calls


async def make_calls(said: dict[str, Any], callers: int, seconds: float) -> tuple[int, float]:
    """Appends that are acknowledged, each caller waiting for its answer; and how long it took."""
    http = f"http://127.0.0.1:{said['port']}"
    address = KernelAddress(pid=0, kernel="", sync="", http=http, token=said["token"])
    _, block = said["rooms"][0]
    end = time.perf_counter() + seconds
    done = 0

    async def call() -> None:
        nonlocal done
        calls = ToolClient(lambda: address)
        while time.perf_counter() < end:
            await calls.call("block.append", {"block_id": block, "text": "x"})
            done += 1
        await calls.close()

    start = time.perf_counter()
    await asyncio.gather(*(call() for _ in range(callers)))
    return done, time.perf_counter() - start


async def idle_connection_bytes(said: dict[str, Any], process: int) -> float:
    label, _ = said["rooms"][0]
    url = f"ws://127.0.0.1:{said['port']}/sync/{label}?token={said['token']}"

    async def crowd() -> list[Any]:
        sockets = [await connect(url, compression=None) for _ in range(IDLE)]
        for socket in sockets:
            await socket.send(encode_frame(SyncStep1(b"\x00")))
            await socket.recv()
        return sockets

    before = memory_of(process)
    sockets = await crowd()
    grown = memory_of(process) - before
    await asyncio.gather(*(socket.close() for socket in sockets))
    return grown / IDLE


def measure_calls(folder: Path, runs: int) -> Iterator[Figure]:
    with serving_antiphon(folder, 1) as (said, process):
        yield figure(
            "memory of an idle connection",
            "KB",
            [asyncio.run(idle_connection_bytes(said, process)) / 1024],
            budget=200,
        )
        crowd = f"{CALLERS} callers"
        for callers, name, budget in ((1, "one caller", 500), (CALLERS, crowd, 5_000)):
            rates, costs = [], []
            for _ in range(runs):
                before = cpu_seconds(process)
                done, seconds = asyncio.run(make_calls(said, callers, 1.0))
                rates.append(done / seconds)
                costs.append((cpu_seconds(process) - before) / done * 1e6)
            yield figure(f"acknowledged calls, {name}", "/s", rates, at_least=budget)
            yield figure(f"processor time of the kernel for a call, {name}", "us", costs)


@contextmanager
def node_modules(given: Path | None, folder: Path) -> Iterator[Path | None]:
    """A folder with the packages of the others; None where they cannot be had."""
    if given is not None:
        yield given
        return
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        yield None
        return
    folder.mkdir()
    command = [npm, "install", "--no-audit", "--no-fund", *PACKAGES]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=180)
    yield folder if done.returncode == 0 else None


# Inside this process


async def check_microseconds(folder: Path) -> list[float]:
    """Return the microseconds of deciding about one keystroke of a client."""
    writer, took = Document(4711), []
    updates: list[bytes] = []
    async with filled(folder) as kernel:
        context, me = kernel.context, kernel.owner
        block = await kernel.block("word " * 200)
        writer.apply_update(context.document.update_since())
        writer.watch_updates(lambda update, _: updates.append(update))
        for number in range(2_000):
            writer.splice(block, number * 13 % 900, 0, "x")
        owners = {writer.client_id: me.principal.id}
        for update in updates:
            item_index = context.structure.item_index
            start = time.perf_counter()
            scope = UpdateScope(context.document, me, owners, item_index, DEFAULT_LIMITS)
            validate(scope, update)
            took.append((time.perf_counter() - start) * 1e6)
            await apply_update(context, me, update, "bench")
    return took


async def streaming_figure(folder: Path, runs: int, tokens: int = 2_000) -> Figure:
    """Return the cost of a model's token, beside the same as a call of the tool."""
    streamed, called = [], []
    async with filled(folder) as full:
        kernel, [prompt] = full.kernel, await full.add_blocks(1, "Write.")
        model = kernel.open_session(await kernel.principal("aria", PrincipalKind.MODEL), "bench")
        writer = BlockWriter(kernel, full.context, model)

        async def call(block: str, text: str) -> None:
            params = {"block_id": block, "text": text, "stream": True}
            await kernel.call(model, "block.append", params)

        async def measure(append: Callable[[str, str], Awaitable[None]]) -> float:
            block = await writer.create(BlockKind.TEXT, prompt)
            start = time.perf_counter()
            for _ in range(tokens):
                await append(block, "word ")
            took = time.perf_counter() - start
            await writer.finish(block, Status.DONE)
            return took / tokens * 1e6

        for _ in range(runs):
            streamed.append(await measure(writer.append))
            called.append(await measure(call))
    name, against = "a token of a model, streamed in the kernel", "block.append"
    return figure(name, "us", streamed, baseline=called, against=against)


async def forking_milliseconds(folder: Path) -> list[float]:
    """Return the milliseconds of forking 1,000 blocks, each written by a transaction of its own."""
    took = []
    async with filled(folder) as kernel:
        for _ in range(10):
            await asyncio.gather(*(kernel.block(TEXT) for _ in range(100)))
        for _ in range(10):
            start = time.perf_counter()
            await kernel.call("context.fork", context="default")
            took.append((time.perf_counter() - start) * 1e3)
    return took


async def appending_milliseconds(folder: Path) -> list[float]:
    """Return the milliseconds of appending messages that are there, below 1,000 others."""
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": f"{at}: {TEXT}"} for at in range(1_004)]
    took = []
    async with filled(folder) as kernel:
        placed = await kernel.call("message.append", messages=messages[:1_000])
        parent, new = placed["message_id"], messages[1_000:]
        for _ in range(50):
            start = time.perf_counter()
            await kernel.call("message.append", parent=parent, messages=new)
            took.append((time.perf_counter() - start) * 1e3)
    return took[1:]


def measure_contexts(folder: Path, contexts: int) -> Iterator[Figure]:
    module = (sys.executable, "-m", "tests.bench.kernel_contexts")
    root = FOLDER.parents[1]
    folder.mkdir()
    subprocess.run([*module, "make", str(folder), str(contexts), "1000"], check=True, cwd=root)
    starts, opening, grown = [], [], []
    for _ in range(5):
        done = subprocess.run(
            [*module, "open", str(folder), "5"], check=True, capture_output=True, cwd=root
        )
        answer = json.loads(done.stdout)
        starts.append(answer["start"] * 1e3)
        opening += [one * 1e3 for one in answer["opening"]]
        grown.append(answer["bytes"] / 2**20)
    yield figure(f"kernel start with {contexts} contexts", "ms", starts, budget=500)
    # 300 ms are allowed for one of 10,000 blocks.
    yield figure("opening a context of 1,000 blocks", "ms", opening, budget=30)
    yield figure(
        "memory of an open context of 1,000 blocks", "MB", [statistics.median(grown)], budget=8
    )
    command = [*module, "use", str(folder), str(contexts), str(USED)]
    done = subprocess.run(command, check=True, capture_output=True, cwd=root)
    memory = {name: size / 2**20 for name, size in json.loads(done.stdout).items()}
    name = f"memory of {contexts} contexts that were opened, {USED} of them in use"
    yield figure(name, "MB", [memory["used"]], baseline=[memory["all"]], against="all open")


def main() -> None:
    """Measure everything and print it."""
    parser = arguments(__doc__)
    parser.add_argument("--modules", type=Path, help="a folder with the packages of the others")
    parser.add_argument("--runs", type=int, help="runs per figure; 3, or 1 with --quick")
    parser.add_argument("--contexts", type=int, default=100)
    parser.add_argument("--quick", action="store_true", help="one short run, 10 readers")
    options = parser.parse_args()
    as_json, quick = options.json, options.quick
    runs = options.runs or (1 if quick else 3)
    with tempfile.TemporaryDirectory(prefix="antiphon-bench-") as name:
        folder = Path(name)
        (folder / "fanout").mkdir()
        with node_modules(options.modules, folder / "node") as modules:
            if modules is None:
                print("no other servers: node, npm or a package is missing", file=sys.stderr)
            else:
                compared = compare(folder / "fanout", modules, runs, quick=quick)
                print_figures(compared, as_json=as_json)
        print_figures(measure_alone(folder, runs, options.contexts), as_json=as_json)


def measure_alone(folder: Path, runs: int, contexts: int) -> Iterator[Figure]:
    """Measure what has no counterpart elsewhere."""
    took = asyncio.run(check_microseconds(folder / "check"))
    yield figure("check of a raw update", "us", took, budget=50)
    yield asyncio.run(streaming_figure(folder / "stream", 3 * runs))
    yield from measure_calls(folder / "calls", runs)
    forks = asyncio.run(forking_milliseconds(folder / "forks"))
    yield figure("a fork of 1,000 blocks", "ms", forks, budget=50)
    reused = asyncio.run(appending_milliseconds(folder / "messages"))
    name = "append of 4 messages that are there, at depth 1,000"
    yield figure(name, "ms", reused, budget=5)
    yield from measure_contexts(folder / "contexts", contexts)


if __name__ == "__main__":
    main()
