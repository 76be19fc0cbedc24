"""No failure of a background task goes unheard."""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
from pathlib import Path

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


def test_warning_is_logged_once_where_stderr_ends_in_the_log(tmp_path: Path) -> None:
    path = tmp_path / "kernel.log"
    script = (
        "import logging, pathlib, sys; from antiphon_kernel.daemon.logging_setup import log_to;"
        " log_to(pathlib.Path(sys.argv[1]), echo=True); logging.warning('only once')"
    )
    with path.open("ab") as stderr:
        subprocess.run([sys.executable, "-c", script, str(path)], stderr=stderr, check=True)
    assert path.read_text().count("only once") == 1
