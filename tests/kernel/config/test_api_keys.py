"""Keys in the environment: hidden from what a process starts, and from who looks at it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HIDES = """
import subprocess, sys
from antiphon_kernel.config import hide_variables
hide_variables(["PLANTED_KEY", "NOT_SET"])
subprocess.run(["env"], check=True)
print("initial:", open("/proc/self/environ").read().replace(chr(0), " "))
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only where /proc is")
def test_hidden_variable_is_neither_inherited_nor_shown_by_the_system() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HIDES],
        env={**os.environ, "PLANTED_KEY": "sk-planted-value", "KEPT": "kept-value"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("kept-value") == 2
    assert "sk-planted-value" not in done.stdout
