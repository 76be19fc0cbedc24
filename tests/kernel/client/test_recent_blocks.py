"""A replica that holds the last blocks of a long context only, and the others when asked."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from antiphon_kernel.client.local_replica import ReplicaState
from antiphon_kernel.client.rejected_edits import write_report
from antiphon_kernel.client.replica import Replica
from antiphon_kernel.contexts.context_journal import ContextJournal
from antiphon_kernel.contexts.opening import RecentBlocks, segments
from antiphon_kernel.limits import Limits
from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.storage import StoredOp
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.yjs.frames import Omitted, Recent, SyncStep1, SyncStep2, SyncUpdate
from antiphon_kernel.yjs.id_set import NO_STATE
from tests.kernel.client.typists import through
from tests.kernel.frame_relay import FrameRelay
from tests.kernel.recent_replicas import ALL, RECENT, held, matches, texts
from tests.kernel.served import CuttableProxy, ServedKernel, served_kernel
from tests.waiting import until

ROUNDS = 40 if os.environ.get("ANTIPHON_LONG") else 1


@pytest.fixture
async def blocks(served: ServedKernel) -> list[str]:
    return [await served.block(f"text {number}") for number in range(ALL)]


@pytest.fixture
async def replica(served: ServedKernel, blocks: list[str]) -> Replica:
    return await served.replica(recent=RECENT)


async def test_replica_of_recent_blocks_lacks_the_oldest_and_knows_context_and_members(
    served: ServedKernel, replica: Replica, blocks: list[str]
) -> None:
    assert list(replica.document.block_ids()) == blocks[-RECENT:]
    assert replica.omitted == ALL - RECENT
    full = (await served.context()).document
    assert replica.document.stated_values() == full.stated_values()
    assert replica.document.members() == full.members()
    assert (replica.document.context, replica.document.label) == (full.context, "default")


async def test_open_blocks_are_among_the_recent_ones_however_old(
    served: ServedKernel, blocks: list[str]
) -> None:
    made = []
    for author, kind, status in (
        (PrincipalKind.HUMAN, "text", "pending"),
        (PrincipalKind.HUMAN, "tool_call", "pending"),
        (PrincipalKind.MODEL, "text", "running"),
    ):
        principal = await served.kernel.principal(f"some-{author}", author)
        actor = served.kernel.open_session(principal, "test")
        (await served.context()).ensure_member(actor)
        parent = {"parent_id": blocks[0]} if author is PrincipalKind.MODEL else {}
        created = await served.kernel.call(actor, "block.create", {"kind": kind, **parent})
        made.append(str(created["block_id"]))
        await served.kernel.call(actor, "block.status", {"block_id": made[-1], "status": status})
    for number in range(RECENT + 5):
        await served.block(f"more {number}")
    replica = await served.replica(recent=RECENT)
    assert {*made} <= {*replica.document.block_ids()}
    assert replica.omitted == ALL


@pytest.mark.parametrize(
    ("recent", "frames"),
    [(RECENT, 2), (RECENT, 5), (RECENT, 9), (ALL, 5), (0, 14)],
)
async def test_connection_may_be_lost_behind_any_frame_of_a_state(
    in_parts: ServedKernel, recent: int, frames: int
) -> None:
    served = in_parts
    blocks = [await served.block(f"text {number} " * 5) for number in range(ALL)]
    relay = FrameRelay(served)
    await relay.start()
    rest = frames

    def lose(frame: bytes) -> bytes | None:
        nonlocal rest
        rest -= 1
        return None if rest == 0 else frame

    relay.change = lose
    replica = await served.replica(recent=recent, locate=relay.locate, retry=lambda _: 0.01)
    await until(lambda: list(replica.document.block_ids()) == blocks[replica.omitted :])
    rest = frames
    replica.document.splice(blocks[-1], 0, 4, "mine")
    await replica.read_earlier(ALL)
    replica.document.splice(blocks[-1], 0, 0, "all ")
    await until(lambda: list(replica.document.block_ids()) == blocks)
    await replica.saved()
    await matches(served, replica)
    assert held(replica.document)[blocks[-1]].startswith("all mine 39")
    await relay.close()


async def test_replica_of_recent_blocks_that_fell_behind_catches_up(tmp_path: Path) -> None:
    async with served_kernel(tmp_path, ServerLimits(unread=16 * 2**10, state_part=500)) as served:
        blocks = [await served.block(f"text {number}") for number in range(ALL)]
        proxy = CuttableProxy(served.doors.port)
        await proxy.start()
        far = through(served, proxy)
        replica = await served.replica(recent=RECENT, locate=lambda: far)
        proxy.stop()
        for number in range(300):
            await served.call("block.append", block_id=blocks[-1 - number % 3], text="x" * 4_000)
        await served.call("block.move", block_id=blocks[0], after=blocks[1])
        last = await served.block("new")
        replica.document.splice(blocks[-1], 0, 0, "mine ")
        proxy.go_on()
        await until(lambda: last in replica.document)
        await replica.saved()
        await matches(served, replica)
        await proxy.close()


async def test_edits_of_recent_blocks_around_a_refused_one_arrive(
    served: ServedKernel, tmp_path: Path
) -> None:
    for number in range(ALL):
        await served.block(f"text {number}")
    edited, done = await served.block("one"), await served.block("two", status="done")
    replica = await served.replica(
        "ben", recent=RECENT, keep=write_report(tmp_path / "refused"), retry=lambda _: 0.01
    )
    former = replica.document
    former.splice(edited, 0, 0, "> ")
    former.set_fields(done, status="error")
    former.splice(edited, 5, 0, " <")
    await until(lambda: replica.document is not former and replica.state is ReplicaState.LIVE)
    await matches(served, replica)
    assert held(replica.document)[edited] == "> one <"
    assert replica.rejected_edits is not None and replica.rejected_edits.edits == 1


async def test_new_label_comes_after_one_that_was_omitted(
    served: ServedKernel,
) -> None:
    made = str((await served.call("context.create", label="plans"))["context_id"])
    await served.call("context.rename", context=made, label="old-plans")
    for number in range(ALL):
        await served.block(f"text {number}", context=made)
    replica = await served.replica(context=made, recent=RECENT)
    assert (replica.document.label, replica.omitted) == ("old-plans", ALL - RECENT)
    await served.call("context.rename", context=made, label="new-plans")
    await until(lambda: replica.document.label == "new-plans")


async def test_state_is_whole_where_recent_blocks_begin_too_far_back(
    served: ServedKernel, blocks: list[str]
) -> None:
    await served.call("block.move", block_id=blocks[0], after=blocks[-1])
    replica = await served.replica(recent=RECENT)
    assert replica.omitted == 0
    await matches(served, replica)


async def test_block_that_is_moved_while_the_state_is_looked_for_is_in_it(
    served: ServedKernel, blocks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = ContextJournal.ops

    async def ops(journal: ContextJournal, after: int, upto: int) -> list[StoredOp]:
        monkeypatch.undo()
        await served.call("block.move", block_id=blocks[0], after=blocks[-1])
        return await read(journal, after, upto)

    monkeypatch.setattr(ContextJournal, "ops", ops)
    assert (await RecentBlocks(await served.context()).cut(RECENT)).omitted == 0


async def test_point_that_is_too_far_back_is_looked_for_once(
    served: ServedKernel, blocks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "_OPS_READ", 1)
    monkeypatch.setattr(segments, "_MOST_OPS", 3)
    recent = RecentBlocks(await served.context())
    assert (await recent.cut(RECENT)).omitted == 0
    monkeypatch.setattr(ContextJournal, "ops", None)
    assert (await recent.cut(RECENT)).omitted == 0


async def test_earlier_blocks_come_when_asked_for_before_any_have(
    served: ServedKernel, blocks: list[str]
) -> None:
    proxy = CuttableProxy(served.doors.port)
    await proxy.start()
    far = through(served, proxy)
    replica = served.start_replica(recent=RECENT, locate=lambda: far)
    asked = asyncio.Event()
    replica.state_changed.listen(asked.set)
    await asked.wait()
    proxy.stop()
    for _ in range(10):
        await asyncio.sleep(0)
    assert replica.document.epoch is None
    await replica.read_earlier(ALL)
    proxy.go_on()
    await until(lambda: list(replica.document.block_ids()) == blocks)
    await proxy.close()


async def test_client_that_omits_what_it_has_not_asked_to_is_hung_up(served: ServedKernel) -> None:
    raw = await served.joined()
    await raw.send(Omitted(1, {}, {}))
    assert (await raw.closed())[0] == 4400


async def test_document_stays_with_the_next_connection(
    served: ServedKernel, replica: Replica, blocks: list[str]
) -> None:
    before = replica.document
    await served.stop()
    await until(lambda: replica.state is not ReplicaState.LIVE)
    before.splice(blocks[-1], 0, 0, "offline ")
    await served.start()
    new = await served.block("new")
    await until(lambda: new in before)
    await replica.saved()
    expected = {block: f"text {at}" for at, block in enumerate(blocks)}
    expected |= {blocks[-1]: f"offline text {ALL - 1}", new: "new"}
    assert await texts(served) == expected
    assert replica.document is before
    await served.call("block.move", block_id=blocks[0], after=blocks[-1])
    await until(lambda: blocks[0] in replica.document)


@pytest.fixture
async def in_parts(tmp_path: Path) -> AsyncIterator[ServedKernel]:
    async with served_kernel(tmp_path, ServerLimits(state_part=500)) as served:
        yield served


@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_recent_replicas_that_write_lose_lines_and_ask_for_more_converge(
    in_parts: ServedKernel, seed: int
) -> None:
    served, rng = in_parts, random.Random(seed)
    blocks = [await served.block(f"text {number} " * 5) for number in range(ALL)]
    proxy = CuttableProxy(served.doors.port)
    await proxy.start()
    far = through(served, proxy)
    replicas = [
        await served.replica(recent=RECENT, locate=lambda: far),
        await served.replica(recent=RECENT),
        await served.replica(),
    ]
    shown = [set[str]() for _ in replicas]
    for _ in range(150):
        replica = rng.choice(replicas)
        shown[replicas.index(replica)] |= set(replica.document.block_ids())
        block = rng.choice(replica.document.block_ids())
        text = replica.document.text(block)
        at = rng.randint(0, len(text))
        event = rng.random()
        if event < 0.8:
            replica.document.splice(block, at, rng.randint(0, min(3, len(text) - at)), "é😀x")
        elif event < 0.85:
            proxy.cut()
        elif event < 0.9:
            await replica.read_earlier(len(replica.document) + rng.randint(0, 5))
        elif event < 0.95:
            await served.call("block.move", block_id=rng.choice(blocks[:-1]), after=blocks[-1])
        else:
            blocks.append(await served.block("new"))
        await asyncio.sleep(rng.choice((0, 0.001, 0.01)))
    for replica in replicas:
        await replica.saved()
    for replica, seen in zip(replicas, shown, strict=True):
        await matches(served, replica)
        assert seen <= set(replica.document.block_ids()), "no block goes that was here"
    await proxy.close()


async def bytes_of_state(served: ServedKernel) -> int:
    raw = await served.raw()
    await raw.send(Recent(RECENT), SyncStep1(NO_STATE))
    await raw.next(SyncStep2)
    return sum(len(one.update) for one in raw.received if isinstance(one, SyncUpdate | SyncStep2))


async def test_state_of_recent_blocks_does_not_grow_with_those_before(tmp_path: Path) -> None:
    """Neither the one that is sent nor the one that is stored."""
    async with served_kernel(tmp_path, kernel_limits=Limits(recent_blocks=RECENT)) as served:

        async def sizes(blocks: int) -> tuple[int, int]:
            for number in range(blocks):
                await served.block(f"text {number}")
            sent, row = await bytes_of_state(served), (await served.context()).row
            await served.stop()
            await served.start()
            stored = await served.kernel.journal.recent_states.read(row)
            assert stored is not None
            return sent, sum(map(len, stored.state))

        few = await sizes(ALL)
        many = await sizes(4 * ALL)
        assert all(more < 1.2 * less for more, less in zip(many, few, strict=True))
