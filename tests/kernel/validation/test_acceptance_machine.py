"""Several people come back with large updates at once, while tools and others go on at random.

Each update writes into a block of its own, among other things, which nobody else writes into: in
the end everything that it wrote there is there, or nothing.
"""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path
from typing import Any, Final

import pytest

from antiphon_kernel.contexts import Context, Submission, apply_update
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.types.enums import Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import DRAFT_SEQ_MIN
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import OpenKernel
from tests.kernel.validation.peers import Offline, take_in

LONG = bool(os.environ.get("ANTIPHON_LONG"))
SEEDS = range(30 if LONG else 1)
ROUNDS = 8 if LONG else 2
ENDED: Final = (Status.DONE, Status.ERROR)
MARK = "m"


class Update:
    """Update that one program of somebody's has written offline."""

    def __init__(self, actor: Actor, own: str, marks: int, update: bytes) -> None:
        self.actor = actor
        self.own = own
        self.marks = marks
        self.update = update
        self.outcome = "under way"


class Room:
    """A context, those who write to it, and what must be so at any time."""

    def __init__(self, kernel: Kernel, context: Context, people: list[Actor], seed: int) -> None:
        self.kernel = kernel
        self.context = context
        self.amy, *self.people = people
        self.rng = random.Random(seed)
        self.shared = ""
        self.drafts: list[str] = []
        self.updates: list[Update] = []
        self.clients = self.rng.sample(range(2, 2**31), 1_000)
        self._wanted: dict[str, list[int]] = {}
        self.ended: dict[str, Status | str] = {}
        self.told: list[str] = []
        self.errors: list[ErrorCode | str] = []
        """Answers to tools and small updates."""
        kernel.submissions.listen(self._submitted)
        context.applied.listen(lambda _: self._look())

    def _submitted(self, submission: Submission) -> None:
        self.told.append(submission.block)

    def _look(self) -> None:
        """Check that what has ended stays so."""
        document = self.context.document
        for block in self.drafts:
            if block in document:
                status = document.header(block).status
                assert self.ended.get(block, status) == status
                if status in ENDED:
                    self.ended[block] = status

    def wanted(self, actor: Actor) -> int:
        """A client id that others want too. Nobody gives two programs of their own the same."""
        return self._wanted[actor.principal.id].pop()

    async def block(self, content: str = "") -> str:
        created = {"role": "user", "kind": "text", "content": content, "status": "done"}
        return str((await self.kernel.call(self.amy, "block.create", created))["block_id"])

    async def write(self, actor: Actor) -> Update:
        """Somebody writes offline; drafts and the second client id may be those of others too."""
        rng, own = self.rng, await self.block()
        offline = Offline(self.context, actor, rng.randrange(2**32), self.clients.pop())
        offline.write(self.shared, rng.randint(100, 500))
        marks = 0
        for _ in range(rng.randint(2, 4)):
            match rng.randrange(4):
                case 0:
                    offline.go_on_as(self.wanted(actor))
                    offline.write(self.shared, 30)
                    offline.go_on_as(self.clients.pop())
                case 1:
                    draft = offline.draft(DRAFT_SEQ_MIN + rng.randrange(5))
                    offline.write(draft, rng.randint(1, 200))
                    self.drafts.append(draft)
                case 2:
                    self._submit(offline)
                case _:
                    offline.write(self.shared, 50)
            for _ in range(rng.randint(50, 150)):
                offline.blocks[own]["content"].insert(rng.randint(0, marks), MARK)
                marks += 1
        if rng.random() < 0.3:
            offline.blocks[own]["role"] = "model"  # not allowed, and the last of all
        update = Update(actor, own, marks, offline.update())
        self.updates.append(update)
        return update

    def _submit(self, offline: Offline) -> None:
        mine = [
            block
            for block in [*self.context.document.block_ids(), *offline.drafts]
            if f".{offline.actor.principal.id}." in block
            and offline.blocks[block]["status"] in ("pending", "running")
        ]
        if mine:
            offline.submit(self.rng.choice(mine))

    async def hand_in(self, one: Update, is_welcome: bool) -> None:
        def welcome() -> None:
            if not is_welcome:
                raise AntiphonError(ErrorCode.PERMISSION_DENIED, "You have to go.")

        try:
            await take_in(self.context, one.actor, one.update, welcome)
        except AntiphonError:
            # One may be handed in twice: what was broken off may have been accepted before.
            if one.outcome == "under way":
                one.outcome = "refused"
        except asyncio.CancelledError:
            if one.outcome != "in":
                one.outcome = "broken off"
        else:
            one.outcome = "in"

    async def disturb(self) -> None:
        """A tool call or a small raw update, at a moment that nobody foresees."""
        rng = self.rng
        for _ in range(rng.randrange(40)):
            await asyncio.sleep(0)
        await asyncio.sleep(rng.random() * 0.1)
        actor = rng.choice(self.people)
        own = [block for block in self.drafts if block in self.context.document]
        try:
            if rng.random() < 0.6 and own:
                status = rng.choice(("running", "done", "error"))
                request = {"block_id": rng.choice(own), "status": status}
                await self.kernel.call(self.amy, "block.status", request)
                return
            writer = Offline(self.context, actor, rng.randrange(2**32), self.wanted(actor))
            writer.write(self.shared, 2)
            if rng.random() < 0.5:
                self.drafts.append(writer.draft(DRAFT_SEQ_MIN + rng.randrange(5)))
            while self.context.in_flight.has(actor):
                await self.context.in_flight.wait_applied(actor)
            await apply_update(self.context, actor, writer.update(), "small")
        except AntiphonError as error:
            self.errors.append(error.code)

    async def round(self) -> None:
        rng = self.rng
        wanted = [self.clients.pop() for _ in range(30)]
        for actor in self.people:
            self._wanted[actor.principal.id] = list(wanted)
        updates = [await self.write(actor) for actor in self.people for _ in range(2)]
        tasks = [
            asyncio.create_task(self.hand_in(one, rng.random() < 0.9))
            for one in [*updates, rng.choice(updates)]
        ]
        others = [asyncio.create_task(self.disturb()) for _ in range(8)]
        if rng.random() < 0.7:
            await asyncio.sleep(rng.random() * 0.2)
            rng.choice(tasks).cancel()
        await asyncio.gather(*tasks, *others)
        for actor in self.people:
            await self.context.in_flight.wait_applied(actor)
        for one in self.updates:
            length = len(self.context.document.text(one.own))
            whole = {"in": [one.marks], "refused": [0], "broken off": [0, one.marks]}
            assert length in whole[one.outcome], (one.outcome, one.marks)


@pytest.mark.sqlite
@pytest.mark.parametrize("seed", SEEDS)
async def test_each_update_is_there_whole_or_not_at_all(
    kernel: Kernel, amy: Actor, bo: Actor, data: Path, open_kernel: OpenKernel, seed: int
) -> None:
    cy: Actor = kernel.open_session(await kernel.principal("cy"), "test")
    room = Room(kernel, await kernel.context(), [amy, bo, cy], seed)
    room.shared = await room.block("shared 😀 " * 10)
    for _ in range(ROUNDS):
        await room.round()
    outcomes = {one.outcome for one in room.updates}
    assert {"in", "refused"} <= outcomes
    assert ErrorCode.STORAGE_FAILED not in room.errors
    assert len(set(room.told)) == len(room.told)
    texts = texts_of(room.context)
    await kernel.close()
    assert [str(finding) for finding in (await run_checks(data)).all()] == []
    assert texts_of(await (await open_kernel()).context()) == texts


def texts_of(context: Context) -> dict[str, Any]:
    document = context.document
    return {
        block: (document.text(block), document.header(block).status)
        for block in document.block_ids()
    }
