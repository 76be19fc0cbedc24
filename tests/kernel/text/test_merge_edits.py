"""Merges of edits: what a CRDT makes of both, and conflicts where both meant the same place."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from pycrdt import Doc, Text

from antiphon_kernel.text.merge3 import Resolution
from antiphon_kernel.text.merge_edits import EditMerge, merge_edits, resolved
from antiphon_kernel.text.splice_diff import apply_script, as_script, plan_difference
from antiphon_kernel.types.records import TextSplice
from tests.errors import raises

PIECES = ["ab", "cd", " ", " ", "é", "😀", "e\u0301", ".", "\n", "漢", "c"]
CASES = 3000


def some_script(rng: random.Random, base: str, letters: str) -> list[TextSplice]:
    script = []
    at = rng.randint(0, 12)
    while at <= len(base) and len(script) < 6:
        deleted = min(rng.choice([0, 0, 1, 2, 7]), len(base) - at)
        inserted = "".join(rng.choices(letters, k=rng.choice([0, 1, 2, 4])))
        if inserted != base[at : at + deleted]:
            script.append(TextSplice(at, deleted, inserted))
        at += deleted + rng.randint(0, 15)
    return script


def some_sides(seed: int) -> tuple[str, list[TextSplice], list[TextSplice]]:
    rng = random.Random(seed)
    base = "".join(rng.choices(PIECES, k=rng.randint(0, 40)))
    return base, some_script(rng, base, "XY \n😀."), some_script(rng, base, "ZW \n漢.")


def by_crdt(base: str, scripts: list[list[TextSplice]], clients: tuple[int, int]) -> str:
    """What stock CRDT documents come to that start from one state and are edited apart."""
    origin: Doc[Any] = Doc(client_id=9)
    origin.get("text", type=Text).insert(0, base) if base else None
    docs = []
    for client, script in zip(clients, scripts, strict=True):
        doc: Doc[Any] = Doc(client_id=client)
        doc.apply_update(origin.get_update())
        text = doc.get("text", type=Text)
        for one in reversed(script):
            start = len(base[: one.offset].encode())
            new = len(one.inserted.encode())
            if new:
                text.insert(start, one.inserted)
            if one.deleted:
                gone = len(base[one.offset : one.offset + one.deleted].encode())
                del text[start + new : start + new + gone]
        docs.append(doc)
    for doc, other in (docs, docs[::-1]):
        doc.apply_update(other.get_update())
    found = {str(doc.get("text", type=Text)) for doc in docs}
    assert len(found) == 1
    return found.pop()


def test_merge_without_conflict_is_what_a_crdt_makes_of_both() -> None:
    found = {1: 0, 2: 0}
    for seed in range(CASES):
        base, ours, theirs = some_sides(seed)
        merge = merge_edits(base, ours, theirs)
        if merge.conflicts or {*ours} & {*theirs}:
            continue
        either = {by_crdt(base, [ours, theirs], clients) for clients in ((1, 2), (2, 1))}
        found[len(either)] += 1
        if len(either) == 1:
            assert {merge.text} == either, (seed, base, ours, theirs)
        else:  # lines are put in where the other side changes the next line's first word
            assert sorted(merge.text) == sorted(either.pop()), (seed, base, ours, theirs)
    assert found[1] > CASES / 4 > 40 * found[2] > 0, found


def test_conflicts_resolve_to_either_text_and_name_their_places() -> None:
    count = 0
    for seed in range(CASES):
        base, ours, theirs = some_sides(seed)
        merge, turned = merge_edits(base, ours, theirs), merge_edits(base, theirs, ours)
        assert [(one.base, one.ours, one.theirs) for one in merge.conflicts] == [
            (one.base, one.theirs, one.ours) for one in turned.conflicts
        ], (seed, base, ours, theirs)
        mine, other = apply_script(base, ours), apply_script(base, theirs)
        assert apply_script(mine, merge.splices) == merge.text
        taken = resolved(merge, dict.fromkeys(range(len(merge.conflicts)), Resolution.THEIRS))
        assert apply_script(mine, taken) == turned.text, (seed, base, ours, theirs)
        for one in (*merge.splices, *taken):
            assert one.source is not None
            assert other[one.source : one.source + len(one.inserted)] == one.inserted
        for conflict in merge.conflicts:
            count += 1
            for excerpt, text in (
                (conflict.base, base),
                (conflict.ours, mine),
                (conflict.theirs, other),
                (conflict.merged, merge.text),
            ):
                assert excerpt.text == text[excerpt.start : excerpt.end]
    assert count > CASES / 4
