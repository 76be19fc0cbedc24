"""Merges of edits: what a CRDT makes of both, and conflicts where both meant the same place."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from pycrdt import Doc, Text

from antiphon_kernel.text.merge_edits import EditMerge, Resolution, merge_edits, resolved
from antiphon_kernel.text.splice_diff import apply_script, as_script, plan_difference
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import TextSplice
from tests.errors import raises

PIECES = ["ab", "cd", " ", " ", "é", "😀", "e\u0301", ".", "\n", "漢", "c"]
SEEDS = range(1_250, 1_450)
"""In one of them a CRDT has two orders."""


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
    """Return what stock CRDT documents come to that start from one state, edited apart."""
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
    for seed in SEEDS:
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
    assert found[1] > len(SEEDS) / 4 > 40 * found[2] > 0, found


def test_conflicts_resolve_to_either_text_and_name_their_places() -> None:
    count = 0
    for seed in SEEDS:
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
    assert count > len(SEEDS) / 4


def merged(base: str, ours: str, theirs: str) -> EditMerge:
    return merge_edits(
        base,
        as_script(plan_difference(base, ours)),
        as_script(plan_difference(base, theirs)),
    )


CAT = "The cat sat on the mat. It slept.\n"
CLEAR = {
    "other words": (
        CAT,
        "The dog sat on the mat. It slept.\n",
        "The cat sat on the rug. It slept well.\n",
        "The dog sat on the rug. It slept well.\n",
    ),
    "same change": (CAT, "The dog sat.\n", "The dog sat.\n", "The dog sat.\n"),
    "words beside each other": ("foo(b)", "goo(b)", "foo[b)", "goo[b)"),
    "both deleted": ("a b c d", "a d", "a b", "a "),
    "line above a changed one": ("one\ntwo\n", "one\nTWO\n", "one\nnew\ntwo\n", "one\nnew\nTWO\n"),
    "line below a changed one": ("one\ntwo", "one\nTWO", "one\ntwo\nnew", "one\nTWO\nnew"),
    "line above a deleted one": ("one\ntwo\n", "one\n", "one\nnew\ntwo\n", "one\nnew\n"),
    "line below a deleted one": (
        "one\ntwo\nend",
        "one\nend",
        "one\ntwo\nnew\nend",
        "one\nnew\nend",
    ),
    "lines beside each other": ("one\ntwo\n", "ONE\ntwo\n", "one\nTWO\n", "ONE\nTWO\n"),
}


@pytest.mark.parametrize(("base", "ours", "theirs", "text"), CLEAR.values(), ids=CLEAR)
def test_clear_changes_are_merged(base: str, ours: str, theirs: str, text: str) -> None:
    for one, other in ((ours, theirs), (theirs, ours)):
        assert (merged(base, one, other).text, merged(base, one, other).conflicts) == (text, ())


UNCLEAR = {
    "one word": (
        CAT,
        "The dog sat on the mat. It slept.\n",
        "The bird sat on the mat. It slept.\n",
        ("cat", "dog", "bird"),
        "dog bird",
    ),
    "two words of a sentence": (
        CAT,
        "The dog sat on the rug. It slept.\n",
        "The bird sat on the sofa. It ran.\n",
        ("cat sat on the mat", "dog sat on the rug", "bird sat on the sofa"),
        "dog sat on the rug bird sat on the sofa",
    ),
    "sentence that one wrote anew": (
        CAT,
        "A small dog lay under it. It slept.\n",
        "The cat sat on one mat. It slept.\n",
        ("The cat sat on the mat.", "A small dog lay under it.", "The cat sat on one mat."),
        "A small dog lay under it. The cat sat on one mat.",
    ),
    "one place": ("a c", "a b c", "a d c", ("", "b ", "d "), "b d "),
    "word that the other deleted": (
        "a bit more c",
        "a more c",
        "a bot more c",
        ("bit ", "", "bot "),
        "bot ",
    ),
    "ends of a word": ("word", "words", "words'", ("word", "words", "words'"), "words words'"),
    "new lines": (
        "one\nend\n",
        "one\nx\ny\nend\n",
        "one\nz\nend\n",
        ("", "x\ny\n", "z\n"),
        "x\ny\nz\n",
    ),
    "new lines at the end": ("one", "one\nx", "one\nz", ("one", "one\nx", "one\nz"), "one\nx\nz"),
    "lines that became others": (
        "one two\nend\n",
        "one TWO\nend\n",
        "three\nfour\nend\n",
        ("one two\n", "one TWO\n", "three\nfour\n"),
        "one TWO\nthree\nfour\n",
    ),
    "line in a line that was joined": (
        "one.\n two\n",
        "one. two\n",
        "one.\nnew\n two\n",
        ("one.\n two\n", "one. two\n", "one.\nnew\n two\n"),
        "one. two\none.\nnew\n two\n",
    ),
}


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "pieces", "both"), UNCLEAR.values(), ids=UNCLEAR
)
def test_conflict_has_words_or_whole_lines_of_each_side(
    base: str, ours: str, theirs: str, pieces: tuple[str, str, str], both: str
) -> None:
    merge = merged(base, ours, theirs)
    (conflict,) = merge.conflicts
    assert (conflict.base.text, conflict.ours.text, conflict.theirs.text) == pieces
    assert conflict.both == both
    start, end = conflict.ours.start, conflict.ours.end
    for choice, piece in (
        (Resolution.BOTH, both),
        (Resolution.THEIRS, pieces[2]),
        ("a text ", "a text "),
    ):
        taken = resolved(merge, {0: choice})
        changed = [one for one in taken if start <= one.offset <= end]
        assert apply_script(ours, changed) == ours[:start] + piece + ours[end:]
        if choice is Resolution.BOTH:
            new = "".join(one.inserted for one in changed if one.source is not None)
            assert new and new in theirs


def test_conflicts_are_resolved_one_by_one() -> None:
    base = "".join(f"line {n}\n" for n in range(6))
    ours, theirs = base, base
    for n in range(0, 6, 2):
        ours, theirs = ours.replace(f"{n}", f"ours{n}"), theirs.replace(f"{n}", f"theirs{n}")
    theirs = theirs.replace("line 3", "changed 3")
    merge = merged(base, ours, theirs)
    assert [one.base.text for one in merge.conflicts] == ["0", "2", "4"]
    text = apply_script(ours, resolved(merge, {2: "own", 0: Resolution.THEIRS}))
    assert text == ("line theirs0\nline 1\nline ours2\nchanged 3\nline own\nline 5\n")
    with raises(ErrorCode.INVALID_PARAMS):
        resolved(merge, {3: Resolution.OURS})


@pytest.mark.parametrize(
    "conflicting", [pytest.param(False, id="apart"), pytest.param(True, id="in-one-line")]
)
def test_merge_of_many_edits_takes_linear_time(*, conflicting: bool) -> None:
    def seconds(count: int) -> float:
        base = "word other " * count + ("" if conflicting else "\n") * count
        ours = [TextSplice(11 * n, 4, f"ours{n}") for n in range(count)]
        shift = 0 if conflicting else 5
        theirs = [TextSplice(11 * n + shift, 4, f"theirs{n}") for n in range(count)]
        begun = time.process_time()
        merge = merge_edits(base, ours, theirs)
        assert len(merge.conflicts) == conflicting
        return time.process_time() - begun

    seconds(10)
    assert min(seconds(800) for _ in range(3)) < 16 * min(seconds(100) for _ in range(3))
