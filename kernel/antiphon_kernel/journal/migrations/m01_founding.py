"""The tables a kernel begins with."""

SQL = """
CREATE TABLE kernel (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE principals (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    username TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    created INTEGER NOT NULL
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
    created INTEGER NOT NULL
);

CREATE TABLE ops (
    context INTEGER NOT NULL REFERENCES contexts (number),
    seq INTEGER NOT NULL,
    format INTEGER NOT NULL,
    time INTEGER NOT NULL,
    principal INTEGER NOT NULL REFERENCES principals (number),
    session INTEGER NOT NULL REFERENCES sessions (number),
    operation TEXT NOT NULL,
    unit INTEGER,
    touched TEXT NOT NULL,
    changes BLOB NOT NULL,
    PRIMARY KEY (context, seq)
) WITHOUT ROWID;

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
    number INTEGER NOT NULL,
    format INTEGER NOT NULL,
    principal INTEGER NOT NULL REFERENCES principals (number),
    session INTEGER NOT NULL,
    kind TEXT NOT NULL,
    stack TEXT NOT NULL,
    time INTEGER NOT NULL,
    blocks TEXT NOT NULL,
    inserted BLOB NOT NULL,
    deleted BLOB NOT NULL,
    PRIMARY KEY (context, number)
) WITHOUT ROWID;
"""
