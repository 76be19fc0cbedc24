"""The tables of `auth.db`, and the way from one version of them to the next."""

from __future__ import annotations

from typing import Final

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

AUTH_MIGRATIONS: Final = (_INITIAL,)
"""In order; a new one goes to the end. What has been released is never edited."""
