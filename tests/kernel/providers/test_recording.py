from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.providers.events import (
    End,
    ProviderError,
    TextDelta,
    ThinkingDelta,
    ToolCallEvent,
    TurnEvent,
)
from antiphon_kernel.providers.model_config import TokenUsage
from antiphon_kernel.providers.provider import ModelPrompt, RoundRequest
from antiphon_kernel.providers.recording import (
    RecordedStep,
    Recording,
    ScriptedProvider,
    load_recordings,
    model_name,
    parse_recordings,
)
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.ids import ContextId


def parse(*objects: dict[str, Any]) -> Any:
    text = "\n".join(json.dumps(line) for line in objects) + "\n"
    (recording,) = parse_recordings(text, "demo.jsonl", default_model="demo")
    return recording


def test_every_event_is_read_and_a_tool_call_ends_its_round() -> None:
    recording = parse(
        {"model": "aria", "title": "A title"},
        {"at_ms": 5, "type": "thinking", "text": "hm"},
        {"at_ms": 0, "type": "tool_call", "id": "c1", "name": "shell", "input": {"command": "ls"}},
        {"at_ms": 1.5, "type": "text", "text": "yes"},
        {"at_ms": 0, "type": "usage", "input_tokens": 3, "output_tokens": 4},
        {"at_ms": 0, "type": "end"},
    )
    assert recording.model == "aria"
    assert recording.rounds == (
        (
            RecordedStep(5, ThinkingDelta("hm")),
            RecordedStep(0, ToolCallEvent("c1", "shell", {"command": "ls"})),
        ),
        (
            RecordedStep(1.5, TextDelta("yes")),
            RecordedStep(0, TokenUsage(input_tokens=3, output_tokens=4)),
            RecordedStep(0, End("end_turn")),
        ),
    )


def test_recording_without_header_takes_model_name_from_file(tmp_path: Path) -> None:
    path = tmp_path / "My Model (2).jsonl"
    path.write_text('{"at_ms": 0, "type": "error", "message": "no"}\n\n')
    (recording,) = load_recordings(path)
    assert recording.model == "my-model-2"
    assert recording.rounds == ((RecordedStep(0, ProviderError("no")),),)


def test_parts_are_turns_of_models_and_keys_of_a_person_who_may_come_first() -> None:
    models = '{"model": "aria"}\n' + GOOD + '{"model": "b"}\n' + GOOD + '{"model": "aria"}\n' + GOOD
    person = """{"person": true}
        {"at_ms": 5, "type": "type", "text": "Hi"}
        {"at_ms": 0, "type": "keys", "keys": ["up", "enter"]}
        {"at_ms": 1, "type": "see", "text": "EDIT"}"""
    for text, is_answer in ((models + person, False), (f"{person}\n{models}", True)):
        read = parse_recordings(text, "demo.jsonl", default_model="demo")
        assert [(one.model, one.is_answer) for one in read] == [
            (name, is_answer) for name in ("aria", "b", "aria")
        ]


@pytest.mark.parametrize(("stem", "name"), [("aria", "aria"), ("Ä", "model"), ("-A_b-", "a_b")])
def test_model_name_of_any_file_name_is_valid(stem: str, name: str) -> None:
    assert model_name(stem) == name


GOOD = '{"at_ms": 0, "type": "text", "text": "a"}\n'


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        *((text, 0, "at least one event") for text in ("", "\n\n")),
        ('{"model": "aria"}\n', 1, "at least one event"),
        (GOOD + '{"person": true}\n' + '{"model": "aria"}\n' + GOOD, 2, "at least one event"),
        (GOOD + "nonsense", 2, "a JSON object"),
        (GOOD + "[1]", 2, "a JSON object"),
        (GOOD + "\n" + '{"at_ms": -1, "type": "end"}', 3, "`at_ms`"),
        (GOOD + '{"type": "end"}', 2, "`at_ms`"),
        (GOOD + '{"at_ms": NaN, "type": "end"}', 2, "`at_ms`"),
        (GOOD + '{"at_ms": true, "type": "end"}', 2, "`at_ms`"),
        ('{"at_ms": 0, "type": "song"}', 1, "`type`, one of thinking, text"),
        ('{"at_ms": 0, "type": "text"}', 1, "`text`, a string"),
        ('{"at_ms": 0, "type": "tool_call", "input": "ls"}', 1, "`input`, an object"),
        ('{"at_ms": 0, "type": "usage", "input_tokens": 1}', 1, "`output_tokens`"),
        ('{"at_ms": 0, "type": "end"}\n' + GOOD, 2, "nothing after the end"),
        ('{"model": "No Name"}\n' + GOOD, 1, "a model name"),
        ('{"at_ms": 0}', 1, "`type`"),
        ('{"person": true}\n' + GOOD, 2, "`type`, one of type, keys, see"),
        ('{"person": true}\n{"at_ms": 0, "type": "keys", "keys": "up"}', 2, "`keys`, a list"),
    ],
)
def test_bad_line_is_named_with_what_was_expected(text: str, line: int, expected: str) -> None:
    with pytest.raises(AntiphonError) as caught:
        parse_recordings(text, "demo.jsonl", default_model="demo")
    place = f"demo.jsonl:{line}" if line else "demo.jsonl"
    assert str(caught.value).startswith(f"{place}: expected ")
    assert expected in str(caught.value)


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(AntiphonError, match="nothing-here"):
        load_recordings(tmp_path / "nothing-here.jsonl")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(AntiphonError, match="UTF-8"):
        load_recordings(tmp_path / "binary")


@given(st.text(st.sampled_from('{}[]":,0123abc\n \\é\u2028'), max_size=60))
def test_text_that_is_no_recording_is_nothing_but_a_recording_error(text: str) -> None:
    with pytest.raises(AntiphonError, match=r"^demo\.jsonl"):
        parse_recordings(text, "demo.jsonl", default_model="demo")


HERE, THERE = ContextId("0" * 32), ContextId("1" * 32)


class Sleeper:
    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)


def says(text: str) -> Recording:
    return Recording(
        "aria", ((RecordedStep(100, TextDelta(text)), RecordedStep(50, End("end_turn"))),)
    )


async def play(
    provider: ScriptedProvider, context: ContextId = HERE, round_number: int = 0
) -> list[TurnEvent]:
    request = RoundRequest(context, round_number, ModelPrompt())
    return [event async for event in provider.stream(request)]


async def test_scripted_provider_plays_recordings_in_turn_and_repeats() -> None:
    provider = ScriptedProvider([says("one"), says("two")], sleep=Sleeper())
    texts = [(await play(provider))[0] for _ in range(3)]
    assert texts == [TextDelta("one"), TextDelta("two"), TextDelta("one")]
    assert (await play(provider, THERE))[0] == TextDelta("one")


async def test_scripted_provider_delay_is_divided_by_speed() -> None:
    for speed, slept in ((1, [0.1, 0.05]), (10, [0.01, 0.005]), (math.inf, [0, 0])):
        sleeper = Sleeper()
        await play(ScriptedProvider([says("one")], speed=speed, sleep=sleeper))
        assert sleeper.slept == pytest.approx(slept)


async def test_rounds_of_a_turn_are_its_recording_between_tool_calls() -> None:
    call = ToolCallEvent("c", "shell", {"command": "ls"})
    recording = Recording("aria", ((RecordedStep(0, call),), (RecordedStep(0, TextDelta("done")),)))
    provider = ScriptedProvider([recording, says("next")], sleep=Sleeper())
    assert await play(provider) == [call]
    assert await play(provider, round_number=1) == [TextDelta("done")]
    assert await play(provider, round_number=2) == [End("end_turn")]
    assert (await play(provider))[0] == TextDelta("next")


def test_scripted_provider_without_recordings_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        ScriptedProvider([])
