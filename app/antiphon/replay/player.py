"""Position in a replay, and the document at it."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Mapping
from time import monotonic
from typing import Final
from zlib import crc32

from antiphon.replay.replay import STEPS_APART, Replay, ReplayBlock, ReplayState
from antiphon_kernel.document.changes import REMOTE
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.header import field_values
from antiphon_kernel.text.splice_diff import common_prefix, common_suffix
from antiphon_kernel.types.block_metadata import CUT_OUT
from antiphon_kernel.types.enums import Activity, BlockKind, PrincipalKind, Role, Status
from antiphon_kernel.types.ids import ContextId
from antiphon_kernel.types.presence import PresenceState
from antiphon_kernel.types.records import BlockHeader, Member
from antiphon_kernel.types.replay import (
    ChangedHeader,
    ReplayChange,
    ReplayEdit,
    ReplayPresence,
    SplicedText,
)
from antiphon_kernel.types.signal import Signal

FRAME_SECONDS: Final = 1 / 30

SLOWEST: Final = 0.25
FASTEST: Final = 100.0

LEAD_MS: Final = 2_000
"""How long before a moment it begins to matter what was written: that is new text then."""

TYPING_MS: Final = 3_000
"""How long after they have written people count as typing, where that is not recorded."""

_CLIENT: Final = 1
_EPOCH: Final = "1"


class Player:
    """A replay at one moment, and its clock.

    The document has all blocks from the beginning: those that are not there are cut out.
    """

    def __init__(self, replay: Replay) -> None:
        self.replay = replay
        self.at_ms = 0
        self._taken = 0
        """Steps up to this moment."""
        self._state = ReplayState()
        self.jumping = Signal[()]()
        """Another moment is shown next, which may be an earlier one."""
        self.stepped = Signal[()]()
        """One step has been made on the way."""
        self.moved = Signal[()]()
        """The moment is another one, and all that has changed is there."""
        self.changed = Signal[()]()
        """`is_playing` or `speed` is another one."""
        self.speed = 1.0
        self._since = 0.0
        """When it was played on last."""
        self._playing = asyncio.Event()
        context = ContextId(replay.header.context_id)
        document = Document.create(_CLIENT, context=context, epoch=_EPOCH, label=replay.label)
        self.document: Final = document
        self.edits = 0
        """Writes into the document so far; for measuring."""
        self._absent: Mapping[str, ReplayBlock] = {
            block: _absent(one.header) for block, one in replay.last.blocks.items()
        }
        with document.transaction(REMOTE):
            for one in replay.people.values():
                document.set_member(Member(one.id, one.username, one.kind, one.colour))
            for block in self._absent.values():
                document.create_block(block.header)
        self.seek(0)

    # Playing

    @property
    def is_playing(self) -> bool:
        return self._playing.is_set()

    def set_speed(self, speed: float) -> None:
        """Play so many times as fast as it was, within bounds."""
        self.speed = max(SLOWEST, min(speed, FASTEST))
        self.changed.notify()

    def play(self) -> None:
        """Go on by itself; at the end, from the start."""
        if self.at_ms >= self.replay.duration_ms:
            self.seek(0)
        self._since = monotonic()
        self._playing.set()
        self.changed.notify()

    def pause(self) -> None:
        self._playing.clear()
        self.changed.notify()

    async def run(self) -> None:
        """Move on while it is to be played."""
        while await self._playing.wait():
            await asyncio.sleep(FRAME_SECONDS)
            passed, self._since = monotonic() - self._since, monotonic()
            if self.is_playing:
                self.seek(self.at_ms + round(passed * 1000 * self.speed))
            if self.at_ms >= self.replay.duration_ms:
                self.pause()

    @property
    def version(self) -> int:
        """Return the version of the context at this moment."""
        lines = (one.line for one in reversed(self.replay.steps[: self._taken]))
        return next((one.version for one in lines if isinstance(one, ReplayChange)), 0)

    def seek(self, at_ms: int) -> None:
        """Go to a moment; before the first and behind the last there is none."""
        at_ms = max(0, min(at_ms, self.replay.duration_ms))
        target = self._steps_until(at_ms)
        if at_ms < self.at_ms or target - self._taken > STEPS_APART:
            self._jump(max(0, at_ms - LEAD_MS), target)
        while self._taken < target:
            step = self.replay.steps[self._taken]
            self._taken, self.at_ms = self._taken + 1, step.at_ms
            self.replay.carry_out(step.line, self._state)
            if isinstance(step.line, ReplayChange):
                with self.document.transaction(REMOTE):
                    for edit in step.line.edits:
                        self._write(edit)
            self.stepped.notify()
        self.at_ms = at_ms
        self.moved.notify()

    def _steps_until(self, at_ms: int) -> int:
        return bisect_right(self.replay.steps, at_ms, key=lambda step: step.at_ms)

    def _jump(self, at_ms: int, target: int) -> None:
        """Write the difference to a moment a little before a step."""
        self._taken = max(self._steps_until(at_ms), target - STEPS_APART // 2)
        kept = self._taken // STEPS_APART
        before, state = self._state, self.replay.states[kept].copy()
        for step in self.replay.steps[kept * STEPS_APART : self._taken]:
            self.replay.carry_out(step.line, state)
        self.at_ms, self._state = at_ms, state
        self.jumping.notify()
        with self.document.transaction(None):
            for block, absent in self._absent.items():
                shown, wanted = before.blocks.get(block, absent), state.blocks.get(block, absent)
                if shown != wanted:
                    self._rewrite(block, shown, wanted)
        self.stepped.notify()

    def _write(self, edit: ReplayEdit) -> None:
        self.edits += 1
        if isinstance(edit, SplicedText):
            self.document.splice(edit.block, edit.offset, edit.deleted, edit.inserted)
        elif isinstance(edit, ChangedHeader):
            self.document.set_fields(edit.block, **edit.fields)
        else:
            wanted = self._state.blocks[edit.block]
            self._rewrite(edit.block, self._absent[edit.block], wanted._replace(text=edit.text))

    def _rewrite(self, block: str, shown: ReplayBlock, wanted: ReplayBlock) -> None:
        self.edits += 1
        fields = zip(field_values(shown.header), field_values(wanted.header), strict=True)
        changed = {name: value for (_, before), (name, value) in fields if value != before}
        if changed:
            self.document.set_fields(block, **changed)
        if shown.text != wanted.text:
            start = common_prefix(shown.text, wanted.text)
            end = common_suffix(shown.text, wanted.text, start)
            inserted = wanted.text[start : len(wanted.text) - end]
            self.document.splice(block, start, len(shown.text) - end - start, inserted)

    @property
    def _offset_ms(self) -> int:
        """Milliseconds since the first change, as it was."""
        if not self._taken:
            return self.at_ms
        step = self.replay.steps[self._taken - 1]
        return step.line.at + self.at_ms - step.at_ms

    def now_ms(self) -> int:
        """Return when it was, in milliseconds since the epoch."""
        return self.replay.header.started + self._offset_ms

    def monotonic(self) -> float:
        """Return the position in seconds."""
        return self.at_ms / 1000

    def presence(self) -> Mapping[int, PresenceState]:
        """Return who is where at this moment, by numbers that stand for sessions."""
        return {
            crc32(one.session.encode()): self._presence(one)
            for one in self._state.places.values()
            if one.activity is not None
        }

    def _presence(self, place: ReplayPresence) -> PresenceState:
        who, activity = self.replay.people[place.by], place.activity
        if place.session == place.by:  # where they last wrote
            header = self._state.blocks[place.block or ""].header
            is_late = self._offset_ms - place.at > TYPING_MS
            if header.status != Status.RUNNING if who.kind != PrincipalKind.HUMAN else is_late:
                activity = Activity.IDLE
        return PresenceState(
            principal=who.id,
            username=who.username,
            kind=who.kind,
            colour=who.colour,
            session=place.session,
            block=place.block,
            cursor=place.cursor,
            anchor=place.anchor,
            activity=activity or Activity.IDLE,
        )


def _absent(header: BlockHeader) -> ReplayBlock:
    """Return a block that is not there: cut out, and empty."""
    kind, role, status = BlockKind.TEXT, Role.SYSTEM, Status.DONE
    place = header.id, kind, role, status, header.order, header.created, header.author
    return ReplayBlock(BlockHeader(*place, excluded=True, metadata={CUT_OUT: True}), "")
