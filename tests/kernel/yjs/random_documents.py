"""Documents that several clients of the CRDT engine have written at random."""

from __future__ import annotations

import random
from typing import Any

import pycrdt

WORDS = ("a", "é", "漢字", "😀", "👩‍👩‍👧", "plain text", "\n")

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 63, 64, -64, 2**30, -(2**31) + 1, 1.5, -0.25),
    *("é漢😀", "", b"\x00\xff", [1.5, [None, "x"]], {"a": {"b": [True]}}),
)


def random_documents(
    rng: random.Random, steps: int = 60
) -> tuple[list[pycrdt.Doc[Any]], list[bytes]]:
    """Return three documents that have heard of each other now and then, and their updates.

    Each has a text `t`, an array `a` and a map `m`.
    """
    docs: list[pycrdt.Doc[Any]] = [pycrdt.Doc(client_id=rng.randrange(1, 2**53)) for _ in range(3)]
    updates: list[bytes] = []
    for doc in docs:
        doc.observe(lambda event: updates.append(event.update))
    for _ in range(steps):
        doc = rng.choice(docs)
        with doc.transaction():
            _change(rng, doc)
        if rng.random() < 0.3:
            other = rng.choice(docs)
            other.apply_update(doc.get_update(other.get_state()))
    return docs, updates


def _change(rng: random.Random, doc: pycrdt.Doc[Any]) -> None:
    text = doc.get("t", type=pycrdt.Text)
    array = doc.get("a", type=pycrdt.Array)
    table = doc.get("m", type=pycrdt.Map)
    borders = [len(str(text)[:at].encode()) for at in range(len(str(text)) + 1)]
    match rng.randrange(6):
        case 0 | 1:
            text.insert(rng.choice(borders), rng.choice(WORDS))
        case 2 if len(borders) > 2:
            start, end = sorted(rng.sample(borders, 2))
            del text[start:end]
        case 3:
            array.insert(rng.randint(0, len(array)), rng.choice(VALUES))
        case 4:
            table[rng.choice("xyz")] = rng.choice(VALUES)
        case _ if len(borders) > 1:
            text.format(0, len(text), {"s": str(rng.randrange(2))})
