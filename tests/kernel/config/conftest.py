"""Configuration files of a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernel.config.files import ConfigFiles


@pytest.fixture
def files(tmp_path: Path) -> ConfigFiles:
    return ConfigFiles(tmp_path)
