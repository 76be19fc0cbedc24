"""A document for the widgets that show or edit one."""

from __future__ import annotations

import pytest

from tests.app.widgets.block_list.sample import Sample


@pytest.fixture
def sample() -> Sample:
    return Sample()
