"""The index of texts for searching: made from the documents, and made again when it is lost."""

SQL = """
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
"""
