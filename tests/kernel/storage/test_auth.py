"""`auth.db`: opened, brought up to date, private, and no place for secrets."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest

from antiphon_kernel.storage import AUTH_FILE, AuthStore, Client, Credential
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import PrincipalId
from antiphon_kernel.types.records import Principal
from antiphon_kernel.types.roles import AccessRole, CredentialKind


def _person(name: str, letter: str) -> Principal:
    return Principal(PrincipalId(letter * 32), name, PrincipalKind.HUMAN)


async def opened(folder: Path) -> AuthStore:
    return await AuthStore.open(folder / AUTH_FILE)


async def test_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / AUTH_FILE)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(AntiphonError, match="version 99") as refused:
        await opened(tmp_path)
    assert refused.value.code is ErrorCode.STORAGE_FAILED


async def test_file_is_this_users_alone_whatever_it_was_before(tmp_path: Path) -> None:
    (tmp_path / AUTH_FILE).touch(0o644)
    store = await opened(tmp_path)
    await store.add_user(_person("amy", "a"), AccessRole.OWNER, 1)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob(f"{AUTH_FILE}*")}
    assert modes == {0o600}
    await store.close()


async def test_auth_store_reopened_returns_stored_rows(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    user = await store.add_user(_person("vera", "b"), AccessRole.VIEWER, 5)
    made = Credential(0, user.number, CredentialKind.TOKEN, "f" * 64, False, 5, 6, None, 3, 0)
    stored = await store.add_credential(made)
    client = Client(stored.number, "e" * 64, user.number, 7)
    await store.count_use(stored, client)
    await store.revoke(stored.number, 8)
    await store.close()

    again = await opened(tmp_path)
    assert await again.users() == [user]
    (found,) = await again.credentials()
    assert found == Credential(
        stored.number, user.number, CredentialKind.TOKEN, "f" * 64, False, 5, 6, 8, 3, 0
    )
    assert await again.clients() == [client]
    await again.close()


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
    await store.add_user(_person("vera", "b"), AccessRole.VIEWER, 5)
    await store.close()
    with sqlite3.connect(tmp_path / AUTH_FILE) as database:
        database.execute("PRAGMA ignore_check_constraints = 1")
        database.execute(sql)
    database.close()
    again = await opened(tmp_path)
    with pytest.raises(AntiphonError, match=named) as caught:
        await again.users()
    assert caught.value.code is ErrorCode.STORAGE_FAILED
    assert "\n" not in caught.value.message and "antiphon doctor" in caught.value.message
    await again.close()
