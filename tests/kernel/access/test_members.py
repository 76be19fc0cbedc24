"""Somebody who is being made when something breaks is made later, as what they were to be."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.roles import AccessRole
from tests.errors import raises
from tests.kernel.kernel.calls import OpenKernel

ALL_KINDS = [kind for kind in PrincipalKind if kind is not PrincipalKind.SYSTEM]


def in_journal(data: Path, sql: str) -> None:
    journal = sqlite3.connect(data / "journal.db")
    journal.executescript(sql)
    journal.close()


@pytest.mark.parametrize("kind", ALL_KINDS)
async def test_principal_half_created_at_crash_returns_with_same_kind(
    open_kernel: OpenKernel, data: Path, kind: PrincipalKind
) -> None:
    kernel = await open_kernel()
    before = await kernel.principal("aria", kind)
    role = kernel.members.role_of(before)
    await kernel.close()
    # The role is on disk before the name is.
    in_journal(data, "DELETE FROM sessions; DELETE FROM principals WHERE username = 'aria'")
    kernel = await open_kernel()
    assert kernel.members.find("aria") == before
    assert kernel.members.role_of(before) is role


@pytest.mark.parametrize("kind", ALL_KINDS)
async def test_principal_that_failed_to_store_can_be_created_later(
    kernel: Kernel, data: Path, kind: PrincipalKind
) -> None:
    full = "CREATE TRIGGER full BEFORE INSERT ON principals BEGIN SELECT raise(ABORT, 'full'); END"
    in_journal(data, full)
    with raises(ErrorCode.STORAGE_FAILED):
        await kernel.members.principal("aria", kind, AccessRole.VIEWER)
    assert "aria" not in kernel.members
    in_journal(data, "DROP TRIGGER full")
    other = await kernel.members.create_guest("aria", AccessRole.EDITOR)
    assert other.username == "aria2", "the name is given to somebody"
    made = await kernel.principal("aria", PrincipalKind.HUMAN)
    assert (made.kind, kernel.members.role_of(made)) == (kind, AccessRole.VIEWER)


async def test_call_that_is_cancelled_leaves_nobody_half_made(
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
