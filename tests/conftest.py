"""What every test gets: its own home, its own runtime folder, nothing of the developer's."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Cut the test off from the developer's configuration, state and running kernels."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for name in ("CONFIG", "STATE", "DATA", "CACHE", "RUNTIME"):
        folder = home / name.lower()
        folder.mkdir(mode=0o700)
        monkeypatch.setenv(f"XDG_{name}_{'DIR' if name == 'RUNTIME' else 'HOME'}", str(folder))
    for name in ("ANTIPHON_DATA", "TMUX", "NO_COLOR", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    return home
