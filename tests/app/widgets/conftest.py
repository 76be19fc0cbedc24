"""A document for the widgets that show or edit one."""

from __future__ import annotations

import pytest

from tests.app.widgets.block_list.sample import Sample


@pytest.fixture
def sample() -> Sample:
    return Sample()


@pytest.fixture(autouse=True)
def only_seen_frames() -> None:
    """Draw every frame: these widgets are asked what they have drawn."""
