"""A kernel behind open doors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.kernel.served import ServedKernel, served_kernel


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[ServedKernel]:
    async with served_kernel(tmp_path) as served:
        yield served
