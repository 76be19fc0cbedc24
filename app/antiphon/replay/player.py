"""Position in a replay, and the document at it."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from time import monotonic
from typing import Final
from zlib import crc32

from antiphon.replay.replay import STEPS_APART, Replay, ReplayBlock, ReplayState
from antiphon_kernel.document.changes import REMOTE
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.header import field_values
from antiphon_kernel.text.splice_diff import Replacement, as_splices
from antiphon_kernel.types.block_metadata import CUT_OUT
from antiphon_kernel.types.enums import Activity
from antiphon_kernel.types.ids import ContextId
from antiphon_kernel.types.presence import PresenceState
from antiphon_kernel.types.records import BlockHeader, Member
from antiphon_kernel.types.replay import ReplayChange, SplicedText
from antiphon_kernel.types.signal import Signal

FRAME_SECONDS: Final = 1 / 30

LEAD_MS: Final = 2_000
"""How long before a moment it begins to matter what was written: that is new text then."""


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
        """The moment is another one, with all that has changed, or it is played otherwise."""
        self.speed = 1.0
        self._since = 0.0
        """When it was played on last."""
        self._playing = asyncio.Event()
        context = ContextId(replay.header.context_id)
        self.document: Final = Document.create(1, context=context, epoch="1", label=replay.label)
        self._absent: Mapping[str, ReplayBlock] = {
            block: _absent(one.header) for block, one in replay.last.blocks.items()
        }
        with self.document.transaction(REMOTE):
            for one in replay.people.values():
                self.document.set_member(Member(one.id, one.username, one.kind, one.colour))
            for block in self._absent.values():
                self.document.create_block(block.header)
        self.seek(0)

    @property
    def is_playing(self) -> bool:
        return self._playing.is_set()

    def set_speed(self, speed: float) -> None:
        """Play so many times as fast as it was, within bounds."""
        self.speed = max(0.25, min(speed, 100.0))
        self.moved.notify()

    def play(self) -> None:
        """Go on by itself; at the end, from the start."""
        if self.at_ms >= self.replay.duration_ms:
            self.seek(0)
        self._since = monotonic()
        self._playing.set()
        self.moved.notify()

    def pause(self) -> None:
        self._playing.clear()
        self.moved.notify()

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
        """Return the version of the context at this moment; the first has nothing in it."""
        lines = (one.line for one in reversed(self.replay.steps[: self._taken]))
        return next((one.version for one in lines if isinstance(one, ReplayChange)), 1)

    def seek(self, at_ms: int) -> None:
        """Go to a moment; before the first and behind the last there is none."""
        at_ms = max(0, min(at_ms, self.replay.duration_ms))
        target = self._steps_until(at_ms)
        if at_ms < self.at_ms or target - self._taken > STEPS_APART:
            self._jump(max(0, at_ms - LEAD_MS), target)
        for step in self.replay.steps[self._taken : target]:
            self._taken, self.at_ms = self._taken + 1, step.at_ms
            edits = step.line.edits if isinstance(step.line, ReplayChange) else []
            before = self._blocks(edit.block for edit in edits)
            self.replay.carry_out(step, self._state)
            with self.document.transaction(REMOTE):
                self._write(before, [one for one in edits if isinstance(one, SplicedText)])
            self.stepped.notify()
        self.at_ms = at_ms
        self.moved.notify()

    def _steps_until(self, at_ms: int) -> int:
        return bisect_right(self.replay.steps, at_ms, key=lambda step: step.at_ms)

    def _jump(self, at_ms: int, target: int) -> None:
        """Write the difference to a moment a little before a step."""
        self._taken = max(self._steps_until(at_ms), target - STEPS_APART // 2)
        kept = self._taken // STEPS_APART
        before, state = self._blocks(self._absent), self.replay.states[kept].copy()
        for step in self.replay.steps[kept * STEPS_APART : self._taken]:
            self.replay.carry_out(step, state)
        self.at_ms, self._state = at_ms, state
        self.jumping.notify()
        with self.document.transaction(None):
            self._write(before)
        self.stepped.notify()

    def _blocks(self, blocks: Iterable[str]) -> Mapping[str, ReplayBlock]:
        return {block: self._state.blocks.get(block, self._absent[block]) for block in blocks}

    def _write(self, before: Mapping[str, ReplayBlock], edits: Sequence[SplicedText] = ()) -> None:
        """Write what is another now; how texts have changed, if it is not known, as one splice."""
        for block, wanted in self._blocks(before).items():
            shown = before[block]
            if shown == wanted:
                continue
            fields = zip(field_values(shown.header), field_values(wanted.header), strict=True)
            changed = {name: value for (_, old), (name, value) in fields if value != old}
            if changed:
                self.document.set_fields(block, **changed)
            whole = Replacement(0, len(shown.text), wanted.text)
            known = [one for one in edits if one.block == block]
            for one in known or as_splices(shown.text, [whole]):
                self.document.splice(block, one.offset, one.deleted, one.inserted)

    def now_ms(self) -> int:
        """Return when it was, in milliseconds since the epoch."""
        started = self.replay.header.started
        if not self._taken:
            return started + self.at_ms
        step = self.replay.steps[self._taken - 1]
        return started + step.line.at + self.at_ms - step.at_ms

    def monotonic(self) -> float:
        """Return the position in seconds."""
        return self.at_ms / 1000

    def presence(self) -> Mapping[int, PresenceState]:
        """Return who is where at this moment, by numbers that stand for sessions."""
        people = self.replay.people
        return {
            crc32(one.session.encode()): PresenceState(
                principal=one.by,
                username=people[one.by].username,
                kind=people[one.by].kind,
                colour=people[one.by].colour,
                session=one.session,
                block=one.block,
                cursor=one.cursor,
                anchor=one.anchor,
                activity=one.activity or Activity.IDLE,
            )
            for one in self._state.places.values()
        }


def _absent(header: BlockHeader) -> ReplayBlock:
    """Return a block that is not there: cut out, and empty."""
    return ReplayBlock(header._replace(excluded=True, metadata={CUT_OUT: True}), "")
