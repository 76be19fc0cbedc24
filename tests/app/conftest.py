"""A kernel with a model in it, and the app on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.app.opened import Opened, World, opened, world


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as one:
        yield one


@pytest.fixture
async def there(here: World) -> AsyncIterator[Opened]:
    async with opened(here) as one:
        yield one
