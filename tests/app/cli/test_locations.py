"""Location of the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from antiphon.locations import data_folder, project_root


@pytest.mark.parametrize("mark", [".git", ".antiphon"])
def test_project_is_the_nearest_marked_folder_upwards(tmp_path: Path, mark: str) -> None:
    (tmp_path / ".git").mkdir()
    inner = tmp_path / "inner"
    (inner / mark).mkdir(parents=True)
    deep = inner / "src" / "deep"
    deep.mkdir(parents=True)
    assert project_root(deep) == inner
    assert data_folder(inner) == inner / ".antiphon"


def test_worktrees_git_file_marks_it_too(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: elsewhere\n")
    (tmp_path / "src").mkdir()
    assert project_root(tmp_path / "src") == tmp_path


def test_folder_without_marker_is_its_own_project(tmp_path: Path) -> None:
    assert project_root(tmp_path) in (tmp_path, *tmp_path.parents)
    assert (project_root(tmp_path) == tmp_path) or (project_root(tmp_path) / ".git").exists()


def test_search_does_not_go_above_a_repository_or_into_the_home(
    tmp_path: Path, own_home: Path
) -> None:
    (tmp_path / ".antiphon").mkdir()
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    assert project_root(tmp_path / "repository") == tmp_path / "repository"
    (own_home / ".antiphon").mkdir()
    (own_home / "notes").mkdir()
    assert project_root(own_home / "notes") == own_home / "notes"
    assert project_root(own_home) == own_home


def test_search_stops_where_everybody_may_write(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    (shared / ".antiphon").mkdir(parents=True)
    shared.chmod(0o1777)
    (shared / "mine").mkdir()
    assert project_root(shared / "mine") == shared / "mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_search_stops_where_the_owner_changes(tmp_path: Path) -> None:
    (tmp_path / "theirs" / ".git").mkdir(parents=True)
    (tmp_path / "theirs" / "mine").mkdir()
    os.chown(tmp_path / "theirs", 65534, 65534)
    assert project_root(tmp_path / "theirs" / "mine") == tmp_path / "theirs" / "mine"
