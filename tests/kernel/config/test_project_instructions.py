"""Instructions of a project: which file counts, and what becomes of its text."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from antiphon_kernel.config import read_project_instructions

NAME = "AGENTS.md"


def test_project_without_instructions_gives_nothing_and_no_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert read_project_instructions(tmp_path) == ""
    assert caplog.records == []


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xef\xbb\xbfUse tabs.\r\nTest \xc3\xa4ll.\r\n\r\n", "Use tabs.\nTest äll."),
        ("Be \u202ekind\U000e0041.".encode(), "Be \u21e0kind\u2423."),
    ],
)
def test_instructions_are_read_without_mark_carriage_returns_and_hidden_characters(
    tmp_path: Path, data: bytes, text: str
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "rules.md").write_bytes(data)
    (tmp_path / NAME).symlink_to("docs/rules.md")  # which is inside
    assert read_project_instructions(tmp_path) == text


def _outside(folder: Path) -> None:
    (folder.parent / "secret.txt").write_text("SECRET", "utf-8")
    (folder / NAME).symlink_to("../secret.txt")


def _data_folder(folder: Path) -> None:
    (folder / ".antiphon").mkdir()
    (folder / ".antiphon" / "kernel.json").write_text("SECRET", "utf-8")
    (folder / NAME).symlink_to(".antiphon/kernel.json")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_outside, "leads out of the project"),
        (_data_folder, "one of the kernel's own files"),
        (lambda folder: os.mkfifo(folder / NAME), "not a file"),
        (lambda folder: (folder / NAME).mkdir(), "not a file"),
        (lambda folder: (folder / NAME).symlink_to(NAME), "symbolic links"),
        (lambda folder: (folder / NAME).symlink_to("gone.md"), "No such file"),
        (lambda folder: (folder / NAME).write_bytes(b"ok \xff"), "not UTF-8"),
        (lambda folder: (folder / NAME).write_bytes(b"a" * 100_001), "100001 bytes"),
    ],
    ids=["outside", "data-folder", "pipe", "folder", "loop", "dangling", "latin-1", "too-long"],
)
def test_file_that_does_not_count_is_left_out_and_logged(
    make: Callable[[Path], object], said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    make(project)
    with caplog.at_level(logging.WARNING):
        assert read_project_instructions(project) == ""
    assert len(caplog.messages) == 1
    assert said in caplog.text
