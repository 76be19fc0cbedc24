"""Programs of others that tests run against: agents and servers from npm, by `make programs`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pytest

FOLDER: Final = Path(sys.prefix) / "programs" / "node_modules" / ".bin"


def program(name: str) -> Path:
    """Return the path of an installed program; skip the test that asks if there is none."""
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"{name} is not installed: `make programs` does it, and takes npm")
    return path
