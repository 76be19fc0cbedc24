"""A large update is accepted or refused whole, whatever others do before, between and after."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.contexts import Context, apply_update
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.types.enums import Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import DRAFT_SEQ_MIN
from antiphon_kernel.types.records import Actor
from antiphon_kernel.yjs.id_set import decode_state_vector
from tests.errors import raises
from tests.kernel.kernel.calls import Caller
from tests.kernel.validation.peers import (
    BetweenParts,
    Offline,
    Share,
    nothing,
    share,
    take_in,
)

SECOND = 4712
"""The client id that `bo` goes on with."""


@dataclass
class Case:
    """Bo comes back with a large update: text, an old draft submitted, another client id, a draft.

    What others can spoil is at its end, so that most of it would be there by then.
    """

    kernel: Kernel
    context: Context
    amy: Actor
    bo: Actor
    data: Path
    is_sound: bool = False
    there: str = ""
    waiting: str = ""
    draft: str = ""
    update: bytes = b""
    before: bytes = b""
    text: str = ""

    async def begin(self) -> None:
        context, bo = self.context, self.bo
        created = {"kind": "file", "content": "there 😀 "}
        self.there = (await self.kernel.call(self.amy, "block.create", created))["block_id"]
        first = Offline(context, bo, 1, 4710)
        self.waiting = first.draft(DRAFT_SEQ_MIN + 1_000)
        await take_in(context, bo, first.update())
        offline = Offline(context, bo, 2)
        offline.write(self.there, 600)
        offline.go_on_as(SECOND)
        offline.write(self.there, 300)
        offline.submit(self.waiting)
        self.draft = offline.draft(DRAFT_SEQ_MIN)
        offline.write(self.draft, 20)
        self.update = offline.update()
        self.before = context.document.state_vector()
        self.text = str(offline.blocks[self.there]["content"])

    def share(self) -> Share:
        return share(self.context, self.update, self.before)

    def arrives(self, actor: Actor, update: bytes) -> Callable[[], None]:
        """Return what hands in another update, whose outcome is looked at in the document."""

        def arrive() -> None:
            future = apply_update(self.context, actor, update, "another")
            future.add_done_callback(lambda done: done.exception())

        return arrive

    async def take_in(self, meanwhile: Callable[[], None] = nothing) -> int:
        return await take_in(self.context, self.bo, self.update, meanwhile)

    async def taken_while(self, act: Callable[[], Awaitable[object]]) -> None:
        """All of it comes in, though something happens when its first part has been applied."""
        between = BetweenParts(self.context, self.bo, act)
        await self.take_in()
        await between.happened()
        assert self.share() is Share.ALL

    async def refused(self, meanwhile: Callable[[], None], code: ErrorCode) -> None:
        """`meanwhile` happens when it has been checked; then it is refused whole."""
        seq = 0

        def happens() -> None:
            nonlocal seq
            meanwhile()
            seq = self.context.seq

        with raises(code):
            await self.take_in(happens)
        assert self.context.seq == seq
        assert len(self.context.document.text(self.there)) < 20

    async def sound(self) -> None:
        """Check that what is on disk is sound: once, while no kernel is open."""
        if not self.is_sound:
            await self.kernel.close()
            assert [str(finding) for finding in (await run_checks(self.data)).all()] == []
            self.is_sound = True


@pytest.fixture
async def case(
    kernel: Kernel, context: Context, amy: Actor, bo: Actor, data: Path
) -> AsyncIterator[Case]:
    case = Case(kernel, context, amy, bo, data)
    await case.begin()
    yield case
    await case.sound()


def twin_draft(case: Case) -> bytes:
    """The same draft, made by another program of bo's."""
    twin = Offline(case.context, case.bo, 3, 4900)
    assert twin.draft(DRAFT_SEQ_MIN) == case.draft
    return twin.update()


def text_of(case: Case, client_id: int, steps: int = 3) -> bytes:
    writer = Offline(case.context, case.amy, 4, client_id)
    writer.write(case.there, steps)
    return writer.update()


def set_status(case: Case, block: str, status: Status) -> None:
    document = case.context.document
    case.context.write(
        case.bo, "status", lambda: document.set_fields(block, status=status), blocks=[block]
    )


# Before it is accepted


@pytest.mark.sqlite
async def test_large_update_whose_draft_was_created_meanwhile_is_rejected_whole(case: Case) -> None:
    await case.refused(case.arrives(case.bo, twin_draft(case)), ErrorCode.PERMISSION_DENIED)
    assert case.share() is Share.NOTHING


@pytest.mark.sqlite
async def test_large_update_whose_client_id_was_taken_is_rejected_whole(case: Case) -> None:
    theirs = text_of(case, SECOND)
    await case.refused(case.arrives(case.amy, theirs), ErrorCode.PERMISSION_DENIED)
    assert 4711 not in decode_state_vector(case.context.document.state_vector())


@pytest.mark.sqlite
@pytest.mark.parametrize("status", [Status.DONE, Status.ERROR])
async def test_large_update_that_submits_ended_draft_is_rejected_whole(
    case: Case, status: Status
) -> None:
    await case.refused(lambda: set_status(case, case.waiting, status), ErrorCode.PERMISSION_DENIED)
    assert case.share() is Share.NOTHING
    assert case.context.document.header(case.waiting).status is status


@pytest.mark.sqlite
async def test_large_update_whose_draft_became_running_is_accepted(case: Case) -> None:
    await case.take_in(lambda: set_status(case, case.waiting, Status.RUNNING))
    assert case.share() is Share.ALL
    assert case.context.document.header(case.waiting).status is Status.DONE


@pytest.mark.sqlite
async def test_large_update_of_dismissed_writer_is_rejected_whole(case: Case) -> None:
    def dismissed() -> None:
        raise AntiphonError(ErrorCode.PERMISSION_DENIED, "You are a viewer now.")

    before = case.context.document.state_vector()
    with pytest.raises(AntiphonError, match="a viewer now"):
        await case.take_in(dismissed)
    assert case.context.document.state_vector() == before


@pytest.mark.sqlite
async def test_large_update_whose_items_came_by_another_connection_is_requested_again(
    case: Case,
) -> None:
    """Whatever it says: the items may be others under the same numbers."""
    await case.refused(case.arrives(case.bo, text_of(case, 4711)), ErrorCode.GAP)
    assert SECOND not in decode_state_vector(case.context.document.state_vector())


# Between its parts


@pytest.mark.sqlite
async def test_draft_that_it_creates_is_nobody_elses_once_it_is_accepted(case: Case) -> None:
    context, twin = case.context, twin_draft(case)
    refused: list[ErrorCode | str] = []

    async def make_it_too() -> None:
        try:
            await apply_update(context, case.bo, twin, "twin")
        except AntiphonError as error:
            refused.append(error.code)
        await context.in_flight.wait_applied(case.bo)
        with pytest.raises(AntiphonError) as caught:
            await apply_update(context, case.bo, twin, "twin")
        refused.append(caught.value.code)

    await case.taken_while(make_it_too)
    assert refused == [ErrorCode.GAP, ErrorCode.PERMISSION_DENIED]


@pytest.mark.sqlite
async def test_large_update_client_ids_belong_to_writer_once_accepted(
    case: Case, open_kernel: Any
) -> None:
    theirs = text_of(case, SECOND)

    async def write_with_it() -> None:
        with raises(ErrorCode.PERMISSION_DENIED):
            await apply_update(case.context, case.amy, theirs, "amy")

    await case.taken_while(write_with_it)
    assert case.context.document.text(case.there) == case.text
    await case.sound()
    case.context = await (await open_kernel()).context()
    with pytest.raises(AntiphonError):
        await apply_update(case.context, case.amy, text_of(case, SECOND), "amy")


@pytest.mark.sqlite
@pytest.mark.parametrize("status", [Status.DONE, Status.ERROR])
async def test_draft_that_a_tool_ends_between_the_parts_has_ended(
    case: Case, status: Status
) -> None:
    told: list[str] = []
    case.kernel.submissions.listen(lambda submission: told.append(submission.block))
    request = {"block_id": case.waiting, "status": status.value}

    async def end() -> None:
        await case.kernel.call(case.bo, "block.status", request)

    await case.taken_while(end)
    await asyncio.sleep(0)
    assert case.context.document.header(case.waiting).status is status
    assert told == ([case.waiting] if status is Status.DONE else [])


@pytest.mark.sqlite
async def test_large_update_without_waiter_is_applied(case: Case) -> None:
    taking = asyncio.create_task(case.take_in())

    async def give_up() -> None:
        taking.cancel()

    between = BetweenParts(case.context, case.bo, give_up)
    with pytest.raises(asyncio.CancelledError):
        await taking
    assert case.share() is not Share.ALL
    await case.context.in_flight.wait_applied(case.bo)
    await between.happened()
    assert case.share() is Share.ALL


@pytest.mark.sqlite
async def test_large_update_is_applied_before_kernel_closes(case: Case, open_kernel: Any) -> None:
    closing = asyncio.Event()

    async def close() -> None:
        closing.set()
        await case.kernel.close()

    between = BetweenParts(case.context, case.bo, close)
    taking = asyncio.create_task(case.take_in())
    await closing.wait()
    await taking
    await between.happened()
    await case.sound()
    again = await (await open_kernel()).context()
    assert share(again, case.update, case.before) is Share.ALL
    assert again.document.text(case.there) == case.text


@pytest.mark.sqlite
async def test_large_updates_of_one_principal_come_in_one_after_the_other(case: Case) -> None:
    """A client that has lost its connection sends the same again through another one."""
    seqs = await asyncio.gather(*(case.take_in() for _ in range(3)))
    assert case.share() is Share.ALL
    assert case.context.document.text(case.there) == case.text
    assert seqs[0] == seqs[1] == seqs[2] == case.context.seq


async def test_message_sent_within_a_large_update_says_what_its_author_left_in_it(
    call: Caller, context: Context, bo: Actor
) -> None:
    there = (await call("block.create", kind="file", content="there"))["block_id"]
    before = Offline(context, bo, 1, 4710)
    draft = before.draft()
    await take_in(context, bo, before.update())
    offline = Offline(context, bo, 2)
    said: list[str] = []
    context.submitted.listen(lambda submission: said.append(submission.text))
    offline.write(there, 600)
    del offline.blocks[draft]["content"][0:4]
    offline.submit(draft)
    offline.write(there, 600)
    await take_in(context, bo, offline.update())
    assert said == ["n "]
