"""Leases and rows of owners, without kernels."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import psycopg
import pytest

from antiphon_kernel.cluster import forwarding
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, NotOwnerError
from tests.kernel.cluster.conftest import LEASE_SECONDS, OpenOwner
from tests.kernel.cluster.database_link import DatabaseLink
from tests.waiting import PATIENCE, until

ROOT = 7


async def test_acquire_names_who_has_the_tree_and_after_a_release_raises_the_epoch(
    open_owner: OpenOwner,
) -> None:
    first, second = await open_owner(), await open_owner()
    await first.acquire(ROOT)

    with pytest.raises(NotOwnerError) as caught:
        await second.acquire(ROOT)

    assert caught.value.address == "owner1"
    assert first.owns(ROOT) and not second.owns(ROOT)

    before = first.epoch(ROOT)

    await first.release(ROOT)
    await second.acquire(ROOT)

    assert second.epoch(ROOT) == before + 1
    assert not first.owns(ROOT)


async def test_acquire_at_once_by_many_and_close_of_the_owner_let_one_have_the_tree(
    open_owner: OpenOwner,
) -> None:
    owners = [await open_owner() for _ in range(3)]

    results = await asyncio.gather(*(one.acquire(ROOT) for one in owners), return_exceptions=True)

    assert sorted(type(one).__name__ for one in results) == ["NoneType", *["NotOwnerError"] * 2]
    assert [one.owns(ROOT) for one in owners] == [one is None for one in results]
    owner, other, _ = sorted(owners, key=lambda one: not one.owns(ROOT))
    await owner.close()
    await other.acquire(ROOT)
    assert other.owns(ROOT)
    assert await other.left() == []


async def test_acquire_asks_the_owner_unless_the_call_is_forwarded(open_owner: OpenOwner) -> None:
    first, second = await open_owner(), await open_owner()
    await first.acquire(ROOT)
    asked: list[str] = []

    async def ask(address: str, root: int) -> None:
        asked.append(address)
        await first.release(root)

    second.ask_owner = ask
    with forwarding():
        with pytest.raises(NotOwnerError):
            await second.acquire(ROOT)
        assert asked == [] and not second.owns(ROOT)
        await asyncio.create_task(second.acquire(ROOT))  # a task that is begun forwards nothing
    assert asked == ["owner1"] and second.owns(ROOT)
    await second.release(ROOT)

    await first.acquire(ROOT)
    await second.acquire(ROOT)
    assert asked == ["owner1", "owner1"] and second.owns(ROOT)


async def test_an_owner_that_is_cut_off_gives_up_before_another_can_take(
    store: str, open_owner: OpenOwner
) -> None:
    link = DatabaseLink(store)
    await link.start()
    first, second = await open_owner(link.url), await open_owner()
    await first.acquire(ROOT)
    lost: list[int] = []
    first.lost.listen(lost.append)

    link.stop()
    while not second.owns(ROOT):
        had = first.owns(ROOT)
        with suppress(NotOwnerError):
            await second.acquire(ROOT)
            assert not had
    await until(lambda: lost == [ROOT])

    assert not first.owns(ROOT)
    link.go_on()
    await until(lambda: first.is_live, "a lease of its own again")
    with pytest.raises(NotOwnerError):
        await first.acquire(ROOT)
    await link.close()


async def test_acquire_without_a_lease_fails(store: str, open_owner: OpenOwner) -> None:
    link = DatabaseLink(store)
    await link.start()
    owner = await open_owner(link.url)

    await link.close()
    await until(lambda: not owner.is_live, "the end of the lease", 10 * LEASE_SECONDS)

    with pytest.raises(AntiphonError) as caught:
        await owner.acquire(ROOT)
    assert caught.value.code is ErrorCode.STORAGE_FAILED


async def test_left_names_the_trees_of_who_has_died(store: str, open_owner: OpenOwner) -> None:
    link = DatabaseLink(store)
    await link.start()
    first, second = await open_owner(link.url), await open_owner()
    await first.acquire(ROOT)
    assert await second.left() == []

    await link.close()
    async with asyncio.timeout(PATIENCE):
        while await second.left() != [ROOT]:
            await asyncio.sleep(0.05)

    assert not first.owns(ROOT)


async def test_tree_of_a_kernel_that_stands_still_in_a_transaction_is_taken(
    store: str, open_owner: OpenOwner
) -> None:
    link = DatabaseLink(store)
    await link.start()
    first, second = await open_owner(link.url), await open_owner()
    await first.acquire(ROOT)
    writing = await psycopg.AsyncConnection.connect(store, application_name="antiphon")
    await writing.execute("SET idle_in_transaction_session_timeout = '2s'")
    await writing.commit()
    with suppress(psycopg.OperationalError):  # the server has ended it
        async with writing.pipeline():
            await writing.execute("SELECT FROM journal.owners FOR SHARE")  # no more of it comes
            link.stop()
            async with asyncio.timeout(PATIENCE):
                while not second.owns(ROOT):
                    with suppress(NotOwnerError):  # as long as the lease lasts
                        await second.acquire(ROOT)

    await writing.close()
    link.go_on()
    await link.close()
