"""Calls of a model that wait for permission, made one by one, and people who decide about them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pycrdt import Doc, Map

from antiphon_kernel.contexts import Context, apply_update
from antiphon_kernel.providers import PermissionPolicy
from antiphon_kernel.turns.block_writer import BlockWriter
from antiphon_kernel.turns.models import Models
from antiphon_kernel.turns.permission import Asker, PermissionRequest
from antiphon_kernel.types.enums import BlockKind, PrincipalKind
from antiphon_kernel.types.records import Actor, BlockHeader
from antiphon_kernel.types.roles import AccessRole, Permission
from tests.kernel.turns.stage import Gate, OpenStage, Stage, recording, scripted
from tests.waiting import until

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
    playing = scripted(Gate(), recording(MODEL, []))
    models = Models({MODEL: playing[MODEL]}, permissions={MODEL: policy or PermissionPolicy()})
    return Asking(await open_stage(models))


async def write_raw(context: Context, actor: Actor, change: Callable[[Any], None]) -> None:
    """Change the map of blocks as a connected client does, by a raw update."""
    replica: Doc[Any] = Doc()
    replica.apply_update(context.document.update_since())
    before = replica.get_state()
    change(replica.get("blocks", type=Map))
    await apply_update(context, actor, replica.get_update(before), object())
