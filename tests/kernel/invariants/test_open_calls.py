"""A result answers one earlier call, and nothing stays open by a crash, a cancel or a limit."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.contexts import BlockOwners
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.messages import open_tool_uses
from antiphon_kernel.providers import (
    End,
    ErrorKind,
    ProviderError,
    RoundRequest,
    TextDelta,
    TokenUsage,
)
from antiphon_kernel.providers.events import (
    ThinkingDelta,
    ThinkingEnd,
    ToolCallDelta,
    ToolCallEvent,
    ToolCallStart,
    TurnEvent,
)
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.turns import TURN_TOOLS, TurnRunner
from antiphon_kernel.turns.turn import TurnSettings
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.records import BlockHeader
from tests.kernel.invariants.cases import cases, run_cases
from tests.kernel.invariants.oracle import Violation
from tests.kernel.invariants.world import crash_image
from tests.kernel.turns.stage import Gate, Stage, recording, remote, scripted

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
        settings = TurnSettings(max_rounds=2, sleep=gate)
        runner = TurnRunner(kernel, models, settings)
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


CALLS: tuple[tuple[str, dict[str, Any] | str], ...] = (
    ("context_list", {}),
    ("block_list", {"limit": 3}),
    ("block_create", {"content": "A plan."}),
    ("block_read", {"block_id": "ar:nowhere"}),
    ("shell", {"command": "printf x"}),
    ("no_such_tool", {"a": 1}),
    ("block_list", '{"limit": '),
)


def random_events(rng: random.Random) -> list[TurnEvent]:
    """One answer; calls may be begun and not ended, and anything may come at the end."""
    events: list[TurnEvent] = []
    for number in range(rng.randint(0, 4)):
        match rng.randrange(4):
            case 0:
                events += [ThinkingDelta("Hm."), ThinkingEnd(rng.choice((None, "signed")))]
            case 1:
                events.append(TextDelta("Well, 漢字.\n"))
            case _:
                name, arguments = rng.choice(CALLS)
                call = f"c{rng.randrange(3) if rng.random() < 0.2 else number}"
                if rng.random() < 0.6:
                    events += [ToolCallStart(call, name), ToolCallDelta(call, '{"lim')]
                if rng.random() < 0.8:
                    events.append(ToolCallEvent(call, name, arguments))
    if rng.random() < 0.5:
        events.append(TokenUsage(input_tokens=rng.randint(0, 5_000), output_tokens=10))
    kinds = (ErrorKind.OVERLOADED, ErrorKind.CONTEXT_TOO_LONG, ErrorKind.INVALID_REQUEST)
    ends: tuple[TurnEvent | None, ...] = (
        *(None, End("end_turn"), End("tool_use"), End("max_tokens"), End("truncated")),
        ProviderError("It failed.", rng.choice(kinds)),
    )
    end = rng.choice(ends)
    return events if end is None else [*events, end]


class RandomProvider:
    """A model that answers at random; a person does something between its events."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.meanwhile: Callable[[], Any] = lambda: None
        self.asked = 0

    async def stream(self, request: RoundRequest) -> AsyncGenerator[TurnEvent, None]:
        self.asked += 1
        prompt = request.prompt
        assert not open_tool_uses(prompt.conversation.messages)
        for event in random_events(self._rng):
            await self.meanwhile()
            yield event


async def _no_wait(seconds: float) -> None:
    del seconds


@cases(0.1)
async def test_every_call_is_answered_whatever_a_model_and_people_do(rng: random.Random) -> None:
    """Random turns of a remote model, with people who edit and interrupt."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        kernel = await opened(folder / "data")
        provider = RandomProvider(rng)
        settings = TurnSettings(sleep=_no_wait, max_rounds=5)
        runner = TurnRunner(kernel, remote(provider), settings=settings)
        stage = Stage(kernel, await kernel.context(), runner)

        async def meanwhile() -> None:
            headers = stage.headers()
            one = rng.choice(headers)
            match rng.randrange(10):
                case 0 | 1:
                    await stage.call("block.splice", block_id=one.id, offset=0, insert="An edit. ")
                case 2:
                    await stage.call("block.exclude", block_id=one.id, excluded=True)
                case 3 if rng.random() < 0.3:
                    for work in runner.works(stage.context):
                        work.stop("amy")
                case _:
                    pass

        provider.meanwhile = meanwhile
        try:
            for number in range(3):
                await stage.play(f"Message {number}")
                check_ended(stage)
            await stage.call("context.request", model="aria")
        finally:
            await runner.close()
            await kernel.close()


def check_ended(stage: Stage) -> None:
    """Nothing runs or is open, and each call has one result, or was interrupted."""
    if stage.runner.works(stage.context) or stage.unfinished():
        raise Violation("something was left running")
    results = [one.parent for one in stage.of_kind(BlockKind.TOOL_RESULT)]
    if len(results) != len(set(results)):
        raise Violation("a call has two results")
    ids = [one.tool_call_id for one in stage.of_kind(BlockKind.TOOL_CALL)]
    if len(ids) != len(set(ids)):
        raise Violation("two calls have one id")
    for call in stage.of_kind(BlockKind.TOOL_CALL):
        if call.id not in results and call.stop_reason != "interrupted":
            raise Violation(f"a call was left without a result: {call.status}")
