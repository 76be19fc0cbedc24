"""Which changes of tools callers notice, and that this version has none that it may not have."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernel.reference.api_check import changes, facts_of, is_allowed, kind_of, since_release

PARAMETERS = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}
NARROWER = {**PARAMETERS, "properties": {"a": {"type": "string", "maxLength": 3}}}
MORE = {**PARAMETERS, "properties": {"a": {"type": "string"}, "b": {"type": "null"}}}
ONE, TWO = ({"properties": {"a": {"enum": ["x", "y", "z"][:count]}}} for count in (1, 2))
TOOL = {"parameters": PARAMETERS, "result": PARAMETERS, "errors": ["e"], "needs": "read"}


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ({}, {}, "patch"),
        ({}, {"parameters": MORE}, "minor"),
        ({}, {"result": MORE}, "minor"),
        ({"result": MORE}, {}, "major"),
        ({"parameters": MORE}, {}, "major"),
        ({}, {"parameters": {**MORE, "required": ["a", "b"]}}, "major"),
        ({}, {"parameters": {**PARAMETERS, "required": []}}, "minor"),
        ({}, {"result": {**PARAMETERS, "required": []}}, "major"),
        ({}, {"parameters": NARROWER}, "major"),
        ({"parameters": NARROWER}, {}, "minor"),
        ({"parameters": ONE}, {"parameters": TWO}, "minor"),
        ({"parameters": TWO}, {"parameters": ONE}, "major"),
        ({}, {"errors": []}, "major"),
        ({}, {"errors": ["e", "f"]}, "minor"),
        ({}, {"needs": "own"}, "major"),
    ],
)
def test_changes_of_a_tool_are_of_the_kind_that_callers_notice(
    before: Any, after: Any, kind: str
) -> None:
    then, now = (facts_of({"t": {**TOOL, **one}}) for one in (before, after))
    assert kind_of(list(changes(then, now))) == kind


def test_version_may_have_changes_of_its_kind_only() -> None:
    assert is_allowed("patch", "1.0.0", "1.0.0")
    assert [is_allowed("minor", "1.0.0", one) for one in ("1.0.1", "1.1.0", "2.0.0")] == [0, 1, 1]
    assert [is_allowed("major", "1.2.0", one) for one in ("1.3.0", "2.0.0")] == [0, 1]


def test_tools_have_no_change_that_this_version_may_not_have() -> None:
    found, then, now = since_release()
    assert is_allowed(kind_of(found), then, now), found
