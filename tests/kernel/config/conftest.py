"""A user's configuration and a project's, as files, and what is read from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from antiphon_kernel.config import KernelConfig, load_config

KEYS = {"ANTHROPIC_API_KEY": "sk-ant-one", "OPENAI_API_KEY": "sk-two"}


class ConfigFiles:
    """Folders in which both files may be."""

    def __init__(self, folder: Path) -> None:
        self.user = folder / "config" / "config.toml"
        self.project = folder / "project" / ".antiphon" / "config.toml"
        for path in (self.user, self.project):
            path.parent.mkdir(parents=True)

    def load(
        self, variables: Mapping[str, str] = KEYS, *, trusted: bool = False
    ) -> tuple[KernelConfig, frozenset[str]]:
        """Read what is there, as a kernel does."""
        project = self.project.parent.parent
        return load_config(self.user.parent, project, variables, lambda path, content: trusted)

    def read(
        self,
        user: str | bytes | None = None,
        project: str | None = None,
        variables: Mapping[str, str] = KEYS,
        *,
        trusted: bool = False,
    ) -> KernelConfig:
        """Write files and read them."""
        if user is not None:
            self.user.write_bytes(user if isinstance(user, bytes) else user.encode())
        if project is not None:
            self.project.write_text(project, "utf-8")
        return self.load(variables, trusted=trusted)[0]


def names(config: KernelConfig) -> list[str]:
    return [model.name for model in config.models]


def problems(config: KernelConfig) -> list[tuple[int | None, str]]:
    return [(one.line, one.message) for one in config.problems]


@pytest.fixture
def files(tmp_path: Path) -> ConfigFiles:
    return ConfigFiles(tmp_path)
