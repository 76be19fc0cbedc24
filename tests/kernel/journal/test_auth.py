"""`auth.db`: opened, brought up to date, private, and no place for secrets."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest

from antiphon_kernel.journal.auth import AUTH_FILE, AuthStore, Client, Credential
from antiphon_kernel.journal.auth_schema import AUTH_MIGRATIONS
from antiphon_kernel.kernel.access.invitations import NotAdmittedError
from antiphon_kernel.kernel.kernel import Kernel
from antiphon_kernel.kernel.registry import Registry
from antiphon_kernel.kernel.tools.catalogue import KERNEL_TOOLS
from antiphon_kernel.types.access import AccessRole, CredentialKind
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import PrincipalId, RandomIds
from antiphon_kernel.types.records import Principal

FIXTURES = Path(__file__).parent / "fixtures"


def lay_down(path: Path, version: int) -> None:
    """The file as an older version left it."""
    database = sqlite3.connect(path)
    database.executescript((FIXTURES / f"auth_v{version}.sql").read_text("utf-8"))
    database.close()


def _person(name: str, letter: str) -> Principal:
    return Principal(PrincipalId(letter * 32), name, PrincipalKind.HUMAN)


async def opened(folder: Path, known: dict[str, str] | None = None) -> AuthStore:
    ids = RandomIds()
    names = known or {}
    return await AuthStore.open(folder / AUTH_FILE, lambda name: names.get(name) or ids.uuid7())


async def test_users_of_version_1_get_their_principal_and_keep_the_rest(tmp_path: Path) -> None:
    lay_down(tmp_path / AUTH_FILE, 1)
    amy = "a" * 32
    store = await opened(tmp_path, {"amy": amy})
    users = {one.username: one for one in await store.users()}
    assert users["amy"].principal == amy, "a name that the journal knows keeps its id"
    assert len({one.principal for one in users.values()}) == 3
    assert all(len(one.principal) == 32 for one in users.values())
    assert [(one.number, one.role) for one in users.values()] == [
        (1, AccessRole.OWNER),
        (2, AccessRole.VIEWER),
        (3, AccessRole.EDITOR),
    ]
    assert users["kurt"].barred_until == 4_100_000_000_000
    credentials = await store.credentials()
    assert [(one.user, one.kind, one.revoked) for one in credentials] == [
        (2, CredentialKind.TOKEN, None),
        (3, CredentialKind.TOKEN, 1_700_000_003_000),
        (1, CredentialKind.SSH_KEY, None),
    ]
    assert [one.user for one in await store.clients()] == [2]
    await store.close()

    again = await opened(tmp_path)
    assert {one.username: one for one in await again.users()} == users
    await again.close()


async def test_users_of_version_2_are_what_the_journal_says(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    lay_down(data / AUTH_FILE, 2)
    store = await opened(data)
    assert [(one.username, one.kind) for one in await store.users()] == [
        ("amy", None),
        ("vera", None),
        ("kurt", None),
    ]
    await store.close()
    kernel = await Kernel.open(data, tmp_path, registry=Registry(KERNEL_TOOLS), owner="amy")
    try:
        vera = kernel.find_principal("vera")
        assert (vera.id, vera.kind) == ("b" * 32, PrincipalKind.HUMAN)
        assert kernel.role_of(vera) is AccessRole.VIEWER
    finally:
        await kernel.close()


async def test_a_kernel_on_a_store_of_version_1_lets_in_by_its_tokens(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    lay_down(data / AUTH_FILE, 1)
    kernel = await Kernel.open(data, tmp_path, registry=Registry(KERNEL_TOOLS), owner="amy")
    try:
        vera, _ = await kernel.invitations.admit("veras-token-of-version-1", None)
        assert (vera.username, kernel.role_of(vera)) == ("vera", AccessRole.VIEWER)
        with pytest.raises(NotAdmittedError, match="revoked"):
            await kernel.invitations.admit("kurts-token-of-version-1", None)
        with pytest.raises(NotAdmittedError, match="kicked"):
            kernel.gate.check_welcome(kernel.find_principal("kurt"))
        key = "SHA256:uNiVztksCsDhcc0u9e8BrrJXVGLSTiDxqtu5v4XPWCU"
        # What identifies a key is no secret: it must not be good as a token.
        with pytest.raises(NotAdmittedError, match="not one of"):
            await kernel.invitations.admit(key, None)
    finally:
        await kernel.close()


def test_every_older_version_has_a_fixture() -> None:
    versions = range(1, len(AUTH_MIGRATIONS))
    assert all((FIXTURES / f"auth_v{version}.sql").exists() for version in versions)


async def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / AUTH_FILE)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(AntiphonError, match="version 99") as refused:
        await opened(tmp_path)
    assert refused.value.code is ErrorCode.STORAGE_FAILED


async def test_the_file_is_this_users_alone_whatever_it_was_before(tmp_path: Path) -> None:
    (tmp_path / AUTH_FILE).touch(0o644)
    store = await opened(tmp_path)
    await store.add_user(_person("amy", "a"), AccessRole.OWNER, 1)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob(f"{AUTH_FILE}*")}
    assert modes == {0o600}
    await store.close()


async def test_what_is_stored_comes_back(tmp_path: Path) -> None:
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
