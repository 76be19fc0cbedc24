"""Globs of paths, as in `.gitignore`."""

from __future__ import annotations

import pytest

from antiphon_kernel.text.path_patterns import matches_path


@pytest.mark.parametrize(
    ("glob", "matching", "others"),
    [
        (".env", [".env", "a/.env", ".env/x"], [".envrc", "x.env", ".ENV"]),
        ("*.pem", ["a.pem", "b/c.pem", "\n.pem"], ["a.pem.txt", "pem"]),
        ("src/**", ["src/a", "src/b/c"], ["src", "lib/src/a", "source/a"]),
        ("src/*.py", ["src/a.py"], ["src/b/a.py"]),
        ("**/test/*", ["test/a", "x/y/test/a", "test/a/b"], ["test"]),
        ("/a", ["a", "a/b"], ["b/a"]),
        ("a/", ["a", "a/b", "c/a/b"], ["ab"]),
        ("a?c.{x,y*}", ["abc.x", "abc.yz"], ["abc.z", "a/c.x", "abc.{x,y*}"]),
        ("[a]+(b).", ["[a]+(b)."], ["aab."]),
        ("cle\u0301", ["cl\u00e9", "cle\u0301"], ["cle"]),
    ],
)
def test_glob_matches_these_paths_only(glob: str, matching: list[str], others: list[str]) -> None:
    assert [one for one in matching if not matches_path(one, [glob])] == []
    assert [one for one in others if matches_path(one, [glob])] == []


def test_case_counts_unless_it_is_ignored_and_no_glob_matches_nothing() -> None:
    assert matches_path("a/KEY.Pem", ["x", "*.pem"], ignores_case=True)
    assert not matches_path("a/KEY.Pem", ["x", "*.pem"])
    assert not matches_path("", [])
