"""A replay as a recording that `antiphon demo --play` plays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from antiphon.replay.replay import Replay, ReplayState
from antiphon_kernel.text.sanitize import sanitize
from antiphon_kernel.types.enums import ANSWERING_KINDS, BlockKind, PrincipalKind, Role, Status
from antiphon_kernel.types.json_validation import read_json
from antiphon_kernel.types.replay import CreatedBlock, ReplayChange, SplicedText

LETTER_MS: Final = 90
"""From one key of a person to the next."""

_ENTER_MS: Final = 400
"""From the last letter of a message to the key that sends it."""

_OF_MODELS: Final = (BlockKind.TEXT, BlockKind.THINKING, BlockKind.TOOL_CALL)


class _Part:
    """The turn of a model, or what people do."""

    def __init__(self, header: Mapping[str, Any], began: int) -> None:
        self.lines = [header]
        self.ended = began
        """When the last event had ended, in milliseconds since the first change."""

    def add(self, at: int, **event: Any) -> None:
        self.lines.append({"at_ms": max(0, at - self.ended), **event})
        self.ended = max(at, self.ended)

    def send(self, at: int, text: str) -> None:
        """Type a message that was there at a moment, and send it then or as soon as possible."""
        typing = LETTER_MS * len(text)
        self.add(at - typing - _ENTER_MS, type="type", text=text)
        self.ended += typing
        self.add(max(at, self.ended + _ENTER_MS), type="keys", keys=["enter"])


def recording_of(replay: Replay) -> str:
    """Return the recording: models' turns, and people's messages as one person's keys."""
    parts: dict[object, _Part] = {}
    state = ReplayState()
    for step in replay.steps:
        at, line = step
        edits = line.edits if isinstance(line, ReplayChange) else ()
        old = {edit.block: state.blocks.get(edit.block) for edit in edits}
        replay.carry_out(step, state)
        for edit in edits:
            header, text = state.blocks[edit.block]
            author, before = replay.people[header.author], old[edit.block]
            is_call = header.kind == BlockKind.TOOL_CALL
            if author.kind in ANSWERING_KINDS and header.kind in _OF_MODELS:
                new = _Part({"model": author.username}, at)
                turn = parts.setdefault((author.id, header.parent), new)
                written = edit.text if isinstance(edit, CreatedBlock) else ""
                if isinstance(edit, SplicedText) and line.by == author.id:
                    # What it changes later it does by calls.
                    written = edit.inserted if header.status == Status.RUNNING else ""
                if is_call and header.input is not None:
                    if before is None or before.header.input is None:
                        last = replay.last.blocks[header.id].header.input or "{}"
                        with suppress(ValueError):  # its end may be redacted: it cannot be played
                            call = {"name": header.tool_name or "shell", "input": read_json(last)}
                            turn.add(at, type="tool_call", **call)
                    turn.ended = at  # it lasts until it changes no more
                elif written and not is_call:
                    turn.add(at, type=str(header.kind), text=written)
            elif author.kind == PrincipalKind.HUMAN and (
                before is None or before.header.status != header.status
            ):
                is_run = is_call and header.status == Status.RUNNING
                sent = (header.kind, header.role, header.status)
                if is_run or sent == (BlockKind.TEXT, Role.USER, Status.DONE):
                    person = parts.setdefault(None, _Part({"person": True}, 0))
                    # Typed, what begins so would be a command.
                    is_like_command = text.startswith(("!", "/"))
                    lead = "!" if is_run else " " * is_like_command
                    person.send(at, sanitize(f"{lead}{text}"))
    lines = (one for part in parts.values() if len(part.lines) > 1 for one in part.lines)
    return "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in lines)
