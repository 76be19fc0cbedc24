"""A kernel with a scripted agent, and ways to look at what it was sent and what runs of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from antiphon_kernel.config import KernelConfig
from antiphon_kernel.config.agents import AgentConfig
from antiphon_kernel.turns import TurnRunner
from antiphon_kernel.turns.models import Models
from antiphon_kernel.turns.turn import TurnSettings
from tests.acp_schema import AcpLines
from tests.kernel.turns.stage import Stage, open_kernel
from tests.processes import has_ended
from tests.waiting import until

Steps = Sequence[Mapping[str, Any]]


class AgentStage(Stage):
    """A stage with the agent `bot`, which plays a script."""

    folder: Path
    """The script, and what the agent keeps beside it."""

    def received(self, method: str | None = None) -> list[dict[str, Any]]:
        """Return what the agent was sent: messages, or the parameters of one kind of requests."""
        log = self.folder / "received.jsonl"
        lines = log.read_text().splitlines() if log.exists() else []
        messages = [json.loads(line) for line in lines]
        if method is None:
            return messages
        return [one["params"] for one in messages if one.get("method") == method]

    def prompts(self) -> list[str]:
        """Return the text of each prompt that the agent was sent."""
        sent = [one["prompt"] for one in self.received("session/prompt")]
        return ["\n\n".join(part.get("text", str(part)) for part in parts) for parts in sent]

    def answers(self) -> list[Any]:
        """Return what the agent's own requests were answered."""
        answers = [one for one in self.received() if "method" not in one]
        return [one.get("result", one.get("error")) for one in answers]

    def script(self, **steps: Any) -> None:
        """Let each process of the agent that starts from now on play this."""
        named = {_METHODS.get(name, name): said for name, said in steps.items()}
        (self.folder / "script.json").write_text(json.dumps(named))

    def pids(self) -> list[int]:
        """Return the processes that the agent has had."""
        log = self.folder / "pids"
        return [int(line) for line in log.read_text().split()] if log.exists() else []

    async def ask(self, text: str = "Go.") -> list[tuple[str, str, str]]:
        """Ask the agent, and return the blocks of its answer once the turn is over."""
        before = len(self.headers())
        await self.play(f"@bot {text}")
        return self.shown()[before + 1 :]

    async def let(self, name: str) -> None:
        """Let the agent go on that waits for a file."""
        (self.folder / name).touch()


_METHODS = {
    "new": "session/new",
    "load": "session/load",
    "resume": "session/resume",
    "prompts": "session/prompt",
}

OpenAgent = Callable[..., Awaitable[AgentStage]]


async def open_agent(
    folder: Path,
    stack: AsyncExitStack,
    settings: TurnSettings | None = None,
    command: Sequence[str] | None = None,
    is_faulty: bool = False,
    **steps: Any,
) -> AgentStage:
    """Open a kernel whose agent plays `steps`; when it is closed, nothing of it runs any more.

    Args:
        is_faulty: whether the agent says what ACP does not have.
    """
    folder.mkdir(exist_ok=True)
    script = folder / "script.json"
    program = (
        sys.executable,
        "-SE",
        str(Path(__file__).with_name("scripted_agent.py")),
        str(script),
    )
    agent = AgentConfig("bot", tuple(command or program))
    kernel = await open_kernel(folder / "kernel")
    config = KernelConfig(agents=(agent,))
    runner = TurnRunner(kernel, Models({}, config=config), settings=settings)
    stage = AgentStage(kernel, await kernel.context(), runner)
    stage.folder = folder
    if steps:
        stage.script(**steps)

    async def close() -> None:
        await runner.close()
        await kernel.close()
        await until(lambda: all(map(has_ended, stage.pids())))
        for path in (folder / "lines").glob("*"):
            AcpLines.recorded(path, is_faulty)

    stack.push_async_callback(close)
    return stage
