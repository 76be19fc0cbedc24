"""Git, asked about the files of a project."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from antiphon_kernel.files import git as git_module
from antiphon_kernel.files.git import Git
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.project_paths import find_path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder below the root of a repository, with a tracked, a changed and an ignored file."""
    run(tmp_path, "init", "-q")
    project = tmp_path / "pro ject"
    project.mkdir()
    for name in ("kept", "änd", "gone"):
        (project / name).write_text(name)
    (project / ".gitignore").write_text("*.log\n")
    run(project, "add", ".")
    run(project, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
    (project / "änd").write_text("other")
    (project / "new").write_text("new")
    (project / "x.log").write_text("x")
    (project / "gone").unlink()
    return project


def run(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True)


async def test_git_lists_marks_and_reads_the_files_of_a_folder(project: Path) -> None:
    git = Git(project)
    assert sorted(await git.listed() or []) == [".gitignore", "gone", "kept", "new", "änd"]
    assert await git.head(find_path(project, "änd")) == "änd".encode()
    assert await git.head(find_path(project, "new")) is None


async def test_marks_are_relative_to_the_project(project: Path) -> None:
    marks = {"änd": " M", "new": "??", "gone": " D"}
    assert await Git(project).marks() == marks
    assert await Git(project).marks(["new", "kept"]) == {"new": "??"}


@pytest.mark.parametrize("name", ["x", "a=b"])
@pytest.mark.parametrize("program", ["clean", "process"])
async def test_programs_that_a_repository_configures_are_not_run(
    project: Path, name: str, program: str
) -> None:
    has_run = project.parent / "has run"
    (project / ".gitattributes").write_text(f"kept filter={name}\n")
    run(project, "config", f"filter.{name}.{program}", f"touch '{has_run}'; cat")
    run(project, "config", f"filter.{name}.required", "true")
    run(project, "config", "core.fsmonitor", f"touch '{has_run}'")
    (project / "kept").write_text("tpek")  # of the same length, so that git reads it
    assert (await Git(project).marks())["kept"] == " M"
    assert not has_run.exists()


async def test_work_tree_elsewhere_shows_no_names_from_there(project: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "private").touch()
    run(project, "config", "core.worktree", str(elsewhere))
    assert await Git(project).listed() is None
    assert await Git(project).marks() == {}


async def test_missing_object_runs_no_program_that_would_fetch_it(project: Path) -> None:
    has_run, clone = project.parent / "has run", project.parent / "clone"
    run(project, "config", "uploadpack.allowFilter", "true")
    run(
        project,
        "clone",
        "-q",
        "--no-checkout",
        "--filter=blob:none",
        f"file://{project.parent}",
        str(clone),
    )
    run(clone, "config", "remote.origin.uploadpack", f"touch '{has_run}'; false")
    (clone / project.name).mkdir()
    (clone / project.name / "kept").touch()
    assert await Git(clone / project.name).head(find_path(clone / project.name, "kept")) is None
    assert not has_run.exists()


async def test_operation_of_git_is_seen_while_it_is_under_way(project: Path) -> None:
    git = Git(project)
    assert await git.operation() is None
    for name in ("index.lock", "rebase-merge", "MERGE_HEAD", "CHERRY_PICK_HEAD", "BISECT_LOG"):
        mark = project.parent / ".git" / name
        mark.touch()
        assert await git.operation() == name
        mark.unlink()
        assert await git.operation() is None


async def test_folder_without_a_repository_has_no_list_and_no_marks(tmp_path: Path) -> None:
    git = Git(tmp_path)
    assert await git.listed() is None
    assert await git.marks() == {}
    assert await git.operation() is None
    run(tmp_path, "init", "-q")
    (tmp_path / ".git" / "MERGE_HEAD").touch()
    assert await git.operation() == "MERGE_HEAD"


async def test_commit_that_does_not_come_to_an_end_is_stated(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = find_path(project, "new")
    many = [replace(path, names=(f"{number:040}",)) for number in range(5_000)]
    with pytest.raises(AntiphonError, match="too long"):
        await Git(project).commit(many, "message")
    for name in ("name", "email"):
        run(project, "config", f"user.{name}", "amy")
    hook = project.parent / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nsleep 60\n")
    hook.chmod(0o755)
    monkeypatch.setattr(git_module, "_COMMIT_SECONDS", 0.5)
    with pytest.raises(AntiphonError, match="was ended"):
        await Git(project).commit([path], "message")
    assert (await Git(project).marks())["new"] == "??"
    assert await Git(project).operation() is None
