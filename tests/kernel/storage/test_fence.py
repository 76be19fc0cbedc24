"""Groups of commits in Postgres: those that `check_commit` refuses fail, the others are kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import psycopg
import pytest

from antiphon_kernel.storage import AuthStore, FenceError, FileRow, Journal, User
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.ids import ContextId
from antiphon_kernel.types.roles import AccessRole
from tests.errors import raises
from tests.kernel.storage.commits import AMY, KernelFence, commit, found


@pytest.fixture
async def journal(store: str) -> AsyncIterator[Journal]:
    auth = await AuthStore.open(store)
    await auth.add(User(0, "amy", AMY.id, AccessRole.EDITOR, 1, AMY.kind))
    await auth.database.close()
    journal = await Journal.open(store)
    await journal.add_principal(AMY, 4)
    journal.fence = KernelFence()
    yield journal
    await journal.close()


async def execute(store: str, sql: str) -> None:
    async with await psycopg.AsyncConnection.connect(store, autocommit=True) as connection:
        await connection.execute(sql.encode())


async def live(store: str, *roots: int) -> None:
    """Let kernel 1 live for an hour, and own these."""
    await execute(
        store,
        "INSERT INTO journal.kernels (number, address, lease_until)"
        " VALUES (1, '', now() + interval '1 hour')",
    )
    for root in roots:
        await execute(store, f"INSERT INTO journal.owners VALUES ({root}, 1, 1)")


async def test_only_commits_of_a_context_that_another_kernel_has_fail(
    journal: Journal, store: str
) -> None:
    mine, first = found(journal)
    theirs, second = found(journal, "other")
    await live(store, mine.number, theirs.number)
    await asyncio.gather(journal.commit(first), journal.commit(second))
    await execute(store, f"UPDATE journal.owners SET epoch = 2 WHERE context = {theirs.number}")
    written, refused = journal.commit(commit(mine, 2)), journal.commit(commit(theirs, 2))
    with raises(ErrorCode.NOT_OWNER):
        await refused
    await written
    assert (await journal.last_seq(mine), await journal.last_seq(theirs)) == (2, 1)
    built_on_it = journal.commit(commit(theirs, 3))
    with raises(ErrorCode.NOT_OWNER):
        await built_on_it


@pytest.mark.parametrize(
    ("sql", "contexts", "principals"),
    [
        ("UPDATE journal.kernels SET lease_until = now()", True, False),
        ("UPDATE journal.owners SET kernel = NULL", True, False),
        ("DELETE FROM journal.owners", True, False),
        ("UPDATE auth.users SET epoch = 2", False, True),
        ("DELETE FROM auth.users", False, True),
    ],
)
async def test_fence_says_whom_it_refuses(
    journal: Journal, store: str, sql: str, contexts: bool, principals: bool
) -> None:
    row, first = found(journal)
    await live(store, row.number)
    await journal.commit(first)
    await execute(store, sql)
    with pytest.raises(FenceError) as caught:
        await journal.commit(commit(row, 2))
    assert caught.value.contexts == ({row.number} if contexts else set())
    assert caught.value.principals == ({AMY.id} if principals else set())


async def test_only_the_context_whose_label_was_taken_fails(journal: Journal, store: str) -> None:
    await journal.reserve_contexts(3)
    journal.fence = None
    there = await Journal.open(store)
    await there.principals()
    theirs, first = found(there, "main")
    await there.commit(first)
    mine, second = found(journal, "main")
    other, third = found(journal, "other")
    second = second._replace(context=replace(mine, id=ContextId("d" * 32)))
    refused, written = journal.commit(second), journal.commit(third)
    with raises(ErrorCode.INVALID_PARAMS):
        await refused
    await written
    assert {one.number for one in await there.contexts()} == {theirs.number, other.number}
    await there.close()


async def test_new_context_of_a_file_that_another_kernel_has_fails(
    journal: Journal, store: str
) -> None:
    journal.fence = None
    there = await Journal.open(store)
    await there.principals()
    commits = [found(there, "theirs"), found(journal, "ours")]
    files = [FileRow(row.number, "a.txt", "{}", "d", 1) for row, _ in commits]
    theirs, ours = (
        (first, commit(row, 2, file=file))
        for (row, first), file in zip(commits, files, strict=True)
    )
    await there.commit(*theirs)
    with raises(ErrorCode.INVALID_PARAMS):
        await journal.commit(*ours)
    assert [one.label for one in await there.contexts()] == ["theirs"]
    assert len(await there.files()) == 1
    await there.close()


async def test_takeover_waits_for_a_commit_that_has_passed(journal: Journal, store: str) -> None:
    row, first = found(journal)
    await live(store, row.number)
    await journal.commit(first)
    take = f"UPDATE journal.owners SET epoch = 2 WHERE context = {row.number}"
    check = "SELECT journal.check_commit(1, '{}', $1, '{1}', '{}', '{}')"
    async with await psycopg.AsyncConnection.connect(store) as writer:
        cursor = psycopg.AsyncRawCursor(writer)
        await cursor.execute(check, ([row.number],))
        with pytest.raises(psycopg.errors.LockNotAvailable):
            await execute(store, f"SET lock_timeout = '50ms'; {take}")
        await writer.commit()
    await execute(store, take)
