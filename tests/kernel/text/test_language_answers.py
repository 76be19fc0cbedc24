"""Answers of language servers, as they are understood."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.text.language_answers import (
    choices,
    code_points,
    diagnosed,
    hover_text,
    locations,
    units,
)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
@pytest.mark.parametrize("text", ["", "abc", "a😀b", "😀😀", "é漢\u200d"])
def test_units_and_code_points_belong_to_each_other(text: str, encoding: str) -> None:
    for column in range(len(text) + 1):
        assert code_points(text, units(text[:column], encoding), encoding) == column
    assert code_points(text, 99, encoding) == len(text)


def test_place_inside_of_a_character_is_the_one_before_it() -> None:
    assert units("a😀b", "utf-16") == 4
    assert code_points("a😀b", 2, "utf-16") == 1


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, ""),
        ({"contents": {"kind": "plaintext", "value": " said \n"}}, "said"),
        ({"contents": ["one", {"language": "c", "value": "two"}, ""]}, "one\n\ntwo"),
    ],
)
def test_hover_is_text_in_every_form(answer: Any, text: str) -> None:
    assert hover_text(answer) == text


def test_definition_is_one_place_or_several_or_none() -> None:
    one = {"uri": "file:///a%20b/c%2B%40.py", "range": {"start": {"line": 3, "character": 0}}}
    place = Path("/a b/c+@.py"), 3
    assert [list(locations(said)) for said in (None, one, [one, one])] == [[], [place], [place] * 2]


def item(label: str, **more: Any) -> dict[str, Any]:
    return {"label": label, **more}


def edit(text: str, start: int) -> dict[str, Any]:
    at = {"line": 0, "character": start}
    return {"newText": text, "range": {"start": at, "end": at}}


@pytest.mark.parametrize(
    ("items", "before", "begun", "texts"),
    [
        (None, "x.", "", []),
        ([item("join"), item("split"), item("jo")], "os.jo", "jo", ["join"]),
        ([item("b", sortText="2"), item("c", sortText="1")], "x.", "", ["c", "b"]),
        ({"items": [item("Foo"), item("Foo")]}, "fo", "fo", ["Foo"]),
        ([item("f(…)", insertText="f")], "", "", ["f"]),
        ([item("color", textEdit=edit("--color", 3))], "😀 --c", "--c", ["--color"]),
    ],
)
def test_completions_begin_with_what_has_been_typed(
    items: Any, before: str, begun: str, texts: list[str]
) -> None:
    found = choices(items, before, "utf-16")
    assert (found[0], [one.text for one in found[1]]) == (begun, texts)


def test_diagnostics_are_findings_at_code_points() -> None:
    def found(line: int, character: int, **more: Any) -> dict[str, Any]:
        at = {"line": line, "character": character}
        return {"range": {"start": at, "end": at}, "message": "m", **more}

    said = [found(0, 3, severity=2, code=7), found(1, 0), found(9, 0), found(0, 0, severity=4)]
    rows = [
        (one.line, one.column, one.severity, one.code)
        for one in diagnosed(said, "a😀b\n", "utf-16")
    ]
    assert rows == [(0, 2, "warning", "7"), (1, 0, "error", None)]
