"""A stage for turns: scripted models held by a gate, and ways to look at what they wrote.

Also for calls that people are asked about.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pycrdt import Doc, Map

from antiphon_kernel.config import KernelConfig
from antiphon_kernel.contexts import Context, apply_update
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.mcp_servers import McpServerConfig
from antiphon_kernel.messages import dump_message
from antiphon_kernel.providers import (
    End,
    ModelConfig,
    ModelKind,
    ModelPrompt,
    PermissionPolicy,
    Provider,
    RoundRequest,
    TextDelta,
)
from antiphon_kernel.providers.events import ToolCallEvent, TurnEvent
from antiphon_kernel.providers.model_config import ALLOW_EVERYTHING
from antiphon_kernel.providers.recording import RecordedStep, Recording, ScriptedProvider
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.turns import TURN_TOOLS, TurnRunner
from antiphon_kernel.turns.asker import Asker
from antiphon_kernel.turns.block_writer import BlockWriter
from antiphon_kernel.turns.models import Models
from antiphon_kernel.turns.permission import PermissionRequest
from antiphon_kernel.turns.turn import TurnSettings
from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Status
from antiphon_kernel.types.frozen_json import JsonObject
from antiphon_kernel.types.records import Actor, BlockHeader
from antiphon_kernel.types.roles import AccessRole, Permission
from tests.kernel.founding import copy_founded
from tests.waiting import until

DONE = (TextDelta("Done."), End("end_turn"))


def call(tool: str, call_id: str = "c1", /, **arguments: Any) -> ToolCallEvent:
    return ToolCallEvent(call_id, tool, arguments)


async def open_kernel(folder: Path, **options: Any) -> Kernel:
    """A kernel of amy's with every tool."""
    folder.mkdir(exist_ok=True)
    tools = Registry((*KERNEL_TOOLS, *TURN_TOOLS))
    if options.get("store") is None:
        copy_founded(folder / "data")
    return await Kernel.open(folder / "data", folder, registry=tools, owner="amy", **options)


async def wait_read() -> None:
    """Wait until the contexts that have been opened are read for the first turn in each."""
    while reading := [one for one in asyncio.all_tasks() if one.get_name().startswith("reading ")]:
        await asyncio.wait(reading)


class Gate:
    """A sleep for scripted models: lets so many events through, and says when it holds one."""

    def __init__(self, events: float = math.inf) -> None:
        self.left = events
        self._moved = asyncio.Condition()
        self.held = 0

    async def __call__(self, seconds: float) -> None:
        async with self._moved:
            self.held += 1
            self._moved.notify_all()
            try:
                await self._moved.wait_for(lambda: self.left > 0)
            finally:
                self.held -= 1
            self.left -= 1
        await asyncio.sleep(0)

    async def open(self, events: float = math.inf) -> None:
        async with self._moved:
            self.left += events
            self._moved.notify_all()

    async def shut(self) -> None:
        """Wait until an event is held back."""
        async with self._moved:
            await self._moved.wait_for(lambda: self.held > 0 and self.left <= 0)


def recording(model: str, *rounds: Sequence[TurnEvent]) -> Recording:
    steps = tuple(tuple(RecordedStep(10, event) for event in events) for events in rounds)
    return Recording(model, steps)


def scripted(gate: Gate, *recordings: Recording) -> Models:
    """Models that play `recordings` when `gate` lets them."""
    by_model: dict[str, list[Recording]] = {}
    for one in recordings:
        by_model.setdefault(one.model, []).append(one)
    return Models({m: ScriptedProvider(many, sleep=gate) for m, many in by_model.items()})


Reply = Sequence[TurnEvent | Callable[[], Awaitable[object]]]


class Replying:
    """A remote provider that gives one reply to each request, and the last one to all others.

    What is callable in a reply is awaited in its place.
    """

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.requests: list[RoundRequest] = []
        self.prompts: list[ModelPrompt] = []

    async def stream(self, request: RoundRequest) -> AsyncGenerator[TurnEvent, None]:
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        self.requests.append(request)
        self.prompts.append(request.prompt)
        for event in reply:
            if callable(event):
                await event()
            else:
                yield event

    def then(self, *replies: Reply) -> None:
        """Give these replies next."""
        self.replies = list(replies)

    async def payload(self, prompt: ModelPrompt) -> JsonObject:
        messages = [dump_message(one) for one in prompt.conversation.messages]
        return JsonObject({"system": prompt.system, "messages": messages})

    async def close(self) -> None:
        pass


def remote(
    provider: Provider,
    policy: PermissionPolicy = ALLOW_EVERYTHING,
    *,
    name: str = "aria",
    mcp: Sequence[McpServerConfig] = (),
    **config: Any,
) -> Models:
    """A model which `provider` answers for, and whose calls are decided by `policy`."""
    fields = {"kind": ModelKind.OPENAI_CHAT, "model": "aria-1", "permissions": policy, **config}
    configs = (ModelConfig(name, **fields),)
    return Models({name: provider}, config=KernelConfig(models=configs, mcp=tuple(mcp)))


class Stage:
    """A kernel, its default context, its owner, and what runs there."""

    def __init__(self, kernel: Kernel, context: Context, runner: TurnRunner) -> None:
        self.kernel = kernel
        self.context = context
        self.runner = runner
        self.owner = kernel.open_session(kernel.owner, "test")

    async def call(self, tool: str, /, **params: Any) -> dict[str, Any]:
        return await self.kernel.call(self.owner, tool, params)

    async def actor(self, name: str) -> Actor:
        return self.kernel.open_session(await self.kernel.principal(name), "test")

    async def draft(self, text: str, actor: Actor | None = None) -> str:
        created = await self.kernel.call(
            actor or self.owner, "block.create", {"role": "user", "kind": "text", "content": text}
        )
        return str(created["block_id"])

    async def submit(self, text: str, actor: Actor | None = None) -> str:
        block = await self.draft(text, actor)
        params = {"block_id": block, "status": "done"}
        await self.kernel.call(actor or self.owner, "block.status", params)
        return block

    async def play(self, text: str, actor: Actor | None = None) -> str:
        """Submit a message and wait until its turns are over."""
        block = await self.submit(text, actor)
        await self.runner.wait_idle()
        return block

    async def interrupt(self, **params: str) -> list[str]:
        return list((await self.call("turn.interrupt", **params))["stopped"])

    def headers(self) -> list[BlockHeader]:
        document = self.context.document
        return [document.header(block) for block in document.block_ids()]

    def text(self, block: str | BlockHeader) -> str:
        return self.context.document.text(block if isinstance(block, str) else block.id)

    def shown(self) -> list[tuple[str, str, str]]:
        return [(str(h.kind), str(h.status), self.text(h)) for h in self.headers()]

    def of_kind(self, kind: BlockKind) -> list[BlockHeader]:
        return [one for one in self.headers() if one.kind == kind]

    async def path(self, block: str) -> str:
        """The path by which models are shown a block."""
        items = (await self.call("context.layout"))["items"]
        return next(str(one["path"]) for one in items if one["block_id"] == block and "path" in one)

    def results(self) -> list[str]:
        return [self.text(one) for one in self.of_kind(BlockKind.TOOL_RESULT)]

    def unfinished(self) -> list[BlockHeader]:
        return [one for one in self.headers() if one.status in (Status.PENDING, Status.RUNNING)]


Sleep = Callable[[float], Awaitable[None]]


class OpenStage(Protocol):
    """Opens a kernel with these models; `sleep` is what the runner waits with."""

    async def __call__(
        self, models: Models, sleep: Sleep = ..., settings: TurnSettings | None = ...
    ) -> Stage: ...


async def replying(
    open_stage: OpenStage, *replies: Reply, settings: TurnSettings | None = None, **config: Any
) -> tuple[Stage, Replying]:
    """Open a stage with the model aria, which gives these replies."""
    provider = Replying(*replies)
    return await open_stage(remote(provider, **config), settings=settings), provider


MODEL = "aria"


@dataclass
class AskedCall:
    """A call, and the decision that is waited for."""

    block: str
    task: asyncio.Task[str | None]

    async def refusal(self) -> str | None:
        """Return why it may not run; None if it may."""
        return await asyncio.wait_for(self.task, 60)


class Asking:
    """A kernel with a model that asks, its owner amy, and whoever else a test needs."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.desk = stage.runner.permissions
        self._askers: list[Asker] = []

    async def model(self) -> Actor:
        kernel = self.stage.kernel
        principal = await kernel.principal(MODEL, PrincipalKind.MODEL)
        return kernel.open_session(principal, "turn")

    async def somebody(self, name: str, role: AccessRole) -> Actor:
        kernel = self.stage.kernel
        principal = await kernel.principal(name)
        await kernel.members.give_role(principal, role)
        return kernel.open_session(principal, "test")

    async def call(
        self, asker: Actor, tool: str = "shell", *, waits: bool = True, **arguments: Any
    ) -> AskedCall:
        """Let the model make a call in answer to a message of `asker`."""
        stage = self.stage
        await until(lambda: MODEL in stage.kernel.members)
        writer = BlockWriter(stage.kernel, stage.context, await self.model())
        prompt = await stage.draft("Do it.")
        block = await writer.create(
            BlockKind.TOOL_CALL, prompt, "", tool_name=tool, input=arguments
        )
        by = Asker(stage.kernel, asker, Permission.WRITE)
        self._askers.append(by)
        request = PermissionRequest(
            stage.context, block, writer.actor.principal.id, tool, arguments, by
        )
        task = asyncio.ensure_future(self.desk.decide(request))
        if waits:
            await until(lambda: self.header(block).permission == "asked" or task.done())
        return AskedCall(block, task)

    def header(self, block: str) -> BlockHeader:
        return self.stage.context.document.header(block)

    async def decide(self, by: Actor, call: AskedCall, decision: str = "once", **more: Any) -> Any:
        params = {"block_id": call.block, "decision": decision, **more}
        return await self.stage.kernel.call(by, "permission.decide", params)

    async def listed(self, by: Actor | None = None) -> dict[str, Any]:
        return await self.stage.kernel.call(by or self.stage.owner, "permission.list", {})

    def close(self) -> None:
        for one in self._askers:
            one.close()


async def open_asking(open_stage: OpenStage, policy: PermissionPolicy | None = None) -> Asking:
    playing = ScriptedProvider([recording(MODEL, [])], sleep=Gate())
    models = remote(playing, policy or PermissionPolicy(), name=MODEL)
    return Asking(await open_stage(models))


async def write_raw(context: Context, actor: Actor, change: Callable[[Any], None]) -> None:
    """Change the map of blocks as a connected client does, by a raw update."""
    replica: Doc[Any] = Doc()
    replica.apply_update(context.document.update_since())
    before = replica.get_state()
    change(replica.get("blocks", type=Map))
    await apply_update(context, actor, replica.get_update(before), object())
