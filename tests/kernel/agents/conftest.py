"""One turn of an agent, without its process: what it asks for is called directly."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from antiphon_kernel.access import VIA_TURN
from antiphon_kernel.contexts import WriterPresence
from antiphon_kernel.providers import PermissionPolicy
from antiphon_kernel.turns import TurnRunner
from antiphon_kernel.turns.agents.agent_turn import AgentTurn
from antiphon_kernel.turns.asker import Asker
from antiphon_kernel.turns.block_writer import BlockWriter
from antiphon_kernel.turns.turn import TurnSettings
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.types.roles import Permission
from tests.kernel.turns.stage import DONE, Replying, Stage, open_kernel, remote
from tests.waiting import until

TEXT = "one\ntwo\nthree\nfour\nfive\n"


@dataclass
class DirectTurn:
    """A turn of the agent bot, which the owner amy has asked for."""

    stage: Stage
    turn: AgentTurn

    @property
    def project(self) -> Path:
        return self.stage.kernel.project

    def put(self, path: str, text: str | bytes = TEXT) -> str:
        """Write a file as another program does; return its absolute path."""
        place = self.project / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text if isinstance(text, bytes) else text.encode())
        os.utime(place, (1_700_000_000, 1_700_000_000))
        return str(place)

    async def type(self, path: str, old: str, new: str) -> None:
        """Replace a text as a person does."""
        await self.stage.call("file.edit", path=path, old_text=old, new_text=new)

    async def asked(self, work: Awaitable[object]) -> tuple[asyncio.Future[object], BlockHeader]:
        """Begin something that a person is asked about; return it, and the block of the call."""
        task = asyncio.ensure_future(work)
        waiting = self.stage.runner.permissions.waiting
        await until(lambda: bool(waiting) or task.done())
        return task, self.header(next(iter(waiting)))

    async def decide(self, block: BlockHeader, decision: str) -> None:
        await self.stage.call("permission.decide", block_id=block.id, decision=decision)

    def header(self, block: str) -> BlockHeader:
        return self.stage.context.document.header(block)

    def calls(self) -> list[BlockHeader]:
        return self.stage.of_kind(BlockKind.TOOL_CALL)


OpenTurn = Callable[..., Awaitable[DirectTurn]]


@pytest.fixture
async def open_turn(tmp_path: Path) -> AsyncIterator[OpenTurn]:
    opened: list[DirectTurn] = []

    async def open_one(
        policy: PermissionPolicy | None = None, settings: TurnSettings | None = None
    ) -> DirectTurn:
        kernel = await open_kernel(tmp_path / str(len(opened)))
        models = remote(Replying(DONE), policy or PermissionPolicy(), name="bot")
        stage = Stage(kernel, await kernel.context(), TurnRunner(kernel, models))
        actor = kernel.open_session(await stage.runner.principal("bot"), VIA_TURN)
        prompt = await stage.draft("Do it.")
        turn = AgentTurn(
            BlockWriter(kernel, stage.context, actor),
            WriterPresence(stage.context, actor, kernel.ids.client_id()),
            prompt,
            Asker(kernel, stage.owner, Permission.OWN),
            stage.runner.permissions,
            settings or TurnSettings(),
        )
        opened.append(DirectTurn(stage, turn))
        return opened[-1]

    yield open_one
    for one in opened:
        one.turn.presence.leave()
        one.turn.asker.close()
        await one.stage.runner.close()
        await one.stage.kernel.close()
