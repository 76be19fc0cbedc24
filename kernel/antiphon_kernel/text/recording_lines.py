"""Lines of a recording, JSON objects; headers begin the turn of a model or the keys of a person.

A header is ``{"model": NAME, "title": TEXT}`` or ``{"person": true}``; the first part of a file
needs none. Every other line is an event, ``{"at_ms": N, "type": TYPE, ...}`` with `at_ms` counted
since the event before it in the same part ended, of a person's in all parts. A person's events are
``type`` with the `text` that is typed, ``keys`` with the `keys` that are pressed, and ``see`` with
a `text` until which the person waits.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from antiphon_kernel.types.errors import AntiphonError, ErrorCode


class RecordingError(AntiphonError):
    """A recording cannot be played; the message names file, line and what was expected."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_PARAMS, message)


class RecordingPart(NamedTuple):
    """A turn of a model, or keys of a person."""

    header: RecordingLine
    events: list[RecordingLine]

    @property
    def is_persons(self) -> bool:
        return self.header.fields.get("person") is True


class PersonStep(NamedTuple):
    """Keys and letters, `wait_ms` after the step before has ended and once a text is seen."""

    wait_ms: float
    keys: Sequence[str] = ()
    sees: str = ""


def recording_parts(text: str, source: str) -> list[RecordingPart]:
    """Read the parts of a recording; `source` is what errors call it.

    Raises:
        RecordingError: if a line is no JSON object, or nothing is in a part.
    """
    written = enumerate(text.split("\n"), start=1)
    lines = [RecordingLine(f"{source}:{number}", line) for number, line in written if line.strip()]
    unnamed = RecordingLine(source, "{}")
    parts: list[RecordingPart] = []
    for line in lines or [unnamed]:
        is_named = not parts or not line.fields.keys().isdisjoint(("model", "person"))
        if is_named and line.fields.keys().isdisjoint(("type", "at_ms")):
            parts.append(RecordingPart(line, []))
            continue
        if not parts:
            parts.append(RecordingPart(unnamed, []))
        parts[-1].events.append(line)
    for part in parts:
        if not part.events:
            raise part.header.error("at least one event", "none")
    return parts


def person_steps(text: str, source: str) -> Iterator[PersonStep]:
    """Yield what the person of a recording does; `source` is what errors call it.

    Raises:
        RecordingError: if a line is not what it should be.
    """
    parts = recording_parts(text, source)
    for line in (line for part in parts if part.is_persons for line in part.events):
        wait_ms = line.number_field("at_ms")
        match line.fields.get("type"):
            case "type":
                yield PersonStep(wait_ms, keys=line.text_field("text"))
            case "see":
                yield PersonStep(wait_ms, sees=line.text_field("text"))
            case "keys":
                keys = line.fields.get("keys")
                if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
                    raise line.error("`keys`, a list of strings", json.dumps(keys))
                yield PersonStep(wait_ms, keys)
            case other:
                raise line.error("`type`, one of type, keys, see", json.dumps(other))


class RecordingLine:
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

    def error(self, expected: str, found: str) -> RecordingError:
        if len(found) > 80:
            found = found[:80] + "…"
        return RecordingError(f"{self._place}: expected {expected}; found {found}")

    def text_field(self, key: str, default: str | None = None) -> str:
        value = self.fields.get(key, default)
        if not isinstance(value, str):
            raise self.error(f"`{key}`, a string", json.dumps(value))
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise self.error(f"`{key}`, a string of whole characters", str(error)) from error
        return value

    def number_field(self, key: str) -> float:
        value = self.fields.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(f"`{key}`, a number", json.dumps(value))
        if not 0 <= value < math.inf:
            raise self.error(f"`{key}`, a number from 0 up", json.dumps(value))
        return value
