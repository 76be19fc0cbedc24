"""No failure of a background task goes unheard."""

from __future__ import annotations

import asyncio
import gc
import logging

import pytest

from antiphon_kernel.daemon.logging_setup import report_task_failure


async def test_failed_task_is_logged_by_name(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.get_running_loop().set_exception_handler(report_task_failure)

    async def fail() -> None:
        raise ValueError("the disk is made of cheese")

    task = asyncio.create_task(fail(), name="writer of the journal")
    await asyncio.wait({task})
    with caplog.at_level(logging.ERROR):
        del task
        gc.collect()
    assert "writer of the journal" in caplog.text
    assert "the disk is made of cheese" in caplog.text


async def test_failed_callback_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(report_task_failure)
    loop.call_soon(lambda: 1 / 0)
    with caplog.at_level(logging.ERROR):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert "ZeroDivisionError" in caplog.text
