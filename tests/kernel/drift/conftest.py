"""A person in a project that is a repository of git, in which nothing is saved unasked."""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon_kernel.files import file_contexts
from antiphon_kernel.kernel import Kernel
from tests.kernel.drift.repository import Repository
from tests.kernel.files.editor import Editor


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder of the project; the kernel's own is in it."""
    project = tmp_path / "project"
    project.mkdir()
    return project


@pytest.fixture
def data(project: Path) -> Path:
    return project / ".antiphon"


@pytest.fixture
def repository(project: Path) -> Repository:
    return Repository(project)


@pytest.fixture
def editor(kernel: Kernel, project: Path, monkeypatch: pytest.MonkeyPatch) -> Editor:
    monkeypatch.setattr(file_contexts, "AUTOSAVE_SECONDS", 1e6)
    return Editor(kernel, project)
