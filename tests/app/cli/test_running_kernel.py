"""Program by which a command names itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from antiphon.cli.launcher import program


def test_program_name_is_callable_from_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After `make demo` nothing is on the path, and still what is told to be typed works."""
    script = tmp_path / "a checkout" / ".venv" / "bin" / "antiphon"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(script)])
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path / "a checkout")
    assert program() == ".venv/bin/antiphon"
    monkeypatch.chdir(script.parent)
    assert program() == "./antiphon"
    monkeypatch.chdir(tmp_path)
    assert program() == "'a checkout/.venv/bin/antiphon'"
    monkeypatch.setenv("PATH", str(script.parent))
    assert program() == "antiphon"
