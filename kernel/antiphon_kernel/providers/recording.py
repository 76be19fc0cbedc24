"""Recordings of turns, JSON lines that say what a model did and when, and their player.

Of a model's events, ``text`` and ``thinking`` carry `text`; ``tool_call`` carries `name`, `input`
and perhaps `id`, ends its round, and has ended when the real result of the call is there; ``usage``
carries `input_tokens` and `output_tokens`; ``end`` perhaps `stop_reason`; ``error`` carries
`message`. Headers, times and a person's events are those of `text.recording_lines`.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from antiphon_kernel.providers.events import (
    End,
    ProviderError,
    TextDelta,
    ThinkingDelta,
    ToolCallEvent,
    TurnEvent,
    Usage,
)
from antiphon_kernel.providers.provider import RoundRequest
from antiphon_kernel.text.recording_lines import (
    RecordingError,
    RecordingLine,
    RecordingPart,
    recording_parts,
)
from antiphon_kernel.types.ids import NAME_LENGTH, ContextId, is_name

TYPES = ("thinking", "text", "tool_call", "usage", "end", "error")


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """An event and how many milliseconds after the end of the one before it comes."""

    wait_ms: float
    event: TurnEvent


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded turn of the model called `model`."""

    model: str
    title: str
    rounds: tuple[tuple[RecordedStep, ...], ...]
    is_answer: bool = False
    """The person of the file comes first: no model begins by itself."""


def load_recordings(path: Path) -> list[Recording]:
    """Read the turns of a recording file.

    Raises:
        RecordingError: if it cannot be read or a line of it is not what it should be.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordingError(
            f"{path}: expected a recording, a UTF-8 file of JSON lines: {error}"
        ) from error
    return parse_recordings(text, str(path), default_model=model_name(path.stem))


def parse_recordings(text: str, source: str, *, default_model: str) -> list[Recording]:
    """Read the turns in the text of a recording; `source` is what errors call it.

    Raises:
        RecordingError: if a line is not what it should be.
    """
    parts = recording_parts(text, source)
    turns = [one for one in parts if not one.is_persons]
    return [_recording(one, default_model, parts[0].is_persons) for one in turns]


def _recording(part: RecordingPart, default_model: str, is_answer: bool) -> Recording:
    model = part.header.text_field("model", default_model)
    title = part.header.text_field("title", "")
    if not is_name(model):
        raise part.header.error("a model name of a-z, 0-9, - and _", json.dumps(model))
    rounds: list[list[RecordedStep]] = [[]]
    has_ended = False
    for number, line in enumerate(part.events):
        if has_ended:
            raise line.error("nothing after the end of the turn", "another event")
        step = RecordedStep(line.number_field("at_ms"), _event(line, f"call-{number}"))
        rounds[-1].append(step)
        has_ended = isinstance(step.event, End | ProviderError)
        if isinstance(step.event, ToolCallEvent):
            rounds.append([])
    return Recording(model, title, tuple(tuple(steps) for steps in rounds), is_answer)


def model_name(stem: str) -> str:
    """A valid model name from a file's stem."""
    return re.sub(r"[^a-z0-9_-]+", "-", stem.lower()).strip("-_")[:NAME_LENGTH] or "model"


def _event(line: RecordingLine, call_id: str) -> TurnEvent:
    match line.fields.get("type"):
        case "thinking":
            return ThinkingDelta(line.text_field("text"))
        case "text":
            return TextDelta(line.text_field("text"))
        case "tool_call":
            arguments = line.fields.get("input")
            if not isinstance(arguments, dict):
                raise line.error("`input`, an object", json.dumps(arguments))
            return ToolCallEvent(
                line.text_field("id", call_id), line.text_field("name", "shell"), arguments
            )
        case "usage":
            return Usage(
                round(line.number_field("input_tokens")),
                round(line.number_field("output_tokens")),
            )
        case "end":
            return End(line.text_field("stop_reason", "end_turn"))
        case "error":
            return ProviderError(line.text_field("message"))
        case other:
            raise line.error(f"`type`, one of {', '.join(TYPES)}", json.dumps(other))


MIN_SPEED = 0.1
MAX_SPEED = 1000.0


class ScriptedProvider:
    """Plays its recordings in each context, the next one with each turn, and then again.

    `speed` divides all waiting; infinity means none.
    """

    def __init__(
        self,
        recordings: Sequence[Recording],
        *,
        speed: float = 1.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if not recordings:
            raise ValueError("a scripted model needs at least one recording")
        if not (MIN_SPEED <= speed <= MAX_SPEED or speed == math.inf):
            raise ValueError(f"speed is {MIN_SPEED} to {MAX_SPEED:.0f} or inf, not {speed}")
        self._recordings = tuple(recordings)
        self._speed = speed
        self._sleep = sleep
        self._turns: dict[ContextId, int] = {}

    async def stream(self, request: RoundRequest) -> AsyncGenerator[TurnEvent, None]:
        """One round of the recording that this turn plays."""
        if request.round == 0:
            self._turns[request.context_id] = self._turns.get(request.context_id, -1) + 1
        turn = self._turns.get(request.context_id, 0)
        rounds = self._recordings[turn % len(self._recordings)].rounds
        if request.round >= len(rounds):
            yield End("end_turn")
            return
        for step in rounds[request.round]:
            # Also without waiting the others get their turn between two events.
            await self._sleep(step.wait_ms / 1000 / self._speed)
            yield step.event
