from __future__ import annotations

import math

import pytest

from antiphon_kernel.providers.events import End, TextDelta, ToolCallEvent, TurnEvent
from antiphon_kernel.providers.provider import RoundRequest
from antiphon_kernel.providers.recording import RecordedStep, Recording, ScriptedProvider
from antiphon_kernel.types.ids import ContextId

HERE, THERE = ContextId("0" * 32), ContextId("1" * 32)


class Sleeper:
    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)


def says(text: str) -> Recording:
    return Recording(
        "aria", "", ((RecordedStep(100, TextDelta(text)), RecordedStep(50, End("end_turn"))),)
    )


async def play(
    provider: ScriptedProvider, context: ContextId = HERE, round_number: int = 0
) -> list[TurnEvent]:
    request = RoundRequest(context, "a prompt", round_number)
    return [event async for event in provider.stream(request)]


async def test_scripted_provider_plays_recordings_in_turn_and_repeats() -> None:
    provider = ScriptedProvider([says("one"), says("two")], sleep=Sleeper())
    texts = [(await play(provider))[0] for _ in range(3)]
    assert texts == [TextDelta("one"), TextDelta("two"), TextDelta("one")]
    assert (await play(provider, THERE))[0] == TextDelta("one")


@pytest.mark.parametrize(("speed", "slept"), [(1, [0.1, 0.05]), (10, [0.01, 0.005])])
async def test_scripted_provider_delay_is_divided_by_speed(
    speed: float, slept: list[float]
) -> None:
    sleeper = Sleeper()
    await play(ScriptedProvider([says("one")], speed=speed, sleep=sleeper))
    assert sleeper.slept == pytest.approx(slept)


async def test_scripted_provider_without_delay_yields_between_events() -> None:
    sleeper = Sleeper()
    await play(ScriptedProvider([says("one")], speed=math.inf, sleep=sleeper))
    assert sleeper.slept == [0, 0]


async def test_rounds_of_a_turn_are_its_recording_between_tool_calls() -> None:
    call = ToolCallEvent("c", "shell", {"command": "ls"})
    recording = Recording(
        "aria", "", ((RecordedStep(0, call),), (RecordedStep(0, TextDelta("done")),))
    )
    provider = ScriptedProvider([recording, says("next")], sleep=Sleeper())
    assert await play(provider) == [call]
    assert await play(provider, round_number=1) == [TextDelta("done")]
    assert await play(provider, round_number=2) == [End("end_turn")]
    assert (await play(provider))[0] == TextDelta("next")


@pytest.mark.parametrize("speed", [0, 0.01, 1001, -1, math.nan])
def test_impossible_speed_is_refused(speed: float) -> None:
    with pytest.raises(ValueError, match="speed is"):
        ScriptedProvider([says("one")], speed=speed)


def test_model_without_recordings_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        ScriptedProvider([])
