"""The connections to SQLite, for tests that limit how much they write."""

from __future__ import annotations

from typing import Any

import aiosqlite
import pytest


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[aiosqlite.Connection]:
    """Every connection that is made from now on."""
    found: list[aiosqlite.Connection] = []
    make = aiosqlite.Connection.__init__

    def remembering(made: aiosqlite.Connection, *args: Any, **options: Any) -> None:
        make(made, *args, **options)
        found.append(made)

    monkeypatch.setattr(aiosqlite.Connection, "__init__", remembering)
    return found
