"""The tables of `journal.db` and `auth.db`, and the way from one version of tables to the next.

``user_version`` is the version. Each stored binary record carries a format byte, so that the
encoding can change without touching what is on disk. Ids that stand in every row (context,
principal, session, block) are small numbers that refer to one row with the full id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

RECORD_FORMAT: Final = 1
"""Format of the binary columns written by this version."""

NUMBERS_AT_ONCE: Final = 100
"""How many numbers of contexts a kernel takes at a time."""

READABLE_FORMATS: Final = frozenset({1})
"""Formats of transactions that this version reads."""

# Rows of `ops` are only ever added at the end, under one number that holds context and `seq`, and
# leave out what most rows have in common: streamed text takes a fifth less. The touched blocks in
# a table of their own would take 13 % more. A blob is written in the transaction of the first block
# that names it, and stays as the transactions do: there is never one that nothing names.
_TABLES: Final = """
CREATE TABLE kernel (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE principals (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    username TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    created INTEGER NOT NULL,
    display_name TEXT
);

CREATE TABLE sessions (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    principal INTEGER NOT NULL REFERENCES principals (number),
    via TEXT NOT NULL,
    opened INTEGER NOT NULL
);

CREATE TABLE contexts (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    label TEXT NOT NULL UNIQUE,
    epoch TEXT NOT NULL,
    created INTEGER NOT NULL,
    archived INTEGER,
    source INTEGER REFERENCES contexts (number),
    source_seq INTEGER,
    copied INTEGER,
    creator INTEGER REFERENCES principals (number)
);

CREATE TABLE ops (
    id INTEGER PRIMARY KEY,
    format INTEGER NOT NULL,
    time INTEGER NOT NULL,
    principal INTEGER NOT NULL REFERENCES principals (number),
    session INTEGER NOT NULL REFERENCES sessions (number),
    other_operation TEXT,
    unit INTEGER,
    blocks NOT NULL,
    changes BLOB NOT NULL,
    context INTEGER NOT NULL AS (id >> 32) VIRTUAL,
    seq INTEGER NOT NULL AS (id & 4294967295) VIRTUAL,
    operation TEXT NOT NULL AS (coalesce(other_operation, 'append')) VIRTUAL,
    touched TEXT NOT NULL AS (
        CASE typeof(blocks)
            WHEN 'integer' THEN (blocks & 4095) || ':' || (blocks >> 12)
            ELSE blocks
        END
    ) VIRTUAL
);

CREATE TABLE blocks (
    context INTEGER NOT NULL REFERENCES contexts (number),
    number INTEGER NOT NULL,
    id TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL,
    PRIMARY KEY (context, number)
) WITHOUT ROWID;

CREATE TABLE clients (
    context INTEGER NOT NULL REFERENCES contexts (number),
    client INTEGER NOT NULL,
    principal INTEGER NOT NULL REFERENCES principals (number),
    PRIMARY KEY (context, client)
) WITHOUT ROWID;

CREATE TABLE undo (
    context INTEGER NOT NULL REFERENCES contexts (number),
    unit INTEGER NOT NULL,
    block TEXT NOT NULL,
    principal INTEGER NOT NULL REFERENCES principals (number),
    kind TEXT NOT NULL,
    stack TEXT NOT NULL,
    place INTEGER NOT NULL,
    time INTEGER NOT NULL,
    PRIMARY KEY (context, unit, block)
) WITHOUT ROWID;

CREATE TABLE revived (
    context INTEGER NOT NULL REFERENCES contexts (number),
    seq INTEGER NOT NULL,
    format INTEGER NOT NULL,
    revivals BLOB NOT NULL,
    PRIMARY KEY (context, seq)
) WITHOUT ROWID;

CREATE TABLE inherited_blame (
    context INTEGER NOT NULL REFERENCES contexts (number),
    block INTEGER NOT NULL,
    section TEXT NOT NULL,
    format INTEGER NOT NULL,
    runs TEXT NOT NULL,
    PRIMARY KEY (context, block, section)
) WITHOUT ROWID;

CREATE TABLE snapshots (
    context INTEGER PRIMARY KEY REFERENCES contexts (number),
    format INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    state_vector BLOB NOT NULL,
    state BLOB NOT NULL,
    headers BLOB NOT NULL,
    digest BLOB NOT NULL
);

CREATE TABLE blobs (hash TEXT PRIMARY KEY, data BLOB NOT NULL);

CREATE VIRTUAL TABLE search USING fts5(text, beyond, detail = none, tokenize = 'trigram');

CREATE TABLE long_texts (row INTEGER PRIMARY KEY, text TEXT NOT NULL);

CREATE TABLE searched (
    row INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    kind TEXT NOT NULL,
    path TEXT,
    length INTEGER NOT NULL
);

CREATE TABLE searched_contexts (
    context INTEGER PRIMARY KEY REFERENCES contexts (number),
    seq INTEGER NOT NULL
);

CREATE TABLE pages (
    context INTEGER PRIMARY KEY REFERENCES contexts (number),
    format INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    page BLOB NOT NULL,
    digest BLOB NOT NULL
);

CREATE TABLE recent_states (
    context INTEGER PRIMARY KEY REFERENCES contexts (number),
    format INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    about TEXT NOT NULL,
    state BLOB NOT NULL,
    digest BLOB NOT NULL
);
"""


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of a file: SQL for an empty one, and from each version to the next."""

    first: int
    """The version that an empty file gets; older ones are not read."""
    tables: str
    migrations: tuple[str, ...] = ()
    """In order; a new one goes to the end, also in Postgres. A released one is never edited."""
    name: str = "journal"
    """Name of the schema in Postgres that has the same tables."""
    usable_from: int = 0
    """The oldest version whose antiphon may still use the newest tables in Postgres."""

    @property
    def newest(self) -> int:
        return self.first + len(self.migrations)

    def refusal(self, version: int) -> str | None:
        """Return why a file of some version cannot be used; None if it can. 0 is an empty one."""
        if version > self.newest:
            return (
                f"has version {version}, this antiphon knows {self.newest}:"
                " use the antiphon that wrote it, or a newer one"
            )
        if 0 < version < self.first:
            return (
                f"has version {version}, this antiphon knows {self.first} and later ones:"
                " open it once with the antiphon of 2026-11-20, which brings it there"
            )
        return None

    def steps(self, version: int) -> list[tuple[int, str]]:
        """Return the versions behind one, each with the SQL that leads to it."""
        if not version:
            return [(self.first, self.tables), *self.steps(self.first)]
        later = enumerate(self.migrations[version - self.first :], version + 1)
        return list(later)


_FILES: Final = """
ALTER TABLE contexts ADD COLUMN kind TEXT NOT NULL DEFAULT 'conversation';

CREATE TABLE files (
    context INTEGER PRIMARY KEY REFERENCES contexts (number),
    path TEXT NOT NULL UNIQUE,
    format TEXT NOT NULL,
    digest TEXT NOT NULL,
    version INTEGER NOT NULL,
    base BLOB NOT NULL,
    next_digest TEXT NOT NULL,
    next_version INTEGER NOT NULL,
    state TEXT NOT NULL,
    theirs BLOB NOT NULL
);
"""


# Authors of what was written elsewhere, by the version of the block that brought it.
_DRIFTS: Final = """
CREATE TABLE inherited_authors (
    context INTEGER NOT NULL REFERENCES contexts (number),
    block INTEGER NOT NULL,
    section TEXT NOT NULL,
    version INTEGER NOT NULL,
    format INTEGER NOT NULL,
    runs TEXT NOT NULL,
    PRIMARY KEY (context, block, section, version)
) WITHOUT ROWID;

INSERT INTO inherited_authors SELECT context, block, section, 1, format, runs FROM inherited_blame;

DROP TABLE inherited_blame;
ALTER TABLE inherited_authors RENAME TO inherited_blame;

CREATE TABLE drifts (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    source INTEGER NOT NULL REFERENCES contexts (number),
    version INTEGER NOT NULL,
    target INTEGER NOT NULL REFERENCES contexts (number),
    principal INTEGER NOT NULL REFERENCES principals (number),
    time INTEGER NOT NULL,
    state TEXT NOT NULL,
    seq INTEGER NOT NULL,
    block TEXT NOT NULL,
    request TEXT NOT NULL,
    outcome TEXT NOT NULL
) WITHOUT ROWID;
"""


_AGENTS: Final = """
CREATE TABLE agent_sessions (
    context INTEGER NOT NULL REFERENCES contexts (number),
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (context, agent)
) WITHOUT ROWID;
"""


_PRESENCES: Final = """
CREATE TABLE presences (
    context INTEGER NOT NULL REFERENCES contexts (number),
    seq INTEGER NOT NULL,
    time INTEGER NOT NULL,
    session INTEGER NOT NULL REFERENCES sessions (number),
    activity TEXT,
    block INTEGER,
    cursor INTEGER,
    anchor INTEGER,
    PRIMARY KEY (context, seq, time, session)
) WITHOUT ROWID;
"""


JOURNAL_SCHEMA: Final = Schema(6, _TABLES, (_FILES, _DRIFTS, _AGENTS, _PRESENCES))


# Of undecided calls and rules only: who decided about a call is in the context's transactions. The
# last three columns of credentials are of authorities, which there are no more.
_AUTH_TABLES: Final = """
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

AUTH_SCHEMA: Final = Schema(5, _AUTH_TABLES, name="auth")
