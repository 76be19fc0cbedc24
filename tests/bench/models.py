"""Cost of a request to a model in the kernel: reading a context, cutting it, appending to it.

    antiphon bench models [--json]

Each figure is processor time in a context of 1,000 and of 10,000 messages, two fifths of them calls
and results. That of a turn, from its submission until the model has the first request, is for
10 and 10,000. Seeing what a fork has changed in 100 messages, and merging it, are apart: neither
has read before what the other needs.

Before them, the cost of models that are asked through their libraries: four that stream, and one
that is idle; and of an agent over ACP that streams, beside a model that sends the same text. The
kernel and the server of the models are processes of their own, apart from each other. Then the
cost of a tool call over MCP beside the same one over a WebSocket.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.replica import Replica
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.providers.events import End, TextDelta, TurnEvent
from antiphon_kernel.providers.model_config import ModelKind
from antiphon_kernel.providers.opening import open_provider, packaged_model
from antiphon_kernel.providers.provider import RoundRequest
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.turns import TurnRunner
from antiphon_kernel.turns.models import Models
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.records import Actor
from tests.bench.fanout.comparison import serving
from tests.bench.figures import Figure, arguments, figure, print_figures
from tests.bench.mcp_calls import measured_calls
from tests.kernel.turns.stage import wait_read
from tests.local_model import local_servers
from tests.processes import cpu_seconds, memory_of
from tests.waiting import until
from tests.wire.answering import PIECE, Said, answer
from tests.wire.asking import MODELS, ask, config_at, prompt_of
from tests.wire.server import FORMATS, WireAnswer, WireRequest, WireServer

RATE: Final = 100
"""Events a second of each model; each is one token or more."""
SECONDS: Final = 4.0
SPARE: Final = 8.0
"""Seconds for which the models stream before and after what is measured_streams."""
IDLE: Final = 40
STREAMED: Final = "x" * (PIECE - 1) + " "


def config_of(server: WireServer) -> str:
    """Return a configuration with a model of each format, named as its kind."""
    tables = ["[discovery]\nenvironment = false\nlocal_ports = []"]
    for kind in FORMATS:
        tables.append(
            f'[models.{kind}]\nkind = "{kind}"\nmodel = "{MODELS[kind]}"\ntools = []\n'
            f'base_url = "{server.base_url(kind)}"\nkey_env = "ANTIPHON_BENCH_KEY"'
        )
    return "\n\n".join(tables)


def paced_answer(request: WireRequest) -> WireAnswer:
    assert request.kind is not None
    events = round(RATE * (SECONDS + SPARE))
    return answer(request.kind, Said(STREAMED * events)).paced(RATE)


async def streaming_cpu(folder: Path) -> float:
    """Return how much of a processor the kernel takes while four models stream, in percent."""
    async with WireServer() as server:
        server.reply = paced_answer
        with kernel_process(folder, config_of(server)) as (address, process):
            return await watched_cpu(address, process)


@contextmanager
def kernel_process(folder: Path, config: str) -> Iterator[tuple[KernelAddress, int]]:
    """A kernel in a process of its own, with this configuration; its address, and its id."""
    path = folder / "config" / "antiphon" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(config, "utf-8")
    command = ["env", "ANTIPHON_BENCH_KEY=secret", f"XDG_CONFIG_HOME={folder / 'config'}"]
    command += [f"XDG_STATE_HOME={folder / 'state'}", sys.executable, "-m", "antiphon_kernel"]
    command += ["serve", "--json", "--data", str(folder / "data"), "--project", str(folder)]
    with serving(*command) as (said, process):
        yield KernelAddress.model_validate(said), process


AGENT_PROGRAM: Final = Path(__file__).parents[1] / "kernel" / "agents" / "scripted_agent.py"
CHUNKS: Final = 2_000
"""Tokens or chunks of one answer."""
AGENT: Final = "bot"


async def chunk_cpu(folder: Path, runs: int) -> tuple[list[float], list[float]]:
    """Return the microseconds of the kernel for a chunk of an agent, and for a token of a model."""
    kind, took = FORMATS[0], dict[str, list[float]]()
    script = folder / "script.json"
    script.write_text(json.dumps({"session/prompt": [[{"say": STREAMED}] * CHUNKS]}), "utf-8")
    agent = [sys.executable, "-SE", str(AGENT_PROGRAM), str(script)]
    async with WireServer() as server:
        server.reply = lambda _: answer(kind, Said(STREAMED * CHUNKS))
        config = f"{config_of(server)}\n\n[agents.{AGENT}]\ncommand = {json.dumps(agent)}"
        with kernel_process(folder, config) as (address, process):
            calls = ToolClient(lambda: address)
            for number in range(runs + 1):
                for name in (AGENT, kind):
                    said = {"role": "user", "kind": "text", "status": "done"}
                    said |= {"content": f"@{name} Go on."}
                    before = cpu_seconds(process)
                    block = (await calls.call("block.create", said))["block_id"]
                    ended = await calls.call("turn.wait", {"message": block})
                    used = (cpu_seconds(process) - before) / CHUNKS * 1e6
                    assert len(ended["models"]) == 1, ended
                    if number:  # the first one imports what it takes
                        took.setdefault(name, []).append(used)
            await calls.close()
    return took[AGENT], took[kind]


async def watched_cpu(address: KernelAddress, process: int) -> float:
    replica, calls = Replica(lambda: address), ToolClient(lambda: address)
    running = asyncio.create_task(replica.run())

    def streams() -> int:
        document = replica.document
        return sum(
            header.role == Role.MODEL and header.status == Status.RUNNING
            for header in map(document.header, document.block_ids())
        )

    try:
        names = " ".join(f"@{kind}" for kind in FORMATS)
        said = {"role": "user", "kind": "text", "content": f"{names} Go on."}
        block = (await calls.call("block.create", said))["block_id"]
        await calls.call("block.status", {"block_id": block, "status": "done"})
        await until(lambda: streams() == len(FORMATS), "four models that stream")
        before = cpu_seconds(process)
        await asyncio.sleep(SECONDS)
        used = cpu_seconds(process) - before
        assert streams() == len(FORMATS), "a model was done before the end"
        return used / SECONDS * 100
    finally:
        await replica.close()
        await running
        await calls.close()


async def idle_bytes() -> float:
    """Return the memory that a model takes that has been asked once, its library aside."""
    async with WireServer() as server, AsyncExitStack() as stack:
        server.reply = lambda request: answer(request.kind or FORMATS[0], Said("Well."))

        async def ask_one(number: int) -> None:
            provider = open_provider(config_at(server, FORMATS[number % len(FORMATS)]))
            stack.push_async_callback(provider.close)
            await ask(provider, prompt_of())

        for number in range(len(FORMATS)):
            await ask_one(number)
        gc.collect()
        before = memory_of()
        for number in range(IDLE):
            await ask_one(number)
        gc.collect()
        return (memory_of() - before) / IDLE


async def local_bytes() -> float | None:
    """Return the memory of the server of the small local model; None where it is not installed."""
    try:
        provider = open_provider(packaged_model())
    except AntiphonError:
        return None
    try:
        await ask(provider, prompt_of(tools=(), max_tokens=1))
        return sum(memory_of(server) for server in local_servers(os.getpid()))
    finally:
        await provider.close()


def measured_streams(folder: Path, runs: int) -> Iterator[Figure]:
    yield figure("memory of an idle model", "KB", [asyncio.run(idle_bytes()) / 1024])
    local = asyncio.run(local_bytes())
    if local is not None:
        yield figure("memory of the server of an idle local model", "MB", [local / 2**20])
    name = f"CPU of the kernel, four models at {RATE} tokens/s each"
    yield figure(name, "%", [asyncio.run(streaming_cpu(folder / "models"))])
    place = folder / "agent"
    place.mkdir(parents=True)
    chunk, token = asyncio.run(chunk_cpu(place, runs))
    yield figure(
        "CPU of the kernel for a streamed chunk of an agent over ACP",
        "µs",
        chunk,
        baseline=token,
        against="a streamed token of a model",
    )


SIZES: Final = (1_000, 10_000)
TURN_SIZES: Final = (10, 10_000)
TURN_BUDGETS: Final = (50, 150)
"""Milliseconds from a submission to the first request, at each of these sizes."""
OPENING_BUDGET: Final = 300
"""Milliseconds to open a context of the larger size."""
STARTS: Final = 5
"""How often the kernel is started for the first turns."""
FIRST: Final = "submission to the first request of a script"
LATER: Final = "submission to the first request of a later turn"
OPENING: Final = "opening and submission at once to the first request"
ROUNDS_AT_ONCE: Final = 200
PREVIEW: Final = "preview of a merge of 100 changes"
MERGE: Final = "merge of 100 changes"
DRIFT_BUDGETS: Final = {PREVIEW: 500, MERGE: 300}
"""Milliseconds, in a context of the larger size."""
CHANGES: Final = 100
BUDGET: Final = 20_000
"""Tokens that a compaction leaves."""
SAID: Final = "The quick brown fox jumps over the lazy dog. " * 8


def round_of(number: int) -> list[dict[str, Any]]:
    """Five messages: a question, a call with its result, and what was said before and after."""
    use = {"type": "tool-use", "id": f"c{number}", "name": "shell", "parameters": {"n": number}}
    return [
        {"role": "user", "content": f"{number} {SAID}"},
        {"role": "assistant", "content": f"first {number} {SAID}"},
        {"role": "assistant", "content": [use]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": f"{number} {SAID}"},
        {"role": "assistant", "content": f"then {number} {SAID}"},
    ]


class ReadingProvider:
    """A model that notes when it has its prompt, and says a word."""

    def __init__(self) -> None:
        self.asked = 0.0

    async def stream(self, request: RoundRequest) -> AsyncGenerator[TurnEvent, None]:
        self.asked = time.process_time()
        yield TextDelta("Well.")
        yield End("end_turn")


async def fill(folder: Path, size: int, model: str | None = None) -> str:
    """Write a context of so many messages and close it again; return the id of the last one.

    Args:
        model: the one that has given the answers; they are somebody else's if absent.
    """
    kernel = await opened(folder)
    runner = TurnRunner(kernel, Models({model: ReadingProvider()} if model else {}))
    me = kernel.open_session(kernel.owner, "bench")
    answering = kernel.open_session(await runner.principal(model), "bench") if model else me
    parent: dict[str, str] = {}
    for begin in range(0, size // 5, ROUNDS_AT_ONCE):
        rounds = range(begin, min(begin + ROUNDS_AT_ONCE, size // 5))
        messages = [one for number in rounds for one in round_of(number)]
        for is_asked, said in groupby(messages, lambda one: bool(one["role"] == "user")):
            writer = me if is_asked else answering
            made = await kernel.call(writer, "message.append", {"messages": list(said), **parent})
            parent = {"parent": str(made["message_id"])}
    await runner.close()
    await kernel.close()
    return parent["parent"]


async def measure_turns(folder: Path, size: int, runs: int) -> dict[str, list[float]]:
    """Milliseconds of processor time from a submission to the first request of its turn.

    A script sends its message when the kernel has read what it opened. If it sends it at once,
    the opening counts as well, since nobody has waited for it.
    """
    await fill(folder, size, "aria")
    took: dict[str, list[float]] = {OPENING: [], FIRST: [], LATER: []}
    for waits in (False, True) * STARTS:
        kernel, provider = await opened(folder), ReadingProvider()
        runner = TurnRunner(kernel, Models({"aria": provider}))
        me = kernel.open_session(kernel.owner, "bench")
        began = time.process_time()
        await kernel.context()
        opening = (time.process_time() - began) * 1e3
        if waits:
            await wait_read()
        first = await submit(kernel, me, runner, provider)
        took[FIRST if waits else OPENING].append(first if waits else opening + first)
        if len(took[LATER]) < runs:
            took[LATER] = [await submit(kernel, me, runner, provider) for _ in range(runs)]
        await runner.close()
        await kernel.close()
    return took


async def measure_wire(folder: Path, size: int, runs: int) -> dict[str, list[float]]:
    """Milliseconds of processor time until the head of the request is at a server, of later turns.

    The whole request is built before any of it is sent.
    """
    await fill(folder, size, "aria")
    return {
        f"submission to its request on the wire, {kind}": await measure_kind(folder, kind, runs)
        for kind in FORMATS
    }


async def measure_kind(folder: Path, kind: ModelKind, runs: int) -> list[float]:
    kernel, asked = await opened(folder), ReadingProvider()

    def arriving() -> None:
        asked.asked = time.process_time()

    async with WireServer() as server:
        server.arriving, server.reply = arriving, lambda _: answer(kind, Said("Well."))
        runner = TurnRunner(kernel, Models({"aria": open_provider(config_at(server, kind))}))
        me = kernel.open_session(kernel.owner, "bench")
        await kernel.context()
        took = [await submit(kernel, me, runner, asked) for _ in range(runs + 1)]
        await runner.close()
        await runner.models.close()
    await kernel.close()
    return took[1:]


async def submit(kernel: Kernel, me: Actor, runner: TurnRunner, provider: ReadingProvider) -> float:
    said = {"role": "user", "kind": "text", "content": SAID}
    draft = await kernel.call(me, "block.create", said)
    began = time.process_time()
    await kernel.call(me, "block.status", {"block_id": draft["block_id"], "status": "done"})
    await runner.wait_idle()
    return (provider.asked - began) * 1e3


async def measure(folder: Path, size: int, runs: int) -> dict[str, list[float]]:
    """Milliseconds of processor time by figure."""
    took: dict[str, list[float]] = {}
    last = await fill(folder, size)
    kernel = await opened(folder)
    me = kernel.open_session(kernel.owner, "bench")

    async def call(name: str, tool: str, params: dict[str, Any]) -> dict[str, Any]:
        began = time.process_time()
        answer = await kernel.call(me, tool, params)
        took.setdefault(name, []).append((time.process_time() - began) * 1e3)
        return answer

    async def go_on(last: str, number: int) -> str:
        more = {"parent": last, "messages": round_of(number)}
        return str((await kernel.call(me, "message.append", more))["message_id"])

    await call("first reading", "context.usage", {})
    for number in range(runs):
        again = {"parent": last, "messages": round_of(size + number)}
        last = await go_on(last, size + number)
        await call("append of a round that is there", "message.append", again)
        await call("reading after one more round", "context.usage", {})
    await call("first compaction", "context.compact", {"budget": BUDGET})
    for number in range(runs):
        last = await go_on(last, 2 * size + number)
        await call("reading after one more round, compacted", "context.usage", {})
    await kernel.close()
    return took


async def measure_drifts(folder: Path, size: int, runs: int) -> dict[str, list[float]]:
    """Milliseconds of processor time to see what a fork has changed, and to merge it.

    Parent and fork have changed the same blocks, in different words. Both are open, and of what
    they were before nothing has been read.
    """
    await fill(folder, size)
    took: dict[str, list[float]] = {PREVIEW: [], MERGE: []}
    for number in range(runs):
        kernel = await opened(folder)
        me = kernel.open_session(kernel.owner, "bench")
        made = await kernel.call(me, "context.fork", {"context": "default"})
        parent, fork = await kernel.context(), await kernel.context(made["context_id"])
        for context, word in ((parent, "fox"), (fork, "dog")):
            texts = said_in(context)
            for block in texts[number :: len(texts) // CHANGES][:CHANGES]:
                offset = context.document.text(block).index(word)
                edit = {"block_id": block, "offset": offset, "delete_count": len(word)}
                await kernel.call(me, "block.splice", {**edit, "insert": f"{word}es"})
        await kernel.close()
        for name, tool, said in (
            (PREVIEW, "drift.preview", "changes"),
            (MERGE, "drift.merge", "changed"),
        ):
            kernel = await opened(folder)
            me = kernel.open_session(kernel.owner, "bench")
            for one in (parent, fork):
                await kernel.context(one.id)
            await wait_read()
            gc.collect()
            gc.freeze()  # as the daemon does
            began = time.process_time()
            answer = await kernel.call(me, tool, {"source": fork.id})
            took[name].append((time.process_time() - began) * 1e3)
            gc.unfreeze()
            assert len(answer[said]) == CHANGES, f"{len(answer[said])} blocks"
            await kernel.close()
    return took


def said_in(context: Context) -> list[str]:
    """The texts of a context."""
    headers = context.document.headers(context.document.block_ids())
    return [one.id for one in headers if one.kind == BlockKind.TEXT]


async def opened(folder: Path) -> Kernel:
    return await Kernel.open(folder, folder.parent, registry=Registry(KERNEL_TOOLS))


def against_few(short: dict[str, list[float]], long: dict[str, list[float]]) -> Iterator[Figure]:
    """Yield each figure of a short and of a long context, within its budget."""
    for name, samples in long.items():
        few, many = (f"{size:,} messages" for size in TURN_SIZES)
        opening = OPENING_BUDGET if name == OPENING else 0
        yield figure(f"{name}, {few}", "ms", short[name], budget=TURN_BUDGETS[0])
        yield figure(
            f"{name}, {many}",
            "ms",
            samples,
            baseline=short[name],
            budget=TURN_BUDGETS[1] + opening,
            against=few,
        )


def measured(folder: Path, runs: int) -> Iterator[Figure]:
    yield from measured_streams(folder / "streams", runs)
    yield from measured_calls(folder / "mcp")
    for what in (measure_turns, measure_wire):
        places = [(folder / f"{what.__name__}-{size}", size) for size in TURN_SIZES]
        short, long = (asyncio.run(what(place, size, runs)) for place, size in places)
        yield from against_few(short, long)
    places = [(folder / f"drifts-{size}", size) for size in SIZES]
    few, many = (asyncio.run(measure_drifts(place, size, runs)) for place, size in places)
    for name, budget in DRIFT_BUDGETS.items():
        yield figure(
            f"{name}, {SIZES[1]:,} messages",
            "ms",
            many[name],
            baseline=few[name],
            against=f"{SIZES[0]:,} messages",
            budget=budget,
        )
    once, ten_times = (asyncio.run(measure(folder / str(size), size, runs)) for size in SIZES)
    for name, samples in ten_times.items():
        yield figure(
            f"{name}, {SIZES[1]:,} messages",
            "ms",
            samples,
            baseline=once[name],
            against=f"{SIZES[0]:,} messages",
        )


def main() -> None:
    """Measure everything and print it."""
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, default=5, help="runs per figure")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="antiphon-bench-") as name:
        print_figures(measured(Path(name), options.runs), as_json=options.json)


if __name__ == "__main__":
    main()
