"""Searching finds what trying every line finds, and stops when it takes too long."""

from __future__ import annotations

import re
import threading
import time

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.text.lines import split_lines
from antiphon_kernel.text.search import (
    Found,
    Match,
    Query,
    required_literals,
    search_text,
)
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.errors import raises
from tests.waiting import PATIENCE

TEXT = st.text(alphabet="aab\n\n\r é\u2028\N{GRINNING FACE}", max_size=40)
PIECES = (
    "a b é . ^ $ \\w \\W \\s \\b \\B [^a] [ab] a* b+ a? a*? (a|b) (?:ab)? .* (?i)A \\Z \\A (?=a)"
    " (?!a) (?<=b) (?<!\\s) a*+ (?>a*) \\. \N{GRINNING FACE} {2} \\x61 \\r [^x]* [^b]* \\S*"
).split(" ")
PATTERN = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join)
UNLIMITED = 10**9


def regex_query(pattern: str) -> Query:
    return Query(pattern, seconds=5, line_seconds=5)


def literal_query(wanted: str) -> Query:
    return regex_query(re.escape(wanted))


def search(text: str, query: Query, most: int = UNLIMITED, context: int = 2) -> Found:
    return search_text(text, query, max_matches=most, context_lines=context, max_size=UNLIMITED)


def spans(found: Found) -> list[tuple[int, int, int]]:
    return [(one.line, one.match_start, one.match_end) for one in found.matches]


def refusal(pattern: str) -> AntiphonError:
    with pytest.raises(AntiphonError) as caught:
        regex_query(pattern)
    return caught.value


@given(TEXT, st.text(alphabet="ab é\r\N{GRINNING FACE}", min_size=1, max_size=3), st.integers(0, 3))
def test_literal_is_found_wherever_it_is_with_the_lines_around_it(
    text: str, wanted: str, context: int
) -> None:
    lines = split_lines(text)
    expected = [
        Match(
            number,
            one.start(),
            one.end(),
            line,
            tuple(lines[max(0, number - context) : number]),
            tuple(lines[number + 1 : number + 1 + context]),
        )
        for number, line in enumerate(lines)
        for one in re.finditer(re.escape(wanted), line)
    ]
    assert search(text, literal_query(wanted), context=context).matches == tuple(expected)


@given(TEXT, PATTERN)
def test_regular_expression_finds_what_it_finds_in_each_line_by_itself(
    text: str, pattern: str
) -> None:
    try:
        query = regex_query(pattern)
    except AntiphonError as error:
        if error.code is not ErrorCode.INVALID_REGEX:
            raise
        return
    expected = [
        (number, *one.span())
        for number, line in enumerate(split_lines(text))
        for one in regex.finditer(pattern, line)
    ]
    assert spans(search(text, query)) == expected


@given(st.text(alphabet="ab.*+?^$\\wn(!=<)|[{ #\n", min_size=1, max_size=8), TEXT)
def test_match_contains_every_literal_that_its_pattern_is_said_to_need(
    pattern: str, text: str
) -> None:
    try:
        compiled = regex.compile(pattern)
    except regex.error:
        return
    for one in compiled.finditer(text):
        assert all(literal in one.group() for literal in required_literals(pattern))


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        ("def \\w+_test", ["def ", "_test"]),
        ("a\\.b*c", ["a.", "c"]),
        ("colou?r", ["colo", "r"]),
        ("^x$", ["x"]),
        ("a|b", []),
        ("(?<!x)abc(?=d)e", []),
        ("a\\(?!b", ["a", "!b"]),
        ("a\\x41", []),
    ],
)
def test_literals_are_read_off_plain_patterns(pattern: str, literals: list[str]) -> None:
    assert required_literals(pattern) == literals


def test_lines_are_found_beyond_the_first_chunk() -> None:
    text = "".join(f"line {n}\n" for n in range(20_000))
    found = search(text, regex_query("^line (19)?7+$"))
    assert [one.line for one in found.matches] == [7, 77, 197, 777, 1977, 7777, 19777]
    assert all(one.content == f"line {one.line}" for one in found.matches)


def test_long_line_is_searched_to_its_end() -> None:
    text = "x" * 100_000 + "needle\nneedle"
    expected = [(0, 100_000, 100_006), (1, 0, 6)]
    assert spans(search(text, regex_query("ne+dle"))) == expected
    assert spans(search(text, literal_query("needle"))) == expected


def test_search_beyond_match_limit_is_truncated() -> None:
    text = "a\n" * 5
    for query in (literal_query("a"), regex_query("a")):
        assert not search(text, query, 5).truncated
        found = search(text, query, 4)
        assert found.truncated and len(found.matches) == 4


def test_search_beyond_size_limit_returns_at_least_one_match() -> None:
    text = f"{'a' * 100}\n" * 5
    query = literal_query("a" * 100)
    found = search_text(text, query, max_matches=9, context_lines=0, max_size=250)
    assert found.truncated and len(found.matches) == 2
    found = search_text(text, query, max_matches=9, context_lines=9, max_size=1)
    assert found.truncated and len(found.matches) == 1


@pytest.mark.parametrize("pattern", ["(", "[a", "*a", "a**", "(?P<a>b)(?P<a", "\\", "(?L)(?u)"])
def test_bad_pattern_is_refused_and_never_taken_for_a_literal(pattern: str) -> None:
    error = refusal(pattern)
    assert error.code is ErrorCode.INVALID_REGEX
    assert error.details["problem"] in error.message


GIGABYTES_TO_COMPILE = [
    "a{20000000}",
    "(?:a{1000}){1000}",
    "((a{60}){60}){60}",
    "(?x)a{2 0000000}",
    "(?ix:a{2 0000000})",
]
NESTED_TOO_DEEPLY = ["(" * 400 + "a" + ")" * 400, "(?:" * 300 + "a" + ")*" * 300]
HOURS_TO_COMPILE = [
    "(" * 30 + "a+" + ")+" * 30,
    "(?:" * 30 + "a" + "|b)+?" * 30,
    "(" * 14 + "a" + "){2}" * 14,
    "(" * 8 + "a" + "){4}" * 8,
    "[)]" + "(?:[()]" * 30 + ")+" * 30,
]


@pytest.mark.parametrize("pattern", GIGABYTES_TO_COMPILE + NESTED_TOO_DEEPLY + HOURS_TO_COMPILE)
def test_pattern_that_costs_too_much_to_compile_is_rejected(pattern: str) -> None:
    assert refusal(pattern).code is ErrorCode.INVALID_REGEX


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+" * 100, "(" * 10 + "a" + ")+" * 10, "[)+(]+" * 20, r"\)+\(" * 20, "(a)*" * 90],
)
def test_repeated_groups_side_by_side_are_no_nesting(pattern: str) -> None:
    regex_query(pattern)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("f{e}", "f{e}"),
        ("x{i<=2}", "x{i<=2}"),
        ('"{s}"', '"{s}"'),
        ("[{]d{}", "{d{}"),
        (r"\{e}", "{e}"),
    ],
)
def test_braces_that_count_nothing_are_braces(pattern: str, line: str) -> None:
    assert spans(search(f"fx\n{line}\nd", regex_query(pattern))) == [(1, 0, len(line))]


@pytest.mark.parametrize("wanted", ["", "a\nb", "\n"])
def test_search_query_spanning_lines_is_rejected(wanted: str) -> None:
    for make in (literal_query, regex_query):
        with raises(ErrorCode.INVALID_PARAMS):
            make(wanted)


def test_bracket_that_is_escaped_makes_no_pattern_verbose() -> None:
    assert spans(search("f(x)", regex_query("\\(?x"))) == [(0, 1, 3)]
    assert refusal("\\\\(?x)").code is ErrorCode.INVALID_REGEX


CATASTROPHES = [
    ("(a|aa)+$", "a" * 60 + "!"),
    ("(x+x+)+y", "x" * 5_000),
    ("(\\w+\\s?)*$", "word " * 5_000 + "!"),
    ("a+b", "a" * 300_000),
    ("(?R)", "a" * 100),
    ("(a?){40}a{40}!", "a" * 40),
    ("(?=(a+))\\1*b", "a" * 100_000),
    ("(?:abcdefghijkl){e<=6}", "a" * 300_000),
    ("(.*)(.*)(.*)(.*)(.*)[^a]", "a" * 3_000),
]


@pytest.mark.parametrize(("pattern", "text"), CATASTROPHES, ids=[one[0] for one in CATASTROPHES])
def test_pattern_that_runs_too_long_is_stopped_or_was_not_slow(pattern: str, text: str) -> None:
    query = Query(pattern, seconds=0.2, line_seconds=0.1)
    begun = time.process_time()
    try:
        search(text, query)
    except AntiphonError as error:
        if error.code is not ErrorCode.REGEX_TIMEOUT:
            raise
    assert time.process_time() - begun < 2


def test_stopped_pattern_is_an_error_that_says_what_was_allowed() -> None:
    with raises(ErrorCode.REGEX_TIMEOUT) as caught:
        search("a" * 60 + "!", Query("(a|aa)+$", seconds=0.2, line_seconds=0.1))
    assert caught.value.details["line_seconds"] == 0.1


def test_search_pattern_has_time_limit_for_all_lines() -> None:
    text = ("a" * 18 + "!\n") * 100_000
    with raises(ErrorCode.REGEX_TIMEOUT):
        search(text, Query("(?=a)(a|aa)+$", seconds=0.1, line_seconds=10))


def turns_beside_a_slow_search(seconds: float) -> int:
    """Return how often another thread has its turn while a search goes on for so long."""

    def run() -> None:
        with pytest.raises(AntiphonError):
            search("a" * 60 + "!", Query("(a|aa)+$", seconds=PATIENCE, line_seconds=seconds))

    thread = threading.Thread(target=run)
    turns = 0
    thread.start()
    while thread.is_alive():
        time.sleep(0.001)
        turns += 1
    return turns


def test_search_with_slow_pattern_does_not_block_threads() -> None:
    # On a busy machine there are few turns in a short time; without the lock, none in any time.
    assert any(turns_beside_a_slow_search(seconds) > 5 for seconds in (0.2, 1, 5))


def test_search_pattern_quadratic_over_newlines_is_searched_by_line() -> None:
    """Over newlines this pattern is quadratic, within lines it is not."""
    text = ("x" * 20 + "\n") * 20_000 + "=\n"
    assert spans(search(text, Query("[^=]*=", seconds=PATIENCE, line_seconds=1))) == [
        (20_000, 0, 1)
    ]
