"""Versions of `auth.db`. A released migration is never changed."""

from __future__ import annotations

from typing import Final

PRINCIPAL_OF: Final = "principal_of"
"""SQL function: the id of the principal of a username, a fresh one if nobody has the name yet."""

_FOUNDING: Final = """
CREATE TABLE users (
    number INTEGER PRIMARY KEY,
    username TEXT NOT NULL UNIQUE,
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

_PRINCIPALS: Final = f"""
ALTER TABLE users ADD COLUMN principal TEXT;
UPDATE users SET principal = {PRINCIPAL_OF}(username);
CREATE UNIQUE INDEX users_by_principal ON users (principal);
"""

_KINDS: Final = """
ALTER TABLE users ADD COLUMN kind TEXT;
"""

AUTH_MIGRATIONS: Final = (_FOUNDING, _PRINCIPALS, _KINDS)
"""Each brings the file from the version before it to the next; the first one is for none."""
