"""Recordings, JSON lines that say what models did and when, and a person; and their player.

A header, ``{"model": NAME, "title": TEXT}`` or ``{"person": true}``, begins a turn of a model or
what the person of a demo does; the first turn needs none. Every other line is an event,
``{"at_ms": N, "type": TYPE, ...}`` with `at_ms` counted since the previous event ended. Of a
model's, ``text`` and ``thinking`` carry `text`; ``tool_call`` carries `name`, `input` and perhaps
`id`, ends its round, and has ended when the real result of the call is there; ``usage`` carries
`input_tokens` and `output_tokens`; ``end`` perhaps `stop_reason`; ``error`` carries `message`. Of
a person's, ``type`` carries the `text` that is typed, ``keys`` the `keys` that are pressed, and
``see`` a `text` until which the person waits.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from antiphon_kernel.providers import events
from antiphon_kernel.providers.model_config import TokenUsage
from antiphon_kernel.providers.provider import RoundRequest
from antiphon_kernel.types.errors import AntiphonError, invalid_params
from antiphon_kernel.types.ids import NAME_LENGTH, ContextId, is_name
from antiphon_kernel.types.quoting import truncate

TYPES = ("thinking", "text", "tool_call", "usage", "end", "error")


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """An event and how many milliseconds after the end of the one before it comes."""

    wait_ms: float
    event: events.TurnEvent


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded turn of the model called `model`."""

    model: str
    rounds: tuple[tuple[RecordedStep, ...], ...]
    is_answer: bool = False
    """The person of the file comes first: no model begins by itself."""


def load_recordings(path: Path) -> list[Recording]:
    """Read the turns of a recording file.

    Raises:
        AntiphonError: invalid_params, naming file, line and what was expected, if it cannot be
            read, or a line of it is not what it should be.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = f"{path}: expected a recording, a UTF-8 file of JSON lines: {error}"
        raise invalid_params(said) from error
    return parse_recordings(text, str(path), default_model=model_name(path.stem))


def parse_recordings(text: str, source: str, *, default_model: str) -> list[Recording]:
    """Read the turns in the text of a recording; `source` is what errors call it.

    Raises:
        AntiphonError: if a line is not what it should be, also of what a person does.
    """
    lines = enumerate(text.split("\n"), start=1)
    objects = [_RecordingLine(f"{source}:{number}", line) for number, line in lines if line.strip()]
    unnamed = _RecordingLine(source, "{}")
    parts: list[list[_RecordingLine]] = []
    for line in objects or [unnamed]:
        is_named = not parts or not line.fields.keys().isdisjoint(("model", "person"))
        is_header = is_named and line.fields.keys().isdisjoint(("type", "at_ms"))
        if is_header or not parts:
            parts.append([line if is_header else unnamed])
        if not is_header:
            parts[-1].append(line)
    turns: list[Recording] = []
    for header, *rest in parts:
        if not rest:
            raise header.error("at least one event", "none")
        if not header.is_persons:
            turns.append(_turn(header, rest, default_model, parts[0][0].is_persons))
            continue
        for one in rest:
            _check_person(one)
    return turns


def _turn(
    header: _RecordingLine, rest: Sequence[_RecordingLine], default_model: str, is_answer: bool
) -> Recording:
    model = header.text_field("model", default_model)
    if not is_name(model):
        raise header.error("a model name of a-z, 0-9, - and _", json.dumps(model))
    rounds: list[list[RecordedStep]] = [[]]
    has_ended = False
    for number, line in enumerate(rest):
        if has_ended:
            raise line.error("nothing after the end of the turn", "another event")
        step = RecordedStep(line.number_field("at_ms"), _event(line, f"call-{number}"))
        rounds[-1].append(step)
        has_ended = isinstance(step.event, events.End | events.ProviderError)
        if isinstance(step.event, events.ToolCallEvent):
            rounds.append([])
    return Recording(model, tuple(tuple(steps) for steps in rounds), is_answer)


def model_name(stem: str) -> str:
    """A valid model name from a file's stem."""
    return re.sub(r"[^a-z0-9_-]+", "-", stem.lower()).strip("-_")[:NAME_LENGTH] or "model"


def _event(line: _RecordingLine, call_id: str) -> events.TurnEvent:
    match line.fields.get("type"):
        case "thinking":
            return events.ThinkingDelta(line.text_field("text"))
        case "text":
            return events.TextDelta(line.text_field("text"))
        case "tool_call":
            arguments = line.fields.get("input")
            if not isinstance(arguments, dict):
                raise line.error("`input`, an object", json.dumps(arguments))
            return events.ToolCallEvent(
                line.text_field("id", call_id), line.text_field("name", "shell"), arguments
            )
        case "usage":
            names = ("input_tokens", "output_tokens")
            return TokenUsage(**{name: round(line.number_field(name)) for name in names})
        case "end":
            return events.End(line.text_field("stop_reason", "end_turn"))
        case "error":
            return events.ProviderError(line.text_field("message"))
        case other:
            raise line.error(f"`type`, one of {', '.join(TYPES)}", json.dumps(other))


def _check_person(line: _RecordingLine) -> None:
    line.number_field("at_ms")
    match line.fields.get("type"):
        case "type" | "see":
            line.text_field("text")
        case "keys":
            keys = line.fields.get("keys")
            if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
                raise line.error("`keys`, a list of strings", json.dumps(keys))
        case other:
            raise line.error("`type`, one of type, keys, see", json.dumps(other))


class _RecordingLine:
    """One line of a recording, read as a JSON object."""

    def __init__(self, place: str, line: str) -> None:
        self._place = place
        try:
            fields = json.loads(line)
        except ValueError as error:
            raise self.error("a JSON object", str(error)) from error
        if not isinstance(fields, dict):
            raise self.error("a JSON object", json.dumps(fields))
        self.fields: Mapping[str, Any] = fields
        self.is_persons = fields.get("person") is True

    def error(self, expected: str, found: str) -> AntiphonError:
        return invalid_params(f"{self._place}: expected {expected}; found {truncate(found)}")

    def text_field(self, key: str, default: str | None = None) -> str:
        value = self.fields.get(key, default)
        if not isinstance(value, str):
            raise self.error(f"`{key}`, a string", json.dumps(value))
        return value

    def number_field(self, key: str) -> float:
        value: Any = self.fields.get(key)
        if type(value) not in (int, float) or not 0 <= value < math.inf:
            raise self.error(f"`{key}`, a number from 0 up", json.dumps(value))
        return float(value)


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
        self._recordings = tuple(recordings)
        self._speed = speed
        self._sleep = sleep
        self._turns: dict[ContextId, int] = {}

    async def stream(self, request: RoundRequest) -> AsyncGenerator[events.TurnEvent, None]:
        """One round of the recording that this turn plays."""
        if request.round == 0:
            self._turns[request.context_id] = self._turns.get(request.context_id, -1) + 1
        turn = self._turns.get(request.context_id, 0)
        rounds = self._recordings[turn % len(self._recordings)].rounds
        if request.round >= len(rounds):
            yield events.End("end_turn")
            return
        for step in rounds[request.round]:
            # Also without waiting the others get their turn between two events.
            await self._sleep(step.wait_ms / 1000 / self._speed)
            yield step.event
