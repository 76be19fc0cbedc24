"""A place for tables in each of the two kinds of store."""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon_kernel.storage import AUTH_FILE, JOURNAL_FILE


@pytest.fixture(params=("sqlite", "postgres"))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """The path or URL at which a journal is opened."""
    if request.param == "postgres":
        return str(request.getfixturevalue("store"))
    return tmp_path / JOURNAL_FILE


@pytest.fixture
def auth_place(place: Path | str) -> Path | str:
    """The path or URL at which an access store is opened."""
    return place if isinstance(place, str) else place.with_name(AUTH_FILE)
