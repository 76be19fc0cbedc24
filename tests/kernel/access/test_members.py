"""Somebody who is being made when something breaks is made later, as what they were to be."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.roles import AccessRole
from tests.kernel.kernel.calls import OpenKernel

ALL_KINDS = [kind for kind in PrincipalKind if kind is not PrincipalKind.SYSTEM]


def in_journal(data: Path, sql: str) -> None:
    journal = sqlite3.connect(data / "journal.db")
    journal.executescript(sql)
    journal.close()


@pytest.mark.parametrize("kind", ALL_KINDS)
async def test_whoever_was_being_made_as_the_kernel_died_comes_back_as_the_same_kind(
    open_kernel: OpenKernel, data: Path, kind: PrincipalKind
) -> None:
    kernel = await open_kernel()
    before = await kernel.principal("aria", kind)
    role = kernel.role_of(before)
    await kernel.close()
    # The role is on disk before the name is.
    in_journal(data, "DELETE FROM sessions; DELETE FROM principals WHERE username = 'aria'")
    kernel = await open_kernel()
    assert kernel.find_principal("aria") == before
    assert kernel.role_of(before) is role


@pytest.mark.parametrize("kind", ALL_KINDS)
async def test_whoever_could_not_be_stored_can_be_made_once_the_disk_is_well(
    kernel: Kernel, data: Path, kind: PrincipalKind
) -> None:
    full = "CREATE TRIGGER full BEFORE INSERT ON principals BEGIN SELECT raise(ABORT, 'full'); END"
    in_journal(data, full)
    with pytest.raises(AntiphonError) as caught:
        await kernel.members.principal("aria", kind, AccessRole.VIEWER)
    assert caught.value.code is ErrorCode.STORAGE_FAILED
    assert "aria" not in kernel.members
    in_journal(data, "DROP TRIGGER full")
    other = await kernel.members.create_guest("aria", AccessRole.EDITOR)
    assert other.username == "aria2", "the name is given to somebody"
    made = await kernel.principal("aria", PrincipalKind.HUMAN)
    assert (made.kind, kernel.role_of(made)) == (kind, AccessRole.VIEWER)


async def test_a_call_that_is_cancelled_leaves_nobody_half_made(
    kernel: Kernel, open_kernel: OpenKernel
) -> None:
    for steps in range(12):
        asked = asyncio.create_task(kernel.principal(f"m{steps}", PrincipalKind.MODEL))
        for _ in range(steps):
            await asyncio.sleep(0)
        asked.cancel()
        await asyncio.wait({asked})
        made = await kernel.principal(f"m{steps}", PrincipalKind.MODEL)
        assert made.kind is PrincipalKind.MODEL
    everybody = list(kernel.members)
    await kernel.close()
    assert list((await open_kernel()).members) == everybody
