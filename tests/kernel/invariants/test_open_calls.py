"""A result answers one earlier call, and nothing stays open by a crash, a cancel or a limit."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.contexts import BlockOwners
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.providers.events import (
    End,
    ProviderError,
    TextDelta,
    ThinkingDelta,
    ToolCallEvent,
    TurnEvent,
)
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.turns import TURN_TOOLS, TurnRunner
from antiphon_kernel.turns.turn import TurnSettings
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.records import BlockHeader
from tests.kernel.invariants.cases import cases, run_cases
from tests.kernel.invariants.disk import crash_image
from tests.kernel.invariants.oracle import Violation
from tests.kernel.turns.stage import Gate, Stage, recording, scripted

COMMANDS = ("printf 'a\\nb\\n'", "exit 3", "sleep 60", "printf '😀'; exit 1", "")


def random_turn(rng: random.Random) -> list[list[TurnEvent]]:
    """Rounds of text, thoughts and calls; the last one may end badly."""
    rounds: list[list[TurnEvent]] = []
    for number in range(rng.randint(1, 4)):
        events: list[TurnEvent] = []
        for at in range(rng.randint(1, 4)):
            match rng.randrange(5):
                case 0:
                    events.append(ThinkingDelta("Hm.\n"))
                case 1 | 2:
                    events.append(TextDelta("Well, 漢字.\n"))
                case 3:
                    arguments = {"command": rng.choice(COMMANDS)}
                    events.append(ToolCallEvent(f"c{number}.{at}", "shell", arguments))
                case _:
                    events.append(ToolCallEvent(f"c{number}.{at}", "browser", {"url": "x"}))
        events.append(rng.choice((End("end_turn"), End("max_tokens"))))
        if rng.random() < 0.2:
            events.append(ProviderError("overloaded"))
        rounds.append(events)
    return rounds


def check_nothing_open(headers: Sequence[BlockHeader]) -> None:
    """No call, result or text of a model or tool waits for somebody who is gone."""
    for header in headers:
        if header.role in (Role.MODEL, Role.TOOL) and header.status not in (
            Status.DONE,
            Status.ERROR,
        ):
            raise Violation(f"a {header.kind} was left {header.status}")


def check_answers(headers: Sequence[BlockHeader]) -> None:
    """Each result answers one call, which stands before it and has no other; models answer too."""
    calls: dict[str, BlockHeader] = {}
    answered: set[str] = set()
    for header in headers:
        if header.role == Role.MODEL and header.parent is None:
            raise Violation("a model answers nothing")
        if header.kind == BlockKind.TOOL_CALL:
            calls[header.id] = header
        if header.kind == BlockKind.TOOL_RESULT:
            call = calls.get(header.parent or "")
            if call is None:
                raise Violation("a result answers no earlier call")
            if call.id in answered:
                raise Violation("a call has two results")
            if call.tool_call_id != header.tool_call_id:
                raise Violation("a result names another call than it answers")
            answered.add(call.id)


async def opened(data: Path) -> Kernel:
    registry = Registry((*KERNEL_TOOLS, *TURN_TOOLS))
    return await Kernel.open(data, data.parent, registry=registry, owner="amy")


async def check_after_opening(data: Path, *, closed: bool) -> None:
    kernel = await opened(data)
    try:
        document = (await kernel.context()).document
        headers = [document.header(block) for block in document.block_ids()]
        check_answers(headers)
        check_nothing_open(headers)
        if closed and not headers:
            raise Violation("everything is gone")
    finally:
        await kernel.close()


async def held_again(gate: Gate, stage: Stage) -> None:
    """Until the next event waits, or nothing does; a command that runs for long is not awaited."""
    ends = [asyncio.create_task(gate.shut()), asyncio.create_task(stage.runner.wait_idle())]
    await asyncio.wait(ends, timeout=0.05, return_when=asyncio.FIRST_COMPLETED)
    for end in ends:
        end.cancel()
    await asyncio.wait(ends)


async def play(rng: random.Random) -> None:
    """A turn that is stopped somewhere, in one of many ways; a crash is looked at on the way."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data = folder / "data"
        kernel = await opened(data)
        gate = Gate(0)
        models = scripted(gate, *(recording("aria", *random_turn(rng)) for _ in range(2)))
        # So few that the limit is one of the ends.
        settings = TurnSettings(max_rounds=2)
        runner = TurnRunner(kernel, models, sleep=gate, settings=settings)
        stage = Stage(kernel, await kernel.context(), runner)
        crashes: list[Path] = []
        try:
            for _ in range(2):
                await stage.submit("Hello?")
            for _ in range(rng.randint(0, 12)):
                await gate.open(1)
                await held_again(gate, stage)
                if rng.random() < 0.3:
                    crashes.append(folder / f"crash-{len(crashes)}")
                    crash_image(data, crashes[-1])
            match rng.randrange(3):
                case 0:
                    await stage.interrupt()
                    await stage.runner.close()
                    check_nothing_open(stage.headers())
                case 1:
                    await stage.runner.close()
                    check_nothing_open(stage.headers())
                case _:
                    pass
            check_answers(stage.headers())
        finally:
            await stage.runner.close()
            await kernel.close()
        for image in crashes:
            await check_after_opening(image, closed=False)
        await check_after_opening(data, closed=True)


@cases(0.06)
async def test_turn_however_it_ends_leaves_no_open_block_and_no_result_without_call(
    rng: random.Random,
) -> None:
    await play(rng)


def blocks_stay_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BlockOwners, "interrupt", lambda self, context, left, **by: False)


def forgetting(patch: pytest.MonkeyPatch, field: str, value: str) -> None:
    """A kernel that forgets what blocks with this field answer."""

    async def call(self: Kernel, actor: Any, tool: str, params: Any = None) -> dict[str, Any]:
        made = await found(self, actor, tool, params)
        if tool != "block.create":
            return made
        context, block = await self.find_block(made["block_id"])
        if getattr(context.document.header(block), field) == value:
            forget = partial(context.document.set_fields, block, parent=None)
            await context.write(self.system, "create", forget, blocks=[block], undo=None).saved()
        return made

    found = Kernel.call
    patch.setattr(Kernel, "call", call)


def results_stand_alone(patch: pytest.MonkeyPatch) -> None:
    forgetting(patch, "kind", "tool_result")


def models_answer_nothing(patch: pytest.MonkeyPatch) -> None:
    forgetting(patch, "role", "model")


@pytest.mark.parametrize("fault", [blocks_stay_open, results_stand_alone, models_answer_nothing])
async def test_kernel_broken_on_purpose_is_noticed(
    monkeypatch: pytest.MonkeyPatch, fault: Callable[[pytest.MonkeyPatch], None]
) -> None:
    fault(monkeypatch)
    with pytest.raises(Violation):
        await run_cases(20, play)
