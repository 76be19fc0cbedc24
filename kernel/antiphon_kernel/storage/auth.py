"""`auth.db`: who may do what in a kernel, and what lets them in. No secret is in it, only hashes.

It is apart from the journal, so that documents can be handed on without it. So are the calls of
models that wait for a decision, and the rules of those that always run: a journal that comes from
elsewhere, or from a backup, asks nobody and allows nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from uuid import uuid4

from antiphon_kernel.storage.database import Statement
from antiphon_kernel.storage.schema import AUTH_SCHEMA
from antiphon_kernel.storage.stores import SqlDatabase, open_tables
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import storage_failed
from antiphon_kernel.types.ids import ContextId, PrincipalId
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.roles import AccessRole, CredentialKind
from antiphon_kernel.types.signal import Signal
from antiphon_kernel.yjs.close_codes import CloseCode

AUTH_FILE: Final = "auth.db"


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
    epoch: int = 1
    """Counts the changes of what it may do, in a store of several kernels."""


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
    revoked: int | None = None
    uses_allowed: int | None = None
    """How many clients it lets in; None: any number."""
    uses: int = 0


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


@dataclass(frozen=True, slots=True)
class Dismissal:
    """Decision that ends sessions; at other kernels those for which all holds that it says."""

    code: CloseCode
    """Code with which their connections are closed."""
    reason: str
    """Reason that they are told."""
    principal: PrincipalId | None = None
    """Their principal; None: anybody."""
    credential: int | None = None
    """Number of the credential that let them in; None: any."""
    role: str | None = None
    """The role of their principal now, with which they cannot go on; None: whatever it is."""


class StoredAccess(NamedTuple):
    """Members and credentials at one moment."""

    users: list[User]
    credentials: list[Credential]
    clients: list[Client]
    endings: list[Dismissal]
    """Decisions of other kernels since a version, oldest first."""


Record = TypeVar("Record", bound=User | Credential | Client | ToolPermission | Decision)

_TABLES: Final[Mapping[type, str]] = {
    User: "users",
    Credential: "credentials",
    Client: "clients",
    ToolPermission: "tool_permissions",
    Decision: "decisions",
}
"""The table of each kind of record: its columns have the names of the record's fields."""

_WORDS: Final[Mapping[type, Mapping[str, type[StrEnum]]]] = {
    User: {"role": AccessRole, "kind": PrincipalKind},
    Credential: {"kind": CredentialKind},
}
"""Fields of records that hold one of some words."""


_ADD_ENDING: Final = (
    "INSERT INTO endings (version, kernel, ending) SELECT number, ?, ? FROM changes"
)
_ENDINGS: Final = "SELECT ending FROM endings WHERE version > ? AND kernel <> ? ORDER BY number"


class AuthStore:
    """The open file. What a method returns is on disk."""

    def __init__(self, database: SqlDatabase) -> None:
        self.database = database
        self.changed = Signal[()]()
        """Notified after each change of what other kernels hold too."""
        self._name = uuid4().hex
        """Stands at what this kernel has ended."""

    @classmethod
    async def open(cls, place: Path | str) -> AuthStore:
        """Open or create the file, readable by this user only, or the schema of a store's URL."""
        return cls(await open_tables(place, AUTH_SCHEMA))

    async def records(self, kind: type[Record]) -> list[Record]:
        """Return every record of a kind, oldest first; storage_failed if one is not right."""
        columns = self._columns(kind)
        order = "credential" if kind is Client else "number"
        sql = f"SELECT {', '.join(columns)} FROM {_TABLES[kind]} ORDER BY {order}"
        rows = await self.database.select(sql)
        return [kind(**_read(kind, dict(zip(columns, row, strict=True)))) for row in rows]

    async def add(self, record: Record) -> Record:
        """Store a record; its number, if it has one, is drawn here."""
        columns = [one for one in self._columns(type(record)) if one != "number"]
        number = await self.database.insert(
            f"INSERT INTO {_TABLES[type(record)]} ({', '.join(columns)})"
            f" VALUES ({', '.join('?' * len(columns))})",
            [getattr(record, name) for name in columns],
        )
        self.changed.notify()
        return record if isinstance(record, Decision | Client) else replace(record, number=number)

    async def change(
        self,
        record: User | Credential | ToolPermission,
        *columns: str,
        users: Iterable[int] = (),
        ending: Dismissal | None = None,
    ) -> None:
        """Store these fields of a record that is stored already.

        Args:
            users: numbers of those whose rights change with it.
            ending: what ends with it, at other kernels too.
        """
        changes = ", ".join(f"{one} = ?" for one in columns)
        values = (*(getattr(record, name) for name in columns), record.number)
        statements: list[Statement] = [
            (f"UPDATE {_TABLES[type(record)]} SET {changes} WHERE number = ?", [values])
        ]
        if self.database.is_shared:
            endings = [] if ending is None else [(self._name, json.dumps(astuple(ending)))]
            changed = [(user,) for user in sorted(users)]
            statements += [
                ("UPDATE users SET epoch = epoch + 1 WHERE number = ?", changed),
                (_ADD_ENDING, endings),
            ]
        await self.database.write(statements)
        self.changed.notify()

    async def count_use(self, credential: Credential, client: Client | None) -> None:
        """A credential has let in one more client; in one transaction with who that is."""
        await self.database.write(
            [
                ("UPDATE credentials SET uses = uses + 1 WHERE number = ?", [(credential.number,)]),
                ("INSERT INTO clients VALUES (?, ?, ?, ?)", [astuple(client)] if client else []),
            ]
        )
        self.changed.notify()

    # Several kernels

    async def version(self) -> int:
        """Return how often a store of several kernels has been changed, but for permissions."""
        if not self.database.is_shared:
            return 0
        return int((await self.database.select("SELECT number FROM changes"))[0][0])

    async def everything(self, since: int | None = None) -> StoredAccess:
        """Return who may come in, and the endings behind version `since`; without it none."""
        endings: list[Dismissal] = []
        if since is not None:
            rows = await self.database.select(_ENDINGS, (since, self._name))
            found = [json.loads(row[0]) for row in rows]
            endings = [Dismissal(CloseCode(code), *about) for code, *about in found]
        read = self.records
        return StoredAccess(await read(User), await read(Credential), await read(Client), endings)

    async def remove(self, permission: ToolPermission) -> None:
        """Let a decided call or a rule be forgotten."""
        sql = "DELETE FROM tool_permissions WHERE number = ?"
        await self.database.insert(sql, (permission.number,))
        self.changed.notify()

    def _columns(self, kind: type) -> list[str]:
        return [one.name for one in fields(kind) if one.name != "epoch" or self.database.is_shared]


def _read(kind: type, stored: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a row; raises AntiphonError storage_failed for an unknown word."""
    if "named" in stored:
        stored["named"] = bool(stored["named"])
    for name, words in _WORDS.get(kind, {}).items():
        if stored[name] not in (allowed := tuple(words)):
            user = f" ({stored['username']})" if "username" in stored else ""
            what = f"the {name} of {_TABLES[kind][:-1]} {stored['number']}{user}"
            raise storage_failed(
                f"{AUTH_FILE} is damaged: {what} is {quote(stored[name])}, and can only be"
                f" {', '.join(allowed)}. Put a sound {AUTH_FILE} in its place or correct the row,"
                " with no kernel running; `antiphon doctor` names every such row.",
            )
        stored[name] = words(stored[name])
    return stored
