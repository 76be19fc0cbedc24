"""A block with every kind of content."""

from __future__ import annotations

import pytest

from tests.kernel.kernel.calls import Make
from tests.kernel.kernel.tools.report import REPORT


@pytest.fixture
async def report(make: Make) -> str:
    return await make(schema=REPORT, content=None)
