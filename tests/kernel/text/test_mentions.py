from __future__ import annotations

import pytest

from antiphon_kernel.text.mentions import mentions


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("@aria look", ["aria"]),
        ("@aria, @bo: look at @cy", ["aria", "bo"]),
        ("@aria. Look", ["aria"]),
        (" @aria look", ["aria"]),
        ("@aria\n@aria look", ["aria"]),
        ("look, @aria", []),
        ("@aria...", ["aria"]),
        ("@docs/a.md is long", []),
        ("@aria @docs/a.md", ["aria"]),
        ("@main.py @aria", []),
    ],
)
def test_mentions_are_names_at_the_start_and_no_paths(text: str, names: list[str]) -> None:
    assert mentions(text) == names
