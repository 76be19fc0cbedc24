"""Three-way merges: nothing that somebody wrote is lost, and nothing is there twice."""

from __future__ import annotations

import random
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.text.merge3 import Conflict, Excerpt, Merged, Resolution, merge_texts, resolve
from antiphon_kernel.types.errors import ErrorCode
from tests.errors import raises

texts = st.text(st.sampled_from("ab \n\n\r😀é漢\u0301"), max_size=24)
lines = st.lists(st.integers(0, 2), max_size=8).map(lambda found: [f"{n}\n" for n in found])


def both_orders(base: str, ours: str, theirs: str) -> tuple[Merged, Merged]:
    return merge_texts(base, ours, theirs), merge_texts(base, theirs, ours)


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
    assert merge_texts(base, base, text) == Merged(text)
    assert merge_texts(base, text, base) == Merged(text)


@given(texts, texts)
def test_same_change_on_both_sides_is_made_once(base: str, text: str) -> None:
    assert merge_texts(base, text, text) == Merged(text)


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
            found = text.split("\n")[piece.start : piece.end]
            assert "\n".join(found) == piece.text.removesuffix("\n")


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
    assert merge_texts("".join(base), ours, theirs) == Merged(wanted)


@given(lines, st.data())
def test_change_that_one_side_made_further_is_not_made_twice(
    base: list[str], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(base)))
    common = [*base[:at], "new\n", *base[at:]]
    further = [*common, "more\n"] if data.draw(st.booleans()) else ["more\n", *common]
    for merged in both_orders("".join(base), "".join(common), "".join(further)):
        assert merged.text.count("new") == 1


def test_line_of_both_sides_among_equal_lines_is_not_there_twice() -> None:
    base = "{\nx\n}\nx\n}\n\n"
    common = "{\nx\n}\nx\n}\nnew\n{\n}\n}\n\n"
    ours = "{\nx\n}\nx\n}\n\n{\nnew\n{\n}\n}\n\n"
    for merged in both_orders(base, ours, common):
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
    assert both_orders(base, ours, theirs) == (Merged(wanted), Merged(wanted))


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
    assert resolve(merged, {0: Resolution.OURS}) == Merged(ours)
    assert resolve(merged, {0: Resolution.THEIRS}) == Merged(theirs)


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
    merged = merge_texts("old" if ours == "" else "", ours, theirs)
    assert resolve(merged, {0: Resolution.BOTH}) == Merged(wanted)


def test_resolve_of_some_conflicts_moves_the_others() -> None:
    base, ours, theirs = "1\n-\n2\n-\n3\n", "a\n-\nb\n-\nc\n", "x\n-\ny\n-\nz\n"
    merged = merge_texts(base, ours, theirs)
    assert [one.merged.start for one in merged.conflicts] == [0, 2, 4]
    fewer = resolve(merged, {0: "new\nlines", 1: Resolution.BOTH})
    assert fewer.text == "new\nlines\n-\nb\ny\n-\nc\n"
    third = Conflict(
        Excerpt(4, 5, "3\n"), Excerpt(4, 5, "c\n"), Excerpt(4, 5, "z\n"), Excerpt(6, 7, "c\n")
    )
    assert fewer.conflicts == (third,)
    assert resolve(fewer, {0: ""}) == Merged("new\nlines\n-\nb\ny\n-\n")


@given(texts, texts, texts, st.sampled_from([Resolution.OURS, Resolution.THEIRS]))
def test_resolutions_one_by_one_are_the_same_as_together(
    base: str, ours: str, theirs: str, resolution: Resolution
) -> None:
    merged = merge_texts(base, ours, theirs)
    together = resolve(merged, dict.fromkeys(range(len(merged.conflicts)), resolution))
    while merged.conflicts:
        merged = resolve(merged, {len(merged.conflicts) - 1: resolution})
    assert merged == together


def test_resolve_of_unknown_conflict_is_refused() -> None:
    with raises(ErrorCode.INVALID_PARAMS):
        resolve(merge_texts("", "a", "b"), {1: Resolution.OURS})


def test_merge_of_long_texts_takes_bounded_effort() -> None:
    rng = random.Random(1)
    base, ours, theirs = (
        "".join(f"line of text {rng.randrange(3)}\n" for _ in range(10_000)) for _ in range(3)
    )
    start = time.process_time()
    merged = merge_texts(base, ours, theirs)
    assert time.process_time() - start < 3
    assert resolve(merged, dict.fromkeys(range(len(merged.conflicts)), Resolution.OURS)).text
    assert merged.conflicts


def test_merge_of_long_text_with_few_changes_is_exact() -> None:
    base = [f"line {number}\n" for number in range(10_000)]
    ours, theirs, wanted = list(base), list(base), list(base)
    for number in range(0, 9_000, 300):
        ours[number] = wanted[number] = f"ours {number}\n"
        theirs[number + 1] = wanted[number + 1] = f"theirs {number}\n"
    assert merge_texts("".join(base), "".join(ours), "".join(theirs)) == Merged("".join(wanted))
