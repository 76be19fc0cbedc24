"""Versions of texts and pages, from everything that was ever there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from antiphon.render.timeline import (
    LINES_AROUND,
    LONGEST_LINE,
    Fate,
    HistoryStep,
    PageHistory,
    Timeline,
    TimelineText,
    VersionPiece,
)


def written(timeline: Timeline, version: int) -> list[list[tuple[str, str]]]:
    lines = timeline.lines(version).lines
    return [[(piece.text, piece.fate) for piece in line] for line in lines]


MILK = Timeline(
    (
        TimelineText("milk\n", "amy", 1, 3),
        TimelineText("rye ", "bo", 2),
        TimelineText("bread\n", "amy", 1),
    ),
    3,
)


def test_version_has_what_is_new_in_it_and_what_it_took_away() -> None:
    assert written(MILK, 1) == [[("milk", Fate.NEW)], [("bread", Fate.NEW)]]
    assert written(MILK, 2) == [
        [("milk", Fate.KEPT)],
        [("rye ", Fate.NEW), ("bread", Fate.KEPT)],
    ]
    assert written(MILK, 3) == [
        [("milk", Fate.GONE)],
        [("rye ", Fate.KEPT), ("bread", Fate.KEPT)],
    ]
    assert written(MILK, 0) == [[]]
    rye, _ = MILK.lines(2, shows_change=False).lines[1]
    assert rye == VersionPiece("rye ", "bo", Fate.KEPT)


def test_neighbours_of_one_author_are_one_piece_and_long_lines_are_cut() -> None:
    texts = [TimelineText("a" * 9, "amy", 1) for _ in range(LONGEST_LINE)]
    (line,) = Timeline(tuple(texts), 1).lines(1).lines
    assert line == (VersionPiece("a" * LONGEST_LINE, "amy", Fate.NEW),)


def test_lines_of_a_version_begin_at_those_around_its_change() -> None:
    long = "".join(f"line {number}\n" for number in range(1_000))
    timeline = Timeline(
        (
            TimelineText(long, "amy", 1),
            TimelineText("new\n", "bo", 2),
            TimelineText(long, "amy", 1),
        ),
        2,
    )
    found = timeline.lines(2)
    assert (found.above, found.below) == (1_000 - LINES_AROUND, 1_000 - LINES_AROUND)
    assert found.lines[found.changed] == (VersionPiece("new", "bo", Fate.NEW),)
    first = timeline.lines(1)
    assert (first.above, first.changed, len(first.lines)) == (0, 0, LINES_AROUND + 1)


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 4), st.text("ab\n", max_size=4)), max_size=12
    )
)
def test_timeline_of_any_splices_shows_every_version(
    splices: list[tuple[int, int, str]],
) -> None:
    line: list[TimelineText] = []
    texts = {0: ""}
    for version, (offset, count, new) in enumerate(splices, 1):
        alive = [index for index, one in enumerate(line) if one.until is None]
        for index in alive[offset : offset + count]:
            one = line[index]
            line[index] = TimelineText(one.text, one.principal, one.since, version)
        place = alive[offset] if offset < len(alive) else len(line)
        line[place:place] = [TimelineText(letter, "amy", version) for letter in new]
        texts[version] = "".join(one.text for one in line if one.until is None)
    timeline = Timeline(tuple(line), len(splices))
    for version, text in texts.items():
        shown = timeline.lines(version, shows_change=False)
        lines = ["".join(one.text for one in each) for each in shown.lines]
        assert lines == (text.removesuffix("\n").split("\n") if text else [""])
        pieces = [one for each in timeline.lines(version).lines for one in each]
        kept = "".join(one.text for one in pieces if one.fate is not Fate.GONE)
        assert kept == text.replace("\n", "")


def step(version: int, **blocks: int) -> HistoryStep:
    return HistoryStep(version, "2026-01-01T00:00:00.000Z", "p", "amy", "edit", blocks)


def test_version_of_a_block_is_the_one_before_its_next_change() -> None:
    page = PageHistory([step(5, a=1), step(6, b=4), step(7, a=2, b=5), step(8)])
    assert [page.version_at("a", at, 2) for at in range(4, 9)] == [0, 1, 1, 2, 2]
    assert [page.version_at("b", at, 5) for at in range(4, 9)] == [3, 3, 4, 5, 5]
    assert page.version_at("c", 5, 9) == 9
