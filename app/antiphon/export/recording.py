"""A replay as a recording that `antiphon demo --play` plays."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from antiphon.replay.replay import ReplayBlock, edited_block
from antiphon_kernel.types.enums import ANSWERING_KINDS, BlockKind, PrincipalKind, Role, Status
from antiphon_kernel.types.replay import (
    CreatedBlock,
    ReplayChange,
    ReplayEdit,
    ReplayLine,
    ReplayPrincipal,
    SplicedText,
)

LETTER_MS: Final = 90
"""From one key of a person to the next."""

_ENTER_MS: Final = 400
"""From the last letter of a message to the key that sends it."""

_PERSON: Final = ("", None)
_COALESCED_MS: Final = 50
_LONGEST_PAUSE_MS: Final = 3_000
_STREAMED: Final = (BlockKind.TEXT, BlockKind.THINKING)


@dataclass(eq=False, slots=True)
class _Part:
    header: dict[str, Any]
    ended: int
    """When the last event had ended, in milliseconds since the first change."""
    events: list[dict[str, Any]] = field(default_factory=list)
    block: str = ""
    """The block whose text the last event is."""

    def add(self, at: int, **event: Any) -> dict[str, Any]:
        self.events.append({"at_ms": max(0, at - self.ended), **event})
        self.ended, self.block = max(at, self.ended), ""
        return self.events[-1]


class _Recorder:
    """Collects the turns of models and the messages of people."""

    def __init__(self) -> None:
        self._people: dict[str, ReplayPrincipal] = {}
        self._blocks: dict[str, ReplayBlock] = {}
        self._calls: dict[str, dict[str, Any]] = {}
        """Events of calls by their blocks."""
        self.parts: dict[tuple[str, str | None], _Part] = {}
        """Turns by author and the message that is answered, and what the person does."""

    def take(self, line: ReplayLine, at: int) -> None:
        if isinstance(line, ReplayPrincipal):
            self._people[line.id] = line
        elif isinstance(line, ReplayChange):
            for edit in line.edits:
                before = self._blocks.get(edit.block)
                block = self._blocks[edit.block] = edited_block(before, edit)
                author = self._people[block.header.author]
                if author.kind in ANSWERING_KINDS:
                    self._model_writes(edit, block, author, at, is_own=line.by == author.id)
                elif author.kind == PrincipalKind.HUMAN and (
                    before is None or before.header.status != block.header.status
                ):
                    self._person_writes(block, at)

    def _model_writes(
        self,
        edit: ReplayEdit,
        block: ReplayBlock,
        author: ReplayPrincipal,
        at: int,
        *,
        is_own: bool,
    ) -> None:
        header, kind = block.header, block.header.kind
        if kind not in (*_STREAMED, BlockKind.TOOL_CALL):
            return
        key = (author.id, header.parent)
        turn = self.parts.setdefault(key, _Part({"model": author.username}, at))
        if kind == BlockKind.TOOL_CALL:
            if header.input is None:
                return
            call = self._calls.get(edit.block)
            if call is None:
                name = header.tool_name or "shell"
                call = self._calls[edit.block] = turn.add(at, type="tool_call", name=name)
            call["input"] = json.loads(header.input)
            turn.ended = max(turn.ended, at)
            return
        text = edit.text if isinstance(edit, CreatedBlock) else ""
        if isinstance(edit, SplicedText) and is_own and header.status == Status.RUNNING:
            text = edit.inserted
        if text and turn.block == edit.block and at - turn.ended < _COALESCED_MS:
            turn.events[-1]["text"] += text
        elif text:
            turn.add(at, type=str(kind), text=text)
            turn.block = edit.block

    def _person_writes(self, block: ReplayBlock, at: int) -> None:
        kind, role, status = block.header.kind, block.header.role, block.header.status
        if (kind, role, status) == (BlockKind.TEXT, Role.USER, Status.DONE):
            text = block.text
        elif (kind, status) == (BlockKind.TOOL_CALL, Status.RUNNING):
            text = f"!{block.text}"
        else:
            return
        person = self.parts.setdefault(_PERSON, _Part({"person": True}, 0))
        typing = LETTER_MS * len(text)
        person.add(at - typing - _ENTER_MS, type="type", text=text)
        person.ended += typing
        person.add(max(at, person.ended + _ENTER_MS), type="keys", keys=["enter"])


def recording_of(lines: Iterable[ReplayLine]) -> str:
    """Return the recording: models' turns, and people's messages as one person's keys."""
    recorder, at, before = _Recorder(), 0, 0
    for line in lines:
        if isinstance(line, ReplayChange):
            at, before = at + min(line.at - before, _LONGEST_PAUSE_MS), line.at
        recorder.take(line, at)
    written = []
    for part in recorder.parts.values():
        if part.events:
            ends = [{"at_ms": 0, "type": "end"}] if "model" in part.header else []
            written += [part.header, *part.events, *ends]
    return "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in written)
