from __future__ import annotations

import pytest

from tests.waiting import until


async def test_until_whose_condition_never_holds_fails_with_its_source() -> None:
    count = 1
    with pytest.raises(AssertionError, match=r"in vain for await until\(lambda: count == 2"):
        await until(lambda: count == 2, seconds=0.01)
