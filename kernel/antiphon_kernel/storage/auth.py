"""`auth.db`: who may do what in a kernel, and what lets them in. No secret is in it, only hashes.

It is apart from the journal, so that documents can be handed on without it. So are the calls of
models that wait for a decision, and the rules of those that always run: a journal that comes from
elsewhere, or from a backup, asks nobody and allows nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar

from antiphon_kernel.storage.database import Database
from antiphon_kernel.storage.schema import Schema
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import ContextId, PrincipalId
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import Principal
from antiphon_kernel.types.roles import AccessRole, CredentialKind

# Of undecided calls and rules only: who decided about a call is in the context's transactions. The
# last three columns of credentials are of authorities, which there are no more.
_SQL: Final = """
CREATE TABLE users (
    number INTEGER PRIMARY KEY,
    username TEXT NOT NULL UNIQUE,
    principal TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    role TEXT NOT NULL,
    created INTEGER NOT NULL,
    barred_until INTEGER
);

CREATE TABLE credentials (
    number INTEGER PRIMARY KEY,
    user INTEGER NOT NULL REFERENCES users (number),
    kind TEXT NOT NULL,
    fingerprint TEXT NOT NULL UNIQUE,
    named INTEGER NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER,
    revoked INTEGER,
    uses_allowed INTEGER,
    uses INTEGER NOT NULL DEFAULT 0,
    authority INTEGER REFERENCES credentials (number),
    principals TEXT,
    role TEXT
);

CREATE TABLE clients (
    credential INTEGER NOT NULL REFERENCES credentials (number),
    secret TEXT NOT NULL,
    user INTEGER NOT NULL REFERENCES users (number),
    first_used INTEGER NOT NULL,
    PRIMARY KEY (credential, secret)
) WITHOUT ROWID;

CREATE TABLE tool_permissions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    context TEXT NOT NULL,
    call TEXT NOT NULL,
    model TEXT NOT NULL,
    tool TEXT NOT NULL,
    arguments TEXT NOT NULL,
    asker TEXT NOT NULL,
    credential INTEGER REFERENCES credentials (number),
    asked INTEGER NOT NULL,
    decided_by TEXT,
    decided INTEGER
);

CREATE TABLE decisions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    time INTEGER NOT NULL,
    principal TEXT NOT NULL,
    what TEXT NOT NULL
);
"""

AUTH_SCHEMA: Final = Schema(5, _SQL)

AUTH_FILE: Final = "auth.db"

Word = TypeVar("Word", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class User:
    """A principal as far as access goes. Times are milliseconds since the epoch."""

    number: int
    username: str
    principal: PrincipalId
    role: AccessRole
    created: int
    kind: PrincipalKind
    barred_until: int | None = None
    """Kicked: not let in before this time."""


@dataclass(frozen=True, slots=True)
class Credential:
    """Authentication credential. Times are milliseconds since the epoch."""

    number: int
    user: int
    kind: CredentialKind
    fingerprint: str
    """SHA-256 of a token in hex digits, or an SSH key's fingerprint."""
    named: bool
    """True if all who use it are `user`; else only the first is, and later ones are new users."""
    created: int
    expires: int | None
    revoked: int | None
    uses_allowed: int | None
    """How many clients it lets in; None: any number."""
    uses: int


@dataclass(frozen=True, slots=True)
class Client:
    """One program that has come in with a credential."""

    credential: int
    secret: str
    """SHA-256, in hex digits, of what the program knows itself by."""
    user: int
    first_used: int


@dataclass(frozen=True, slots=True)
class ToolPermission:
    """A model's call that waits for a person's decision, or the rule that such a decision made.

    Times are milliseconds since the epoch.
    """

    number: int
    context: ContextId
    call: str
    """Block of the call."""
    model: PrincipalId
    tool: str
    """Name of the tool for models."""
    arguments: str
    """A JSON object in canonical form: equal calls have equal texts."""
    asker: PrincipalId
    """Principal whose rights the call has."""
    credential: int | None
    """Number of the credential that let the asker in; None for the owner."""
    asked: int
    decided_by: PrincipalId | None = None
    """Principal who allowed it always; None while nobody has decided."""
    decided: int | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Decision of an owner about who may come in or do what."""

    time: int
    """Milliseconds since the epoch."""
    principal: PrincipalId
    """Id of the owner."""
    what: str
    """A sentence without a full stop."""


Record = TypeVar("Record", User, Credential, ToolPermission, Decision)

_TABLES: Final[Mapping[type, str]] = {
    User: "users",
    Credential: "credentials",
    ToolPermission: "tool_permissions",
    Decision: "decisions",
}
"""The table of each kind of record: its columns have the names of the record's fields."""


class AuthStore:
    """The open file. What a method returns is on disk."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    async def open(cls, path: Path) -> AuthStore:
        """Open or create the file, readable by this user only."""
        return cls(await Database.open(path, AUTH_SCHEMA))

    async def close(self) -> None:
        await self._database.close()

    @property
    def database(self) -> Database:
        """For whoever must know when it is lost."""
        return self._database

    async def users(self) -> list[User]:
        """Everybody who has a role, oldest first."""
        return [
            replace(
                user,
                role=_known(AccessRole, user.role, f"the role of user {user.number} ({name})"),
                kind=_known(PrincipalKind, user.kind, f"the kind of user {user.number} ({name})"),
            )
            for user in await self._records(User)
            for name in (user.username,)
        ]

    async def credentials(self) -> list[Credential]:
        """All that were ever given out, oldest first."""
        return [
            replace(
                one,
                kind=_known(CredentialKind, one.kind, f"the kind of credential {one.number}"),
                named=bool(one.named),
            )
            for one in await self._records(Credential)
        ]

    async def clients(self) -> list[Client]:
        """Every program that has come in with a credential."""
        sql = "SELECT credential, secret, user, first_used FROM clients"
        return [Client(*row) for row in await self._database.select(sql)]

    async def add_user(self, principal: Principal, role: AccessRole, created: int) -> User:
        user = User(0, principal.username, principal.id, role, created, principal.kind)
        return replace(user, number=await self._add(user))

    async def change_user(self, user: User) -> None:
        """Store another role or another bar."""
        await self._change(user, "role", "barred_until")

    async def add_credential(self, credential: Credential) -> Credential:
        """Store one; its number is drawn here."""
        return replace(credential, number=await self._add(credential))

    async def renew(self, credential: Credential) -> None:
        """Store a credential anew that was not good, or that somebody else lets in now."""
        await self._change(credential, "user", "created", "expires", "revoked")

    async def revoke(self, credential: int, revoked: int) -> None:
        await self._database.insert(
            "UPDATE credentials SET revoked = ? WHERE number = ?", (revoked, credential)
        )

    async def count_use(self, credential: Credential, client: Client | None) -> None:
        """A credential has let in one more client; in one transaction with who that is."""
        rows = (
            [(client.credential, client.secret, client.user, client.first_used)] if client else []
        )
        await self._database.write(
            [
                (
                    "UPDATE credentials SET uses = ? WHERE number = ?",
                    [(credential.uses, credential.number)],
                ),
                ("INSERT INTO clients VALUES (?, ?, ?, ?)", rows),
            ]
        )

    async def tool_permissions(self) -> list[ToolPermission]:
        """Every undecided call and every rule in force, oldest first."""
        return await self._records(ToolPermission)

    async def add_tool_permission(self, permission: ToolPermission) -> ToolPermission:
        """Store one; its number is drawn here."""
        return replace(permission, number=await self._add(permission))

    async def allow_always(self, permission: ToolPermission) -> None:
        """Make an undecided call a rule."""
        await self._change(permission, "decided_by", "decided")

    async def add_decision(self, decision: Decision) -> None:
        """Store one; nothing takes it out again."""
        await self._add(decision)

    async def decisions(self) -> list[Decision]:
        """Return every decision, oldest first."""
        return await self._records(Decision)

    async def remove_tool_permission(self, number: int) -> None:
        await self._database.insert("DELETE FROM tool_permissions WHERE number = ?", (number,))

    async def _records(self, kind: type[Record]) -> list[Record]:
        """Return every record of a kind as it is stored, oldest first."""
        columns = [one.name for one in fields(kind)]
        sql = f"SELECT {', '.join(columns)} FROM {_TABLES[kind]} ORDER BY number"
        return [kind(*row) for row in await self._database.select(sql)]

    async def _add(self, record: User | Credential | ToolPermission | Decision) -> int:
        """Store a record; return its number."""
        columns = [one.name for one in fields(record) if one.name != "number"]
        return await self._database.insert(
            f"INSERT INTO {_TABLES[type(record)]} ({', '.join(columns)})"
            f" VALUES ({', '.join('?' * len(columns))})",
            [getattr(record, name) for name in columns],
        )

    async def _change(self, record: User | Credential | ToolPermission, *columns: str) -> None:
        """Store these fields of a record that is stored already."""
        await self._database.insert(
            f"UPDATE {_TABLES[type(record)]} SET {', '.join(f'{one} = ?' for one in columns)}"
            " WHERE number = ?",
            [*(getattr(record, name) for name in columns), record.number],
        )


def _known(words: type[Word], stored: str, what: str) -> Word:
    """Return what a row says; raises AntiphonError storage_failed for an unknown word."""
    if stored in (allowed := tuple(words)):
        return words(stored)
    raise AntiphonError(
        ErrorCode.STORAGE_FAILED,
        f"{AUTH_FILE} is damaged: {what} is {quote(stored)}, and can only be"
        f" {', '.join(allowed)}. Put a sound {AUTH_FILE} in its place or correct the row, with no"
        " kernel running; `antiphon doctor` names every such row.",
    )
