"""Fixtures of every end-to-end test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.e2e.machine import Machine


@pytest.fixture
def machine(own_home: Path, tmp_path: Path) -> Iterator[Machine]:
    """A machine on which everything is ended after the test."""
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "README.md").write_text("# A project\n\nWith two lines.\n")
    one = Machine(own_home, project)
    yield one
    one.close()


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/e2e/"):
            item.add_marker(pytest.mark.e2e)
