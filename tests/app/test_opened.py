"""An app that has failed fails its test, whatever that waits for."""

from __future__ import annotations

import pytest

from tests.app.opened import World, opened


async def test_wait_in_an_app_that_fails_raises_its_failure(here: World) -> None:
    def fail() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):  # noqa: PT012  the app raises it, too
        async with opened(here) as there:
            there.app.call_later(fail)
            with pytest.raises(ValueError, match="broken"):
                await there.sees("what never comes")
