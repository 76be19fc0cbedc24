"""A stage with MCP servers: a scripted model that calls their tools."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from antiphon_kernel.mcp_servers import McpServerConfig
from antiphon_kernel.providers import PermissionPolicy
from antiphon_kernel.providers.model_config import ALLOW_EVERYTHING
from antiphon_kernel.turns import TurnRunner
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.records import BlockHeader
from tests.kernel.turns.stage import (
    DONE,
    Reply,
    Replying,
    Stage,
    call,
    open_kernel,
    remote,
    wait_read,
)
from tests.waiting import until

SCRIPT = Path(__file__).parents[2] / "programs" / "mcp_server.py"


def faulty(*arguments: str, name: str = "bad", **more: Any) -> McpServerConfig:
    """The server of `tests/programs/mcp_server.py`."""
    return McpServerConfig(name, (sys.executable, str(SCRIPT), *arguments), **more)


class ServedStage(Stage):
    """A kernel with MCP servers and the model aria, which makes the calls that a test says."""

    provider: Replying

    @classmethod
    async def open(
        cls,
        folder: Path,
        *servers: McpServerConfig,
        policy: PermissionPolicy = ALLOW_EVERYTHING,
        **config: Any,
    ) -> ServedStage:
        kernel = await open_kernel(folder)
        provider = Replying(DONE)
        models = remote(provider, policy, mcp=servers, **config)
        stage = cls(kernel, await kernel.context(), TurnRunner(kernel, models))
        stage.provider = provider
        await wait_read()
        return stage

    async def close(self) -> None:
        await self.runner.close()
        await self.kernel.close()

    def reply_with(self, tool: str, arguments: Mapping[str, Any], *more: Reply) -> None:
        """Let the model call a tool once, and then say that it is done."""
        self._calls = getattr(self, "_calls", 0) + 1
        made = (call(tool, f"c{self._calls}", **arguments),)
        self.provider.then(made, *more, DONE)

    async def run(self, tool: str, **arguments: Any) -> str:
        """Let the model call a tool; return the text of its result."""
        self.reply_with(tool, arguments)
        await self.play("Go on.")
        return self.results()[-1]

    async def begin(self, tool: str, **arguments: Any) -> None:
        """Let the model call a tool, and return at once."""
        self.reply_with(tool, arguments)
        await self.submit("Go on.")

    async def asked(self) -> str:
        """Wait until a server asks something; return the block of the call."""

        def is_asked(one: BlockHeader) -> bool:
            question = one.metadata.get("question")
            return question is not None and "action" not in question

        calls = partial(self.of_kind, BlockKind.TOOL_CALL)
        await until(lambda: any(map(is_asked, calls())), "a question of a server")
        return next(one.id for one in calls() if is_asked(one))

    def told(self) -> list[str]:
        """Names of the tools of servers that the model was told of last."""
        return [one.name for one in self.provider.prompts[-1].tools if "__" in one.name]

    def last_call(self) -> BlockHeader:
        return self.of_kind(BlockKind.TOOL_CALL)[-1]

    def last_result(self) -> BlockHeader:
        return self.of_kind(BlockKind.TOOL_RESULT)[-1]
