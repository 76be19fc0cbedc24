"""A replay as a recording that `antiphon demo --play` plays."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from antiphon.replay.replay import Replay, ReplayState
from antiphon_kernel.types.enums import ANSWERING_KINDS, BlockKind, PrincipalKind, Role, Status
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.types.replay import CreatedBlock, ReplayChange, SplicedText

LETTER_MS: Final = 90
"""From one key of a person to the next."""

_ENTER_MS: Final = 400
"""From the last letter of a message to the key that sends it."""

_COALESCED_MS: Final = 50
_OF_MODELS: Final = (BlockKind.TEXT, BlockKind.THINKING, BlockKind.TOOL_CALL)


@dataclass(eq=False, slots=True)
class _Part:
    """The turn of a model, or what people do."""

    header: dict[str, Any]
    ended: int = 0
    """When the last event had ended, in milliseconds since the first change."""
    events: list[dict[str, Any]] = field(default_factory=list)
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Events of calls by their blocks."""
    block: str = ""
    """The block whose text the last event is."""

    def add(self, at: int, **event: Any) -> dict[str, Any]:
        self.events.append({"at_ms": max(0, at - self.ended), **event})
        self.ended, self.block = max(at, self.ended), ""
        return self.events[-1]

    def stream(self, at: int, header: BlockHeader, text: str) -> None:
        if text and self.block == header.id and at - self.ended < _COALESCED_MS:
            self.events[-1]["text"] += text
        elif text:
            self.add(at, type=str(header.kind), text=text)
            self.block = header.id

    def call(self, at: int, header: BlockHeader) -> None:
        """Take a call's arguments once they are known; it lasts until it changes no more."""
        if header.input is not None:
            if header.id not in self.calls:
                name = header.tool_name or "shell"
                self.calls[header.id] = self.add(at, type="tool_call", name=name)
            self.calls[header.id]["input"] = json.loads(header.input)
            self.ended = max(self.ended, at)

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
            if author.kind in ANSWERING_KINDS and header.kind in _OF_MODELS:
                new = _Part({"model": author.username}, at)
                turn = parts.setdefault((author.id, header.parent), new)
                if header.kind == BlockKind.TOOL_CALL:
                    turn.call(at, header)
                elif isinstance(edit, CreatedBlock):
                    turn.stream(at, header, edit.text)
                elif isinstance(edit, SplicedText) and line.by == author.id:
                    # What it changes later it does by calls.
                    is_streamed = header.status == Status.RUNNING
                    turn.stream(at, header, edit.inserted if is_streamed else "")
            elif author.kind == PrincipalKind.HUMAN and (
                before is None or before.header.status != header.status
            ):
                is_call = header.kind == BlockKind.TOOL_CALL and header.status == Status.RUNNING
                sent = (header.kind, header.role, header.status)
                if is_call or sent == (BlockKind.TEXT, Role.USER, Status.DONE):
                    person = parts.setdefault(None, _Part({"person": True}))
                    person.send(at, f"!{text}" if is_call else text)
    written = (one for part in parts.values() if part.events for one in (part.header, *part.events))
    return "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in written)
