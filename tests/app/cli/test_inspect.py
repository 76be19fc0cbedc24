"""Output of `antiphon blame`, `history`, `layout`, `bench` and `share --list`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from antiphon.cli.inspect import PLACES, blame_rows, history_rows, layout_rows
from antiphon.cli.share import presence_lines
from tests import bench

TIME = "2026-11-21T07:12:03.123Z"


def blamed(*parts: tuple[str, str]) -> dict[str, Any]:
    """A block of which each part was written by somebody."""
    runs, at = [], 0
    for number, (who, text) in enumerate(parts, 1):
        end = at + len(text)
        stamp = {"username": who, "version": number, "time": TIME}
        runs.append({"start": at, "end": end, **stamp})
        at = end
    return {"runs": runs, "content": "".join(text for _, text in parts)}


def test_line_of_several_writers_takes_a_row_for_each() -> None:
    rows = list(blame_rows(blamed(("amy", "milk\n"), ("bo", "rye "), ("amy", "bread\n\nsoap"))))
    when = "2026-11-21 07:12:03Z"
    assert rows == [
        f"0  amy  v1  {when}  milk",
        f"1  bo   v2  {when}  rye ",
        f"   amy  v3  {when}  bread",
        f"2  amy  v3  {when}  ",
        f"3  amy  v3  {when}  soap",
    ]


def test_text_of_a_fork_names_the_original_that_has_the_version() -> None:
    found = blamed(("amy", "milk\n"), ("bo", "rye\n"))
    found["runs"][1]["source_block_name"] = "default.amy.1"
    when = "2026-11-21 07:12:03Z"
    assert list(blame_rows(found)) == [
        f"0  amy  v1                   {when}  milk",
        f"1  bo   v2 of default.amy.1  {when}  rye",
    ]
    assert list(blame_rows(blamed())) == ["(no text)"]


@given(st.lists(st.text(alphabet="a\n\r\u2028é", min_size=1), min_size=1, max_size=6))
def test_rows_hold_the_text_and_number_its_lines(texts: list[str]) -> None:
    """Only a newline ends a line; each of them ends one row, and nothing is left out."""
    found = blamed(*((f"p{number}", text) for number, text in enumerate(texts)))
    rows = list(blame_rows(found))
    margin = len(rows[0]) - len(texts[0].split("\n")[0])
    assert "".join(row[margin:] for row in rows) == found["content"].replace("\n", "")
    numbers = [int(row.split()[0]) for row in rows if row[: rows[0].index("p")].strip()]
    lines = found["content"].count("\n") + (not found["content"].endswith("\n"))
    assert numbers == list(range(lines))


def test_history_is_one_row_a_version() -> None:
    versions = [
        {"version": 9, "time": TIME, "username": "amy", "operation": "create"},
        {"version": 10, "time": TIME, "username": "bo", "operation": "splice"},
    ]
    assert list(history_rows({"versions": versions})) == [
        "v9   2026-11-21 07:12:03Z  amy  create",
        "v10  2026-11-21 07:12:03Z  bo   splice",
    ]


def test_layout_rows_are_the_stream_with_its_cache_points() -> None:
    items = [
        {"index": 0, "text": "[TURN turn_1_abcdef]", "cache_points": []},
        {"index": 1, "text": "[USER MESSAGE]\nHello", "cache_points": ["pre_tail", "tail"]},
    ]
    assert list(layout_rows({"items": items})) == [
        *("[TURN turn_1_abcdef]", "", "[USER MESSAGE]", "Hello", ""),
        "──── cache point: pre-tail, tail ────",
    ]
    assert list(layout_rows({"items": []})) == ["(nothing to read)"]


def test_there_is_a_benchmark_of_each_place() -> None:
    for place in PLACES:
        assert (Path(bench.__file__).parent / f"{place}.py").is_file()


def test_presence_lines_count_sessions_of_one_person_by_one_way() -> None:
    ways = ((5, "unix", "s-aaaaaaaa"), (3, "unix", "s-bbbbbbbb"), (4, "ssh", "s-cccccccc"))
    sessions = [
        {"username": "bo", "role": "editor", "via": via, "since": f"2026-01-01T00:0{at}:00.000Z"}
        | {"session": session}
        for at, via, session in ways
    ]
    assert presence_lines(sessions, 4) == [
        "bo    editor  over unix  since 2026-01-01 00:03Z  2 sessions",
        "bo    editor  over ssh   since 2026-01-01 00:04Z  session cccccccc",
    ]
