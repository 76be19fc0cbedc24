"""The context of a turn stays open until the turn is over, whoever else uses it."""

from __future__ import annotations

from pathlib import Path

from antiphon_kernel.contexts import UseScope
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.limits import Limits
from antiphon_kernel.providers.events import TextDelta
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.turns import TURN_TOOLS, TurnRunner
from antiphon_kernel.types.enums import BlockKind
from tests.kernel.turns.stage import Gate, Stage, recording, scripted

ARIA = recording("aria", [TextDelta("I am "), TextDelta("aria.\n")])


async def test_context_of_turns_that_run_and_wait_stays_open_until_they_end(tmp_path: Path) -> None:
    closed: list[str] = []
    gate = Gate(0)
    kernel = await Kernel.open(
        tmp_path / "data",
        tmp_path,
        registry=Registry((*KERNEL_TOOLS, *TURN_TOOLS)),
        owner="amy",
        limits=Limits(idle_context_seconds=0, idle_check_seconds=1e6),
    )
    kernel.closed.listen(lambda context: closed.append(context.label))
    runner = TurnRunner(kernel, scripted(gate, ARIA))
    with UseScope():
        stage = Stage(kernel, await kernel.context(), runner)
    await stage.submit("hello")
    await stage.submit("hello again")
    await gate.shut()
    await kernel.close_idle_contexts()
    assert closed == []
    await gate.open()
    await runner.wait_idle()
    await runner.wait_read()
    await kernel.close_idle_contexts()
    assert closed == ["default"]
    with UseScope():
        stage.context = await kernel.context()
    assert sorted(map(stage.text, stage.of_kind(BlockKind.TEXT))) == [
        "I am aria.\n",
        "I am aria.\n",
        "hello",
        "hello again",
    ]
    await runner.close()
    await kernel.close()
