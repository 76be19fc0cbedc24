"""Drifts that cannot arrive: each has a stated outcome, and nothing is lost where it is from."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.tools.drift import deliver, resume_drifts
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole
from tests.clocks import ManualClock
from tests.kernel.crash.faults import Fault, inject
from tests.kernel.drift.staging import content, listed, staged
from tests.kernel.kernel.calls import Caller, Make, OpenKernel

MINUTE: Final = 60_000
TEXT: Final = "mine 😀"


class World:
    """A kernel in which bo, a guest for a minute, pushes a block to `notes`."""

    def __init__(self, kernel: Kernel, clock: ManualClock) -> None:
        self.kernel, self.clock = kernel, clock
        self.owner = Caller(kernel, kernel.open_session(kernel.owner, "test"))

    async def stage(self) -> str:
        """Let bo ask; return the id of the drift, which is staged."""
        await self.owner("context.create", label="notes")
        invited = await self.kernel.invitations.invite(
            AccessRole.EDITOR, name="bo", expires=self.clock.now_ms() + MINUTE, uses=None
        )
        number = invited.credential.number
        self.bo = self.kernel.open_session(invited.principal, "test", credential=number)
        bo = Caller(self.kernel, self.bo)
        made = await bo("block.create", kind="text", content=TEXT, status="done")
        return await staged(bo, to="notes", blocks=[made["block_id"]])

    async def archive(self) -> None:
        await self.owner("context.archive", context="notes")

    async def demote(self) -> None:
        await self.owner("kernel.role", principal="bo", role="viewer")

    async def kick(self) -> None:
        await self.owner("kernel.kick", principal="bo", minutes=5)

    async def revoke(self) -> None:
        await self.owner("kernel.revoke", principal="bo")

    async def expire(self) -> None:
        self.clock.ms += MINUTE + 1


LOSSES: Final[dict[str, tuple[Callable[[World], Awaitable[None]], str]]] = {
    "archived": (World.archive, "Context notes has been archived"),
    "demoted": (World.demote, "viewer"),
    "kicked": (World.kick, "kicked"),
    "revoked": (World.revoke, "revoked"),
    "expired": (World.expire, "expired"),
}


@pytest.mark.sqlite
@pytest.mark.parametrize("loss", LOSSES)
async def test_drift_that_may_not_arrive_any_more_is_refused(
    kernel: Kernel, clock: ManualClock, open_kernel: OpenKernel, data: Path, loss: str
) -> None:
    lose, said = LOSSES[loss]
    world = World(kernel, clock)
    drift_id = await world.stage()
    before = content(await kernel.context())
    await lose(world)
    await kernel.close()
    kernel = await open_kernel()
    await resume_drifts(kernel)
    await resume_drifts(kernel)
    found = await listed(kernel, drift_id)
    assert (found["state"], found["username"]) == ("refused", "bo")
    assert said in found["outcome"]
    assert content(await kernel.context()) == before
    assert content(await kernel.context("notes")) == []
    await kernel.close()
    assert (await run_checks(data)).clean
    kernel = await open_kernel()
    assert (await listed(kernel, drift_id))["outcome"] == found["outcome"]


async def test_session_that_was_dismissed_delivers_nothing(
    kernel: Kernel, clock: ManualClock
) -> None:
    world = World(kernel, clock)
    drift_id = await world.stage()
    await world.demote()
    with pytest.raises(AntiphonError) as caught:
        await deliver(kernel, drift_id, world.bo)
    assert caught.value.code is ErrorCode.PERMISSION_DENIED
    assert content(await kernel.context("notes")) == []


DAMAGE: Final = (
    "UPDATE ops SET changes = CAST(x'ff' || changes AS BLOB) WHERE context = ? AND seq = 1"
)
REPAIR: Final = "UPDATE ops SET changes = substr(changes, 2) WHERE context = ? AND seq = 1"


@pytest.mark.sqlite
@pytest.mark.parametrize("damaged", ["source", "target"])
async def test_drift_of_a_damaged_context_waits_until_it_is_mended(
    kernel: Kernel, clock: ManualClock, open_kernel: OpenKernel, data: Path, damaged: str
) -> None:
    drift_id = await World(kernel, clock).stage()
    number = (await kernel.context("notes" if damaged == "target" else "default")).row.number
    await kernel.close()

    def alter(sql: str) -> None:
        with sqlite3.connect(data / "journal.db") as database:
            database.execute("DELETE FROM snapshots WHERE context = ?", (number,))
            assert database.execute(sql, (number,)).rowcount == 1

    alter(DAMAGE)
    kernel = await open_kernel()
    await resume_drifts(kernel)
    found = await listed(kernel, drift_id)
    assert found["state"] == "staged" and "damaged" in found["outcome"]
    await kernel.close()
    alter(REPAIR)
    kernel = await open_kernel()
    await resume_drifts(kernel)
    assert (await listed(kernel, drift_id))["state"] == "delivered"
    assert [text for _, _, text in content(await kernel.context("notes"))] == ["", TEXT]


@pytest.mark.sqlite
async def test_drift_that_cannot_be_read_does_not_keep_the_others(
    kernel: Kernel, call: Caller, make: Make, open_kernel: OpenKernel, data: Path
) -> None:
    await call("context.create", label="notes")
    block = await make("x", role="user", status="done")
    drifts = [await staged(call, to="notes", blocks=[block]) for _ in range(3)]
    await kernel.close()
    with sqlite3.connect(data / "journal.db") as database:
        alter = "UPDATE drifts SET request = ? WHERE id = ?"
        for request, drift_id in zip(("", '{"blocks": 1}'), drifts, strict=False):
            database.execute(alter, (request, drift_id))
    kernel = await open_kernel()
    await resume_drifts(kernel)
    states = [(await listed(kernel, one))["state"] for one in drifts]
    assert states == ["staged", "staged", "delivered"]
    await Caller(kernel, kernel.open_session(kernel.owner, "test"))(
        "drift.cancel", drift_id=drifts[0]
    )
    assert (await listed(kernel, drifts[0]))["state"] == "cancelled"


@pytest.mark.sqlite
async def test_push_to_a_damaged_context_is_refused_before_it_is_staged(
    kernel: Kernel, call: Caller, make: Make, open_kernel: OpenKernel, data: Path
) -> None:
    await call("context.create", label="notes")
    block = await make("x", role="user", status="done")
    number = (await kernel.context("notes")).row.number
    await kernel.close()
    with sqlite3.connect(data / "journal.db") as database:
        database.execute("DELETE FROM snapshots WHERE context = ?", (number,))
        database.execute(DAMAGE, (number,))
    kernel = await open_kernel()
    call = Caller(kernel, kernel.open_session(kernel.owner, "test"))
    with pytest.raises(AntiphonError) as caught:
        await call("drift.push", to="notes", blocks=[block])
    assert caught.value.code is ErrorCode.STORAGE_FAILED
    # It is refused before anything is staged: the target is opened first.
    assert (await call("drift.list"))["drifts"] == []


async def test_two_who_deliver_one_drift_bring_it_once(
    kernel: Kernel, call: Caller, make: Make, amy: Actor
) -> None:
    await call("context.create", label="notes")
    block = await make("x", role="user", status="done")
    drift_id = await staged(call, to="notes", blocks=[block])
    answers = await asyncio.gather(
        *(deliver(kernel, drift_id, amy) for _ in range(3)), return_exceptions=True
    )
    errors = [one for one in answers if isinstance(one, BaseException)]
    assert [one.code for one in errors if isinstance(one, AntiphonError)] == [
        ErrorCode.INVALID_TRANSITION
    ] * 2
    assert len(content(await kernel.context("notes"))) == 2


async def test_drift_is_delivered_or_cancelled_and_never_both(
    kernel: Kernel, call: Caller, make: Make, amy: Actor
) -> None:
    await call("context.create", label="notes")
    block = await make("x", role="user", status="done")
    drifts = [await staged(call, to="notes", blocks=[block]) for _ in range(2)]
    orders: list[Callable[[str], list[Any]]] = [
        lambda one: [deliver(kernel, one, amy), call("drift.cancel", drift_id=one)],
        lambda one: [call("drift.cancel", drift_id=one), deliver(kernel, one, amy)],
    ]
    for drift_id, begin in zip(drifts, orders, strict=True):
        answers = await asyncio.gather(*begin(drift_id), return_exceptions=True)
        assert sum(isinstance(one, AntiphonError) for one in answers) == 1, answers
    states = [(await listed(kernel, one))["state"] for one in drifts]
    assert states == ["delivered", "cancelled"]
    assert len(content(await kernel.context("notes"))) == 2


async def test_only_who_asked_and_owners_cancel(
    kernel: Kernel, clock: ManualClock, aria: Actor
) -> None:
    world = World(kernel, clock)
    drift_id = await world.stage()
    await kernel.members.give_role(await kernel.principal("eve"), AccessRole.EDITOR)
    eve = kernel.open_session(kernel.members["eve"], "test")
    for actor in (eve, aria):
        with pytest.raises(AntiphonError) as caught:
            await kernel.call(actor, "drift.cancel", {"drift_id": drift_id})
        assert caught.value.code is ErrorCode.PERMISSION_DENIED
    await Caller(kernel, world.bo)("drift.cancel", drift_id=drift_id)
    assert (await listed(kernel, drift_id))["state"] == "cancelled"
    await resume_drifts(kernel)
    assert content(await kernel.context("notes")) == []


@pytest.mark.sqlite
async def test_call_that_is_broken_off_anywhere_brings_all_or_nothing(
    kernel: Kernel, call: Caller, make: Make, open_kernel: OpenKernel, data: Path
) -> None:
    """A client that is dismissed breaks its call off; nothing waits for the next start then."""
    await call("context.create", label="notes")
    block = await make("x", role="user", status="done")
    is_over, steps = False, 0
    while not is_over:
        work = asyncio.create_task(call("drift.push", to="notes", blocks=[block]))
        for _ in range(steps):
            await asyncio.sleep(0)
        work.cancel()
        await asyncio.wait({work})
        is_over, steps = not work.cancelled(), steps + 1
    drifts = kernel.drifts.rows()
    assert len(drifts) > 5 and {one.state for one in drifts} == {"delivered"}
    await kernel.close()
    kernel = await open_kernel()
    assert kernel.drifts.rows() == drifts
    notes = await kernel.context("notes")
    heads = [one for one, kind, _ in content(notes) if kind == "drift"]
    assert sorted(one.block for one in drifts) == sorted(heads)
    assert len(content(notes)) == 2 * len(heads)
    await kernel.close()
    assert (await run_checks(data)).clean


FAULTS: Final = (
    Fault("INSERT INTO ops", after=False),
    Fault("INSERT INTO drifts", after=False),
    Fault("COMMIT", after=False),
    Fault("COMMIT", after=True),
)


@pytest.mark.sqlite
@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: f"{one.step}, {one.after}")
async def test_drift_arrives_once_although_the_disk_says_that_it_failed(
    kernel: Kernel, call: Caller, make: Make, open_kernel: OpenKernel, data: Path, fault: Fault
) -> None:
    await call("context.create", label="notes")
    block = await make("x", role="user", status="done")
    drift_id = await staged(call, to="notes", blocks=[block])
    mend = inject(fault)
    try:
        with pytest.raises(AntiphonError) as caught:
            await deliver(kernel, drift_id, call.actor)
        assert caught.value.code is ErrorCode.STORAGE_FAILED
        assert (
            f"kept as the drift {drift_id}" in caught.value.message
            or fault.step != "INSERT INTO ops"
        )
    finally:
        mend()
    with contextlib.suppress(AntiphonError):
        await kernel.close()
    kernel = await open_kernel()
    await resume_drifts(kernel)
    assert (await listed(kernel, drift_id))["state"] == "delivered"
    assert [text for _, _, text in content(await kernel.context("notes"))] == ["", "x"]
    await kernel.close()
    assert (await run_checks(data)).clean
