"""The kernel runs in the faster loop where there is one, and in the usual one elsewhere."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec

import pytest

from antiphon_kernel.daemon import event_loop


async def _loop_in_use() -> str:
    await asyncio.sleep(0)
    return type(asyncio.get_running_loop()).__module__


@pytest.mark.skipif(find_spec("uvloop") is None, reason="the faster loop is not installed")
def test_faster_loop_is_used_where_it_is_installed() -> None:
    assert event_loop.run(_loop_in_use()).startswith("uvloop")


def test_usual_loop_is_used_where_the_faster_one_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_loop, "find_spec", lambda _: None)
    assert event_loop.run(_loop_in_use()).startswith("asyncio")
