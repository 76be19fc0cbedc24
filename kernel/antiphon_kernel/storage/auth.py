"""`auth.db`: who may do what in a kernel, and what lets them in. No secret is in it, only hashes.

It is apart from the journal, so that documents can be handed on without it. So are the calls of
models that wait for a decision, and the rules of those that always run: a journal that comes from
elsewhere, or from a backup, asks nobody and allows nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar

from antiphon_kernel.storage.database import Database
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import ContextId, PrincipalId
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import Principal
from antiphon_kernel.types.roles import AccessRole, CredentialKind

_INITIAL: Final = """
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
    uses INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE clients (
    credential INTEGER NOT NULL REFERENCES credentials (number),
    secret TEXT NOT NULL,
    user INTEGER NOT NULL REFERENCES users (number),
    first_used INTEGER NOT NULL,
    PRIMARY KEY (credential, secret)
) WITHOUT ROWID;
"""

# Undecided calls and rules only: who decided about a call is in the context's transactions.
_TOOL_PERMISSIONS: Final = """
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
"""

_DECISIONS: Final = """
CREATE TABLE decisions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    time INTEGER NOT NULL,
    principal TEXT NOT NULL,
    what TEXT NOT NULL
);
"""

_AUTHORITIES: Final = """
ALTER TABLE credentials ADD COLUMN authority INTEGER REFERENCES credentials (number);
ALTER TABLE credentials ADD COLUMN principals TEXT;
ALTER TABLE credentials ADD COLUMN role TEXT;
"""

AUTH_MIGRATIONS: Final = (_INITIAL, _TOOL_PERMISSIONS, _DECISIONS, _AUTHORITIES)
"""In order; a new one goes to the end. What has been released is never edited."""


AUTH_FILE: Final = "auth.db"

Word = TypeVar("Word", bound=StrEnum)

_USER: Final = "SELECT number, username, principal, role, created, kind, barred_until FROM users"
_PERMISSION: Final = (
    "context, call, model, tool, arguments, asker, credential, asked, decided_by, decided"
)
_CREDENTIAL: Final = (
    "SELECT number, user, kind, fingerprint, named, created, expires, revoked, uses_allowed, uses,"
    " authority, principals, role FROM credentials ORDER BY number"
)


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
    authority: int | None = None
    """Number of the authority without whose certificates a key counts for nothing."""
    principals: str | None = None
    """Of an authority: names that its certificates may give, with commas between, None for any; of
    a key: the name in the certificate that it came with first."""
    role: AccessRole | None = None
    """Of an authority: the role of whoever comes with its certificates for the first time."""


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


class AuthStore:
    """The open file. What a method returns is on disk."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    async def open(cls, path: Path) -> AuthStore:
        """Open or create the file, readable by this user only.

        Raises:
            AntiphonError: storage_failed.
        """
        return cls(await Database.open(path, AUTH_MIGRATIONS))

    async def close(self) -> None:
        await self._database.close()

    @property
    def database(self) -> Database:
        """For whoever must know when it is lost."""
        return self._database

    async def users(self) -> list[User]:
        """Everybody who has a role, oldest first."""
        rows = await self._database.select(_USER + " ORDER BY number")
        return [
            User(
                row[0],
                row[1],
                PrincipalId(row[2]),
                _known(AccessRole, row[3], f"the role of user {row[0]} ({row[1]})"),
                row[4],
                _known(PrincipalKind, row[5], f"the kind of user {row[0]} ({row[1]})"),
                row[6],
            )
            for row in rows
        ]

    async def credentials(self) -> list[Credential]:
        """All that were ever given out, oldest first."""
        return [
            Credential(
                row[0],
                row[1],
                _known(CredentialKind, row[2], f"the kind of credential {row[0]}"),
                row[3],
                bool(row[4]),
                row[5],
                row[6],
                row[7],
                row[8],
                row[9],
                row[10],
                row[11],
                row[12] and _known(AccessRole, row[12], f"the role of credential {row[0]}"),
            )
            for row in await self._database.select(_CREDENTIAL)
        ]

    async def clients(self) -> list[Client]:
        """Every program that has come in with a credential."""
        sql = "SELECT credential, secret, user, first_used FROM clients"
        return [Client(*row) for row in await self._database.select(sql)]

    async def add_user(self, principal: Principal, role: AccessRole, created: int) -> User:
        username, kind = principal.username, principal.kind
        number = await self._database.insert(
            "INSERT INTO users (username, principal, role, created, kind) VALUES (?, ?, ?, ?, ?)",
            (username, principal.id, role, created, kind),
        )
        return User(number, username, principal.id, role, created, kind)

    async def change_user(self, user: User) -> None:
        """Store another role or another bar."""
        await self._database.insert(
            "UPDATE users SET role = ?, barred_until = ? WHERE number = ?",
            (user.role, user.barred_until, user.number),
        )

    async def add_credential(self, credential: Credential) -> Credential:
        """Store one; its number is drawn here."""
        number = await self._database.insert(
            "INSERT INTO credentials"
            " (user, kind, fingerprint, named, created, expires, revoked, uses_allowed, uses,"
            " authority, principals, role)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                credential.user,
                credential.kind,
                credential.fingerprint,
                int(credential.named),
                credential.created,
                credential.expires,
                credential.revoked,
                credential.uses_allowed,
                credential.uses,
                credential.authority,
                credential.principals,
                credential.role,
            ),
        )
        return replace(credential, number=number)

    async def renew(self, credential: Credential) -> None:
        """Store a credential anew that was not good, or that somebody else lets in now."""
        await self._database.insert(
            "UPDATE credentials SET user = ?, created = ?, expires = ?, revoked = NULL,"
            " authority = ?, principals = ?, role = ? WHERE number = ?",
            (
                credential.user,
                credential.created,
                credential.expires,
                credential.authority,
                credential.principals,
                credential.role,
                credential.number,
            ),
        )

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
        sql = f"SELECT number, {_PERMISSION} FROM tool_permissions ORDER BY number"
        return [ToolPermission(*row) for row in await self._database.select(sql)]

    async def add_tool_permission(self, permission: ToolPermission) -> ToolPermission:
        """Store one; its number is drawn here."""
        names = _PERMISSION.split(", ")
        number = await self._database.insert(
            f"INSERT INTO tool_permissions ({_PERMISSION}) VALUES ({', '.join('?' * len(names))})",
            [getattr(permission, name) for name in names],
        )
        return replace(permission, number=number)

    async def allow_always(self, permission: ToolPermission) -> None:
        """Make an undecided call a rule."""
        await self._database.insert(
            "UPDATE tool_permissions SET decided_by = ?, decided = ? WHERE number = ?",
            (permission.decided_by, permission.decided, permission.number),
        )

    async def add_decision(self, decision: Decision) -> None:
        """Store one; nothing takes it out again."""
        await self._database.insert(
            "INSERT INTO decisions (time, principal, what) VALUES (?, ?, ?)",
            (decision.time, decision.principal, decision.what),
        )

    async def decisions(self) -> list[Decision]:
        """Return every decision, oldest first."""
        rows = await self._database.select(
            "SELECT time, principal, what FROM decisions ORDER BY number"
        )
        return [Decision(time, PrincipalId(principal), what) for time, principal, what in rows]

    async def remove_tool_permission(self, number: int) -> None:
        await self._database.insert("DELETE FROM tool_permissions WHERE number = ?", (number,))


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
