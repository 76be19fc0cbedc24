"""The process of a kernel: its event loop and its log."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Coroutine
from importlib import import_module
from importlib.util import find_spec
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Final, TypeVar

_FASTER: Final = "uvloop"
"""A loop of the same behaviour that needs less processor time for each message."""

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` like `asyncio.run`, in the faster loop where that is installed."""
    factory = None if find_spec(_FASTER) is None else import_module(_FASTER).new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main)


LOG_BYTES = 1_000_000
FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _PrivateFileHandler(RotatingFileHandler):
    """A rotating log whose files only this user can read."""

    def _open(self) -> TextIOWrapper:
        handle = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.fchmod(handle, 0o600)
        os.close(handle)
        return super()._open()


def log_to(path: Path) -> None:
    """Log into `path` (the last two megabytes are kept), warnings also to stderr.

    Whoever starts a kernel in the background lets its stderr end in the same file.
    """
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    for library in ("uvicorn", "watchfiles", "mcp"):
        logging.getLogger(library).setLevel(logging.WARNING)
    handlers: list[logging.Handler] = [
        _PrivateFileHandler(path, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8")
    ]
    if not os.path.samestat(path.stat(), os.fstat(sys.stderr.fileno())):
        console = logging.StreamHandler(sys.stderr)
        console.setLevel(logging.WARNING)
        handlers.append(console)
    for handler in handlers:
        handler.setFormatter(logging.Formatter(FORMAT))
        root.addHandler(handler)
