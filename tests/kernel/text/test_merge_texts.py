"""Three-way merges: nothing that somebody wrote is lost, and nothing is there twice."""

from __future__ import annotations

import random
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.text.merge_edits import EditMerge, Resolution, merge_texts, resolved
from antiphon_kernel.text.splice_diff import apply_script

texts = st.text(st.sampled_from("ab \n\n\r😀é漢\u0301"), max_size=24)
lines = st.lists(st.integers(0, 2), max_size=8).map(lambda found: [f"{n}\n" for n in found])


def both_orders(base: str, ours: str, theirs: str) -> tuple[EditMerge, EditMerge]:
    return merge_texts(base, ours, theirs), merge_texts(base, theirs, ours)


def clear(base: str, ours: str, theirs: str) -> str:
    """Return the text of a merge without conflicts."""
    merged = merge_texts(base, ours, theirs)
    assert not merged.conflicts
    return merged.text


def decided(base: str, ours: str, theirs: str, side: Resolution) -> str:
    """Return the text of a merge with every conflict resolved."""
    merged = merge_texts(base, ours, theirs)
    choices = dict.fromkeys(range(len(merged.conflicts)), side)
    return apply_script(ours, resolved(merged, choices))


@st.composite
def edited_lines(draw: st.DrawFn) -> tuple[str, str, str, set[str], set[str]]:
    """A text and two edits of whole lines, with the lines written and those deleted."""
    base = draw(st.lists(st.sampled_from(["}\n", "\n", "x y\n", "a = 1\n"]), max_size=8))
    versions, written = [], set()
    deleted: set[str] = set()
    for name in ("ours", "theirs"):
        version = []
        for number in range(len(base) + 1):
            for index in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
                version.append(f"{name} {number} {index}\n")
                written.add(version[-1])
            if number < len(base) and draw(st.sampled_from([True, True, True, False])):
                version.append(base[number])
            elif number < len(base):
                deleted.add(base[number])
        versions.append("".join(version))
    return "".join(base), versions[0], versions[1], written, deleted


@given(texts, texts)
def test_merge_with_one_side_unchanged_is_the_other(base: str, text: str) -> None:
    assert clear(base, base, text) == text
    assert clear(base, text, base) == text


@given(texts, texts)
def test_same_change_on_both_sides_is_made_once(base: str, text: str) -> None:
    assert clear(base, text, text) == text


@given(texts, texts, texts)
def test_merge_finds_same_conflicts_in_either_order(base: str, ours: str, theirs: str) -> None:
    merged, turned = both_orders(base, ours, theirs)
    assert [(one.base, one.ours, one.theirs) for one in merged.conflicts] == [
        (one.base, one.theirs, one.ours) for one in turned.conflicts
    ]
    if not merged.conflicts:
        assert merged.text == turned.text


@given(texts, texts, texts)
def test_conflict_says_where_its_pieces_are(base: str, ours: str, theirs: str) -> None:
    merged = merge_texts(base, ours, theirs)
    for conflict in merged.conflicts:
        assert conflict.merged.text == conflict.ours.text != conflict.theirs.text
        for text, piece in (
            (base, conflict.base),
            (ours, conflict.ours),
            (theirs, conflict.theirs),
            (merged.text, conflict.merged),
        ):
            assert text[piece.start : piece.end] == piece.text
            assert text[: piece.start].endswith("\n") or not piece.start
            assert piece.text.endswith("\n") or piece.end in (piece.start, len(text))


@given(edited_lines())
def test_line_that_somebody_wrote_is_in_text_or_conflict_once(
    edited: tuple[str, str, str, set[str], set[str]],
) -> None:
    base, ours, theirs, written, deleted = edited
    merged = merge_texts(base, ours, theirs)
    counts = Counter(merged.text.splitlines(keepends=True))
    for conflict in merged.conflicts:
        counts.update(conflict.theirs.text.splitlines(keepends=True))
    assert {line: counts[line] for line in written} == dict.fromkeys(written, 1)
    before = Counter(base.splitlines(keepends=True))
    assert all(counts[line] >= before[line] for line in before.keys() - deleted)


@given(st.lists(st.tuples(st.sampled_from(["ours", "theirs", "none"]), st.booleans())))
def test_edits_of_separate_lines_merge_cleanly(owners: list[tuple[str, bool]]) -> None:
    base = [f"line {number}\n" for number in range(len(owners))]
    ours, theirs, wanted = (
        "".join(
            line
            if owner not in writers
            else ("" if is_deleted else f"{owner} wrote {number} anew\n")
            for number, (line, (owner, is_deleted)) in enumerate(zip(base, owners, strict=True))
        )
        for writers in (["ours"], ["theirs"], ["ours", "theirs"])
    )
    assert clear("".join(base), ours, theirs) == wanted


@given(lines, st.data())
def test_change_that_one_side_made_further_is_not_made_twice(
    base: list[str], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(base)))
    common = [*base[:at], "new\n", *base[at:]]
    further = [*common, "more\n"] if data.draw(st.booleans()) else ["more\n", *common]
    for merged in both_orders("".join(base), "".join(common), "".join(further)):
        assert merged.text.count("new") == 1


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "wanted"),
    [
        ("the quick fox", "the slow fox", "the quick fox jumps", "the slow fox jumps"),
        ("f(a, b)\n", "f(x, b)\n", "f(a, y)\n", "f(x, y)\n"),
        ("f(a, b)\n", "f(x, b)\n", "f(x, y)\n", "f(x, y)\n"),
        ("a\nb\n", "A\nb\n", "a\nB\n", "A\nB\n"),
        ("a\nb\nc\n", "a\nc\n", "a\nb\nC\n", "a\nC\n"),
        ("a\nb", "A\nb", "a\nb\n", "A\nb\n"),
        ("a b\r\nc\r\n", "A b\r\nc\r\n", "a b\r\nC\r\n", "A b\r\nC\r\n"),
        ("漢字 かな\n", "漢字 カナ\n", "😀 かな\n", "😀 カナ\n"),
        ("", "", "", ""),
        ("a\n", "", "", ""),
    ],
)
def test_merge_of_clear_changes_has_no_conflict(
    base: str, ours: str, theirs: str, wanted: str
) -> None:
    assert clear(base, ours, theirs) == clear(base, theirs, ours) == wanted


@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [
        ("", "a\n", "b\n"),
        ("x\ny\n", "x\na\ny\n", "x\nb\ny\n"),
        ("a b c\n", "a X c\n", "a Y c\n"),
        ("a b c\n", "a b X c\n", "a b Y c\n"),
        ("a b c\n", "", "a b X\n"),
        ("one two three\n", "words that differ\n", "one two, three\n"),
        ("a\n", "a", "a b\n"),
    ],
)
def test_merge_of_changes_in_one_place_is_a_conflict(base: str, ours: str, theirs: str) -> None:
    merged = merge_texts(base, ours, theirs)
    assert len(merged.conflicts) == 1
    assert merged.text == ours
    assert decided(base, ours, theirs, Resolution.OURS) == ours
    assert decided(base, ours, theirs, Resolution.THEIRS) == theirs


@pytest.mark.parametrize(
    ("ours", "theirs", "wanted"),
    [
        ("a\n", "b\n", "a\nb\n"),
        ("a", "b", "a\nb"),
        ("", "b\n", "b\n"),
        ("def a\nend\n", "def b\nend\n", "def a\ndef b\nend\n"),
        ("import x\na\n", "import x\nb\n", "import x\na\nb\n"),
    ],
)
def test_both_sides_of_a_conflict_have_common_lines_once(
    ours: str, theirs: str, wanted: str
) -> None:
    base = "old" if ours == "" else ""
    assert decided(base, ours, theirs, Resolution.BOTH) == wanted


def test_merge_of_long_texts_takes_bounded_effort() -> None:
    rng = random.Random(1)
    base, ours, theirs = (
        "".join(f"line of text {rng.randrange(3)}\n" for _ in range(10_000)) for _ in range(3)
    )
    start = time.process_time()
    merged = merge_texts(base, ours, theirs)
    assert time.process_time() - start < 3
    assert merged.conflicts


def test_merge_of_long_text_with_few_changes_is_exact() -> None:
    base = [f"line {number}\n" for number in range(10_000)]
    ours, theirs, wanted = list(base), list(base), list(base)
    for number in range(0, 9_000, 300):
        ours[number] = wanted[number] = f"ours {number}\n"
        theirs[number + 1] = wanted[number + 1] = f"theirs {number}\n"
    assert clear("".join(base), "".join(ours), "".join(theirs)) == "".join(wanted)


@pytest.mark.parametrize(
    ("end", "wanted"),
    [("c\n", "new\nlines\n-\nc\n"), ("c", "new\nlines\n-\nc"), ("", "new\nlines")],
)
def test_text_that_is_chosen_stands_on_lines_of_its_own(end: str, wanted: str) -> None:
    rest = f"\n-\n{end}" if end else ""
    merged = merge_texts(f"1{rest}", f"a{rest}", f"x{rest}")
    assert apply_script(f"a{rest}", resolved(merged, {0: "new\nlines"})) == wanted
