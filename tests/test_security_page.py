"""The page of security promises: numbered without gaps, and every promise has tests that exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "security.md"
_PROMISE = re.compile(r"^([0-9]+)\. (.*?)(?=^[0-9]+\. |^## |\Z)", re.M | re.S)
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def promises() -> dict[int, str]:
    return {int(number): text for number, text in _PROMISE.findall(PAGE.read_text("utf-8"))}


@cache
def names_of_tests(path: Path) -> set[str]:
    return set(re.findall(r"(?m)^(?:async )?def (test_\w+)\(", path.read_text("utf-8")))


def test_promises_are_numbered_without_gaps() -> None:
    numbers = list(promises())
    assert len(numbers) >= 20
    assert numbers == list(range(1, len(numbers) + 1))


def test_security_page_promises_name_existing_tests() -> None:
    missing = []
    for number, text in promises().items():
        named = _TEST.findall(text)
        if not named:
            missing.append(f"{number} names no test")
        for file, name in named:
            path = ROOT / file
            if not path.exists() or name not in names_of_tests(path):
                missing.append(f"{number}: {file}::{name}")
    assert missing == []


def test_security_page_references_only_existing_tests() -> None:
    text = PAGE.read_text("utf-8")
    assert len(re.findall("::", text)) == len(_TEST.findall(text))
