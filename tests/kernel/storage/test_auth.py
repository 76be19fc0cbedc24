"""`auth.db`: opened, brought up to date, private, and no place for secrets."""

from __future__ import annotations

import sqlite3
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from antiphon_kernel.storage import AUTH_FILE, AuthStore, Client, Credential, User
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import PrincipalId
from antiphon_kernel.types.roles import AccessRole, CredentialKind

VERA = User(0, "vera", PrincipalId("b" * 32), AccessRole.VIEWER, 5, PrincipalKind.HUMAN)


async def opened(folder: Path) -> AuthStore:
    return await AuthStore.open(folder / AUTH_FILE)


async def test_file_is_this_users_alone_whatever_it_was_before(tmp_path: Path) -> None:
    (tmp_path / AUTH_FILE).touch(0o644)
    store = await opened(tmp_path)
    await store.add(VERA)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob(f"{AUTH_FILE}*")}
    assert modes == {0o600}
    await store.database.close()


async def test_auth_store_reopened_returns_stored_rows(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    user = await store.add(VERA)
    made = Credential(0, user.number, CredentialKind.TOKEN, "f" * 64, False, 5, 6, None, 3, 0)
    stored = await store.add(made)
    client = Client(stored.number, "e" * 64, user.number, 7)
    await store.count_use(stored, client)
    await store.change(replace(stored, revoked=8), "revoked")
    await store.database.close()

    again = await opened(tmp_path)
    assert await again.records(User) == [user]
    (found,) = await again.records(Credential)
    assert found == Credential(
        stored.number, user.number, CredentialKind.TOKEN, "f" * 64, False, 5, 6, 8, 3, 1
    )
    assert await again.records(Client) == [client]
    await again.database.close()


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("UPDATE users SET role = 'emperor'", r"the role of user 1 \(vera\) is 'emperor'.*viewer"),
        ("UPDATE users SET kind = 'ghost'", r"the kind of user 1 \(vera\) is 'ghost'.*human"),
    ],
)
async def test_unknown_word_in_a_row_is_an_error_that_names_it(
    tmp_path: Path, sql: str, named: str
) -> None:
    store = await opened(tmp_path)
    await store.add(VERA)
    await store.database.close()
    with sqlite3.connect(tmp_path / AUTH_FILE) as database:
        database.execute("PRAGMA ignore_check_constraints = 1")
        database.execute(sql)
    database.close()
    again = await opened(tmp_path)
    with pytest.raises(AntiphonError, match=named) as caught:
        await again.records(User)
    assert caught.value.code is ErrorCode.STORAGE_FAILED
    assert "\n" not in caught.value.message and "antiphon doctor" in caught.value.message
    await again.database.close()
