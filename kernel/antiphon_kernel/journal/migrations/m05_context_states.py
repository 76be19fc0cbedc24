"""Contexts are archived, and forked with the names of those who wrote the text."""

SQL = """
ALTER TABLE contexts ADD COLUMN archived INTEGER;

CREATE TABLE inherited_blame (
    context INTEGER NOT NULL REFERENCES contexts (number),
    block INTEGER NOT NULL,
    section TEXT NOT NULL,
    format INTEGER NOT NULL,
    runs TEXT NOT NULL,
    PRIMARY KEY (context, block, section)
) WITHOUT ROWID;
"""
