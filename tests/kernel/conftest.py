"""The packages of stock Yjs clients, for tests that run one under node."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

PACKAGES = ("yjs@13.6.27", "y-websocket@3.0.0", "ws@8.18.3")


@pytest.fixture(scope="session")
def modules() -> Path:
    """The client's packages in a folder that later runs find again; skips where npm cannot.

    Several test processes may want it at once: one installs, the others wait for it.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node and npm are not installed")
    name = "antiphon-node-" + "-".join(PACKAGES).replace("@", "_")
    kept = Path(tempfile.gettempdir()) / name
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            _install(npm, kept)
    return kept


def _install(npm: str, kept: Path) -> None:
    fresh = Path(tempfile.mkdtemp(prefix="antiphon-node-"))
    # What npm has fetched before is taken from its cache, also without a network.
    options = ("--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=0")
    command = [npm, "install", *options, *PACKAGES]
    try:
        subprocess.run(command, cwd=fresh, check=True, capture_output=True, timeout=60)
        fresh.rename(kept)
    except (subprocess.SubprocessError, OSError) as error:
        shutil.rmtree(fresh, ignore_errors=True)
        pytest.skip(f"the packages of a Yjs client cannot be installed: {error}")
