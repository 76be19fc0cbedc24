"""A replay as it was read: its steps, when each is shown, and its state at some of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Final, NamedTuple

from antiphon_kernel.document.header import read_header, stored_header, stored_value
from antiphon_kernel.text.transform import shift_offset
from antiphon_kernel.types.enums import Activity, BlockKind, PrincipalKind, Role
from antiphon_kernel.types.errors import invalid_params
from antiphon_kernel.types.records import BlockHeader, TextSplice
from antiphon_kernel.types.replay import (
    ReplayChange,
    ReplayEdit,
    ReplayEnd,
    ReplayHeader,
    ReplayPresence,
    ReplayPrincipal,
    SplicedText,
    read_replay_line,
)

STEPS_APART: Final = 256
"""Steps between two states that are kept: no seek carries out more."""

_TITLE: Final = 60
"""Characters of a message in the title of its mark."""


class ReplayBlock(NamedTuple):
    """A block at one moment."""

    header: BlockHeader
    text: str


@dataclass(slots=True)
class ReplayState:
    """Everything at one moment."""

    blocks: dict[str, ReplayBlock] = field(default_factory=dict)
    places: dict[str, ReplayPresence] = field(default_factory=dict)
    """Of sessions."""

    def is_here(self, principal: str) -> bool:
        return any(one.by == principal for one in self.places.values())

    def copy(self) -> ReplayState:
        return ReplayState(dict(self.blocks), dict(self.places))


class ReplayStep(NamedTuple):
    """A change or a presence."""

    at_ms: int
    """When it is shown: pauses are shortened."""
    line: ReplayChange | ReplayPresence


class ReplayMark(NamedTuple):
    """A moment that people look for."""

    at_ms: int
    kind: str
    """`message`, `call`, `come` or `leave`."""
    title: str
    by: str
    """Id of the principal."""


class Replay:
    """Steps of one context, from its first change to its last."""

    def __init__(self, header: ReplayHeader) -> None:
        self.header = header
        self.people: dict[str, ReplayPrincipal] = {}
        """Everybody in it, by id."""
        self.steps: list[ReplayStep] = []
        self.marks: list[ReplayMark] = []
        self.states: list[ReplayState] = []
        """Before every `STEPS_APART` steps."""
        self.last = ReplayState()
        """Behind the last step."""

    @property
    def label(self) -> str:
        return self.header.label

    @property
    def duration_ms(self) -> int:
        return self.steps[-1].at_ms if self.steps else 0

    @classmethod
    def read(cls, lines: Iterable[bytes], *, max_pause: float = inf) -> Replay:
        """Read the lines of a replay.

        Args:
            max_pause: seconds to which longer pauses are shortened.

        Raises:
            AntiphonError: invalid_params.
        """
        parts = map(read_replay_line, count(1), lines)
        header = one = next(parts, None)
        if not isinstance(header, ReplayHeader):
            raise invalid_params("A replay begins with a header: there is none.")
        replay, before, at = cls(header), 0, 0.0
        for number, one in enumerate(parts, 2):
            if isinstance(one, ReplayPrincipal):
                replay.people[one.id] = one
            elif isinstance(one, ReplayChange | ReplayPresence):
                at += min(max(0, one.at - before), max_pause * 1000)
                before = max(before, one.at)
                if len(replay.steps) % STEPS_APART == 0:
                    replay.states.append(replay.last.copy())
                replay.steps.append(ReplayStep(round(at), one))
                try:
                    replay.marks += replay.carry_out(replay.steps[-1], replay.last)
                except (KeyError, ValueError) as error:
                    raise invalid_params(f"Line {number} does not fit: {error}.") from error
        if not isinstance(one, ReplayEnd):
            raise invalid_params("The replay has been broken off: its last line is missing.")
        return replay

    def carry_out(self, step: ReplayStep, state: ReplayState) -> list[ReplayMark]:
        """Do to a state what a step says; return its marks.

        Raises:
            KeyError, ValueError: if it does not fit.
        """
        line, places = step.line, state.places
        if isinstance(line, ReplayPresence):
            who, was_here = self.people[line.by], state.is_here(line.by)
            old = places.get(line.session, line)
            if (old.activity, old.cursor is None) != (line.activity, line.cursor is None):
                del places[line.session]  # who has begun to write last comes last
            if line.activity is not None:
                places[line.session] = line
            is_here = state.is_here(line.by)
            if who.kind != PrincipalKind.HUMAN or was_here == is_here:
                return []
            kind = "come" if is_here else "leave"
            return [ReplayMark(step.at_ms, kind, f"{who.username} {kind}s", line.by)]
        marks = []
        for edit in line.edits:
            before = state.blocks.get(edit.block)
            block = state.blocks[edit.block] = _edited(before, edit)
            if isinstance(edit, SplicedText):
                _shift(places, edit)
            if block.header.author not in self.people:
                raise ValueError(f"nobody is named as author of {edit.block}")
            kind = _kind_of(block)
            if kind and (before is None or _kind_of(before) != kind):
                marks.append(ReplayMark(step.at_ms, kind, self._title(block), block.header.author))
        return marks

    def _title(self, block: ReplayBlock) -> str:
        header = block.header
        who = self.people[header.author].username
        if header.kind == BlockKind.TOOL_CALL:
            return f"{who} calls {header.tool_name}"
        return f"{who}: {' '.join(block.text[:_TITLE].split())}"


def _kind_of(block: ReplayBlock) -> str:
    """Return the kind of the mark where a block has come to be; empty if there is none."""
    header = block.header
    if header.kind == BlockKind.TOOL_CALL:
        return "call"
    is_message = header.kind == BlockKind.TEXT and header.role == Role.USER
    return "message" if is_message and not header.is_draft else ""


def _edited(block: ReplayBlock | None, edit: ReplayEdit) -> ReplayBlock:
    """Return a block after an edit; raises ValueError for fields that headers do not have."""
    header, text = block or (read_header(edit.block, {}), "")
    if isinstance(edit, SplicedText):
        end = edit.offset + edit.deleted
        if not 0 <= edit.offset <= end <= len(text):
            raise ValueError(f"block {edit.block} has no code points {edit.offset} to {end}")
        return ReplayBlock(header, text[: edit.offset] + edit.inserted + text[end:])
    fields, text = (edit.header, edit.text) if edit.edit == "create" else (edit.fields, text)
    values = {name: stored_value(name, value) for name, value in fields.items()}
    return ReplayBlock(read_header(edit.block, stored_header(header) | values), text)


def _shift(places: dict[str, ReplayPresence], edit: SplicedText) -> None:
    """Carry cursors along, as the app does with those of others."""
    splice = TextSplice(edit.offset, edit.deleted, edit.inserted)
    for session, one in places.items():
        if one.block == edit.block and one.cursor is not None:
            is_append_point = one.activity == Activity.STREAMING
            cursor = shift_offset(one.cursor, splice, stick="right" if is_append_point else "left")
            anchor = one.anchor and shift_offset(one.anchor, splice, stick="left")
            places[session] = one.model_copy(update={"cursor": cursor, "anchor": anchor})
