"""Where the project is."""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon.locations import data_folder, project_root


@pytest.mark.parametrize("mark", [".git", ".antiphon"])
def test_the_project_is_the_nearest_marked_folder_upwards(tmp_path: Path, mark: str) -> None:
    (tmp_path / ".git").mkdir()
    inner = tmp_path / "inner"
    (inner / mark).mkdir(parents=True)
    deep = inner / "src" / "deep"
    deep.mkdir(parents=True)
    assert project_root(deep) == inner
    assert data_folder(inner) == inner / ".antiphon"


def test_a_worktrees_git_file_marks_it_too(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: elsewhere\n")
    (tmp_path / "src").mkdir()
    assert project_root(tmp_path / "src") == tmp_path


def test_an_unmarked_folder_is_its_own_project(tmp_path: Path) -> None:
    assert project_root(tmp_path) in (tmp_path, *tmp_path.parents)
    assert (project_root(tmp_path) == tmp_path) or (project_root(tmp_path) / ".git").exists()
