"""A structured block that raw updates are tried on."""

from __future__ import annotations

import pytest

from tests.kernel.kernel.calls import Make
from tests.kernel.validation.peers import SCHEMA


@pytest.fixture
async def block(make: Make) -> str:
    """Two entries in the log, two items in each list, a counter that amy has begun."""
    content = {
        "state": {"must": 2, "stamp": "v1", "few": [1, 2], "count": 5},
        "sealed": "closed",
        "notes": "a note",
        "log": ["first", "second"],
        "things": [{"n": 1}, {"n": 2}],
    }
    return await make(schema=SCHEMA, content=content)
