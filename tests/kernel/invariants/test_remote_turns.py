"""Random turns of a remote model, with people who edit and interrupt: every call is answered."""

from __future__ import annotations

import random
import tempfile
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.messages import check_correlation
from antiphon_kernel.providers import (
    ALLOW_EVERYTHING,
    End,
    ErrorKind,
    ModelConfig,
    ModelKind,
    ProviderError,
    RoundRequest,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
    ToolCallDelta,
    ToolCallEvent,
    ToolCallStart,
    TurnEvent,
    Usage,
)
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.turns import TURN_TOOLS, TurnRunner
from antiphon_kernel.turns.models import Models
from antiphon_kernel.turns.turn import TurnSettings
from antiphon_kernel.types.enums import BlockKind
from tests.kernel.invariants.cases import cases
from tests.kernel.invariants.oracle import Violation
from tests.kernel.turns.stage import Stage

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
        events.append(Usage(rng.randint(0, 5_000), 10))
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
        prompt = await request.read()
        check_correlation(prompt.conversation.messages)
        for event in random_events(self._rng):
            await self.meanwhile()
            yield event


async def _no_wait(seconds: float) -> None:
    del seconds


async def play(rng: random.Random) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        registry = Registry((*KERNEL_TOOLS, *TURN_TOOLS))
        kernel = await Kernel.open(folder / "data", folder, registry=registry, owner="amy")
        provider = RandomProvider(rng)
        config = ModelConfig("aria", ModelKind.OPENAI_CHAT, "aria-1")
        models = Models(
            {"aria": provider}, configs={"aria": config}, permissions={"aria": ALLOW_EVERYTHING}
        )
        settings = TurnSettings(sleep=_no_wait, max_rounds=5)
        runner = TurnRunner(kernel, models, settings=settings)
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


@cases(0.1)
async def test_every_call_is_answered_whatever_a_model_and_people_do(rng: random.Random) -> None:
    await play(rng)
