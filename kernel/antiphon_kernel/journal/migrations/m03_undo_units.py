"""Undo units are numbered once and for all, and their ids follow from the operations.

What had been undone and redone before stands as it is; what had only been written can be undone.
"""

SQL = """
CREATE TABLE units (
    context INTEGER NOT NULL REFERENCES contexts (number),
    unit INTEGER NOT NULL,
    principal INTEGER NOT NULL REFERENCES principals (number),
    session INTEGER NOT NULL,
    kind TEXT NOT NULL,
    stack TEXT NOT NULL,
    place INTEGER NOT NULL,
    time INTEGER NOT NULL,
    blocks TEXT NOT NULL,
    PRIMARY KEY (context, unit)
) WITHOUT ROWID;

UPDATE ops SET unit = NULL WHERE operation IN ('undo', 'redo');

INSERT INTO units
    SELECT u.context, u.number, u.principal, u.session, u.kind, u.stack, u.number, u.time, u.blocks
    FROM undo u
    WHERE u.stack = 'undo' AND EXISTS (
        SELECT 1 FROM ops o WHERE o.context = u.context AND o.unit = u.number
    );

DROP TABLE undo;
ALTER TABLE units RENAME TO undo;

CREATE TABLE revived (
    context INTEGER NOT NULL REFERENCES contexts (number),
    seq INTEGER NOT NULL,
    format INTEGER NOT NULL,
    revivals BLOB NOT NULL,
    PRIMARY KEY (context, seq)
) WITHOUT ROWID;
"""
