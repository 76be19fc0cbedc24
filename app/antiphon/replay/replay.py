"""A replay as it was read: its steps, when each is shown, and its state at some of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

from antiphon_kernel.document.header import ENUMS, known_value, stored_value
from antiphon_kernel.text.transform import shift_offset
from antiphon_kernel.types.enums import Activity, BlockKind, PrincipalKind, Role
from antiphon_kernel.types.errors import AntiphonError, invalid_params
from antiphon_kernel.types.records import BlockHeader, TextSplice
from antiphon_kernel.types.replay import (
    ChangedHeader,
    CreatedBlock,
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

_WRITING: Final[Mapping[str, Activity]] = {
    PrincipalKind.HUMAN: Activity.TYPING,
    PrincipalKind.MODEL: Activity.STREAMING,
    PrincipalKind.AGENT: Activity.STREAMING,
}
"""Activities of who writes, by kind of principal; of others no cursor is shown."""

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
    """Of sessions, also those that have left; of people and models whose presence has not been
    recorded until now, by their id, where they last wrote."""

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
        self.is_whole = False
        """The last line is there: nothing has been broken off."""

    @property
    def label(self) -> str:
        return self.header.label

    @property
    def duration_ms(self) -> int:
        return self.steps[-1].at_ms if self.steps else 0

    @classmethod
    def read(cls, lines: Iterable[bytes], *, max_pause: float | None) -> Replay:
        """Read the lines of a replay.

        Args:
            max_pause: seconds to which longer pauses are shortened; None leaves them.

        Raises:
            AntiphonError: invalid_params, naming the line.
        """
        replay: Replay | None = None
        before, at = 0, 0.0
        for number, line in enumerate(lines, 1):
            try:
                one = read_replay_line(number, line)
            except AntiphonError:
                if replay is None or line.endswith(b"\n"):
                    raise
                break  # in the middle of a line
            if isinstance(one, ReplayHeader) or replay is None:
                if not isinstance(one, ReplayHeader) or replay is not None:
                    raise invalid_params(f"Line {number} is the {one.type} of no replay.")
                replay = cls(one)
            elif isinstance(one, ReplayPrincipal):
                replay.people[one.id] = one
            elif isinstance(one, ReplayEnd):
                replay.is_whole = True
            else:
                pause = max(0, one.at - before)
                at += pause if max_pause is None else min(pause, max_pause * 1000)
                before = max(before, one.at)
                if len(replay.steps) % STEPS_APART == 0:
                    replay.states.append(replay.last.copy())
                try:
                    marks = replay.carry_out(one, replay.last)
                except (KeyError, TypeError, ValueError) as error:
                    raise invalid_params(f"Line {number} does not fit: {error}.") from error
                replay.steps.append(ReplayStep(round(at), one))
                replay.marks += [ReplayMark(round(at), *mark) for mark in marks]
        if replay is None:
            raise invalid_params("There is nothing in it: a replay begins with a header.")
        return replay

    def carry_out(
        self, line: ReplayChange | ReplayPresence, state: ReplayState
    ) -> list[tuple[str, str, str]]:
        """Do to a state what a line says; return what its marks are made of.

        Raises:
            KeyError, TypeError, ValueError: if it does not fit.
        """
        who, places = self.people[line.by], state.places
        if isinstance(line, ReplayPresence):
            here = {one.session for one in places.values() if one.by == line.by and one.activity}
            stays = line.activity or here - {line.session, line.by}
            places.pop(line.by, None)
            places[line.session] = line
            if who.kind != PrincipalKind.HUMAN or bool(here) == bool(stays):
                return []
            kind = "come" if stays else "leave"
            return [(kind, f"{who.username} {kind}s", line.by)]
        marks = []
        for edit in line.edits:
            before = state.blocks.get(edit.block)
            block = state.blocks[edit.block] = _edited(before, edit)
            if isinstance(edit, SplicedText):
                _shift(places, edit)
            kind = _kind_of(block)
            if kind and (before is None or _kind_of(before) != kind):
                marks.append((kind, self._title(block), block.header.author))
        written = [one for one in line.edits if not isinstance(one, ChangedHeader)]
        is_recorded = any(one.by == line.by and one.session != line.by for one in places.values())
        if written and who.kind in _WRITING and not is_recorded:
            last, at, activity = written[-1], line.at, _WRITING[who.kind]
            start = 0 if isinstance(last, CreatedBlock) else last.offset
            cursor = start + len(last.text if isinstance(last, CreatedBlock) else last.inserted)
            place = partial(ReplayPresence, session=line.by, by=line.by, block=last.block)
            places[line.by] = place(at=at, activity=activity, cursor=cursor)
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
    if isinstance(edit, CreatedBlock) and block is None:
        return ReplayBlock(BlockHeader(id=edit.block, **_values(edit.header)), edit.text)
    if isinstance(edit, CreatedBlock) or block is None:
        raise ValueError(f"block {edit.block} is {'not there' if block is None else 'there'}")
    if isinstance(edit, ChangedHeader):
        return block._replace(header=block.header._replace(**_values(edit.fields)))
    end = edit.offset + edit.deleted
    if not 0 <= edit.offset <= end <= len(block.text):
        raise ValueError(f"block {edit.block} has no code points {edit.offset} to {end}")
    return block._replace(text=block.text[: edit.offset] + edit.inserted + block.text[end:])


def _values(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return header fields as a header has them; raises KeyError, ValueError if they are none."""
    return {
        name: BlockHeader._field_defaults[name]
        if stored_value(name, value) is None
        else known_value(name, value)
        if name in ENUMS
        else value
        for name, value in fields.items()
    }


def _shift(places: dict[str, ReplayPresence], edit: SplicedText) -> None:
    """Carry cursors along, as the app does with those of others."""
    splice = TextSplice(edit.offset, edit.deleted, edit.inserted)
    for session, one in places.items():
        if one.block == edit.block and one.cursor is not None:
            is_append_point = one.activity == Activity.STREAMING
            cursor = shift_offset(one.cursor, splice, stick="right" if is_append_point else "left")
            anchor = one.anchor and shift_offset(one.anchor, splice, stick="left")
            if (cursor, anchor) != (one.cursor, one.anchor):
                places[session] = one.model_copy(update={"cursor": cursor, "anchor": anchor})
