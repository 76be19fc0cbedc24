"""The log of a kernel's process."""

from __future__ import annotations

import logging
import os
import sys
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

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
