"""Paths: one grammar, one parser."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.layout import PathError, SourcesPath, parse_path
from antiphon_kernel.layout.paths import ARTIFACTS, BlockPath, file_path, summary_path

HEX = st.text("0123456789abcdef", min_size=6, max_size=6)
TURNS = st.builds("turn_{}_{}".format, st.integers(0, 10**15 - 1), HEX)
CALLS = st.builds("tc_{}{}".format, HEX, HEX)
SUFFIXES = st.none() | HEX
NAMES = st.text(st.characters(), min_size=1) | st.text("./%:~[]a \n\ud800é", min_size=1)
NUMBERS = st.integers(1, 10**9 - 1)
RANGES = st.tuples(NUMBERS, NUMBERS).map(lambda pair: (min(pair), max(pair)))
ARTIFACT_NAMES = st.sampled_from(ARTIFACTS) | st.builds(
    "react.{}.{}".format, st.sampled_from(["notes", "thinking"]), CALLS
)
CALL_NAMES = st.builds("{}.{}".format, CALLS, st.sampled_from(["call", "result"]))
PATHS = st.one_of(
    st.builds(BlockPath, st.just("ar"), TURNS, ARTIFACT_NAMES, SUFFIXES),
    st.builds(file_path, TURNS, st.sampled_from(["files", "user.attachments"]), NAMES, SUFFIXES),
    st.builds(BlockPath, st.just("tc"), TURNS, CALL_NAMES, SUFFIXES),
    st.builds(summary_path, TURNS, SUFFIXES),
    st.builds(SourcesPath, st.lists(RANGES, max_size=20).map(tuple)),
)


@given(PATHS)
def test_parse_path_of_a_formatted_path_is_that_path(path: object) -> None:
    assert parse_path(str(path)) == path


@given(PATHS)
def test_path_is_one_line_that_leads_out_of_no_folder(path: object) -> None:
    text = str(path)
    text.encode()
    assert not any(one.isspace() for one in text)
    assert "/../" not in f"{text}/" and "//" not in text


def test_path_of_a_plain_file_reads_as_it_is() -> None:
    turn = "turn_1770603271112_2f81ad"
    path = f"fi:{turn}.files/src/app.v2/main.py"
    assert parse_path(path) == file_path(turn, "files", "src/app.v2/main.py")
    assert str(file_path(turn, "user.attachments", "../a/b")) == (
        f"fi:{turn}.user.attachments/%2E%2E%2Fa%2Fb"
    )


def test_parse_path_of_a_selector_reads_its_ranges() -> None:
    path = parse_path("so:sources_pool[1-3,5]")
    assert path == SourcesPath(((1, 3), (5, 5)))
    assert isinstance(path, SourcesPath)
    assert [number for number in range(10) if number in path] == [1, 2, 3, 5]
    assert 7 in SourcesPath()


@pytest.mark.parametrize(
    "text",
    [
        *("", "ar:", "xx:turn_1_abcdef.user.prompt", "ar:current_turn.user.prompt"),
        *("ar:turn_1_abcdef.user.prompt.tc_0123456789ab", "ar:turn_1_ABCDEF.user.prompt"),
        *("ar:turn_١_abcdef.user.prompt", "ar:turn_1_abcdef.user.prompt\n"),
        *("fi:turn_1_abcdef.files/", "fi:turn_1_abcdef.files/%FF", "fi:turn_1_abcdef.other/a"),
        *("so:sources_pool[]", "so:sources_pool[0]", "so:sources_pool[3-1]"),
        *("so:sources_pool[1,]", "so:sources_pool[1-2-3]", "so:sources_pool[1"),
        "so:sources_pool[9999999999]",
        "so:sources_pool[" + "1," * 100 + "1]",
        "so:sources_pool[" + "9" * 100_000 + "]",
        "fi:turn_1_abcdef.files/" + "a" * 100_000,
        "ar:turn_" + "1" * 100_000,
    ],
)
def test_parse_path_of_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(PathError, match=r"path|range|selector|UTF-8"):
        parse_path(text)


def test_selector_of_a_huge_range_holds_two_numbers() -> None:
    path = parse_path("so:sources_pool[1-999999999]")
    assert isinstance(path, SourcesPath)
    assert path.ranges == ((1, 999_999_999),)
