"""Snapshots of contexts, for quick opening."""

SQL = """
CREATE TABLE snapshots (
    context INTEGER PRIMARY KEY REFERENCES contexts (number),
    format INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    state_vector BLOB NOT NULL,
    state BLOB NOT NULL,
    headers BLOB NOT NULL,
    digest BLOB NOT NULL
);
"""
