"""Names of files of a project: found, compared, opened; none leads out of it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.project_paths import find_path
from tests.errors import raises

NFC, NFD = "caf\u00e9.py", "cafe\u0301.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "src" / "a.py").write_text("inside", "utf-8")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("SECRET", "utf-8")
    for folder in (".git", ".antiphon", "src/.git", "src/.antiphon"):
        (project / folder).mkdir()
        (project / folder / "config").write_text("SECRET", "utf-8")
    return project


def test_path_by_any_name_of_a_file_is_the_same(project: Path) -> None:
    link = project.parent / "link"
    link.symlink_to(project)
    (project / "here").symlink_to("src")
    (project / "absolute").symlink_to(project / "src")
    (project / "src" / "deep").mkdir()
    (project / "up").symlink_to("src/deep/..")
    (project / "a-link").symlink_to("here/a.py")
    for number in range(40):
        target = f"chain{number - 1}" if number else "src/a.py"
        (project / f"chain{number}").symlink_to(target)
    for path in (
        *("src/a.py", "./src//./a.py", "src/../src/a.py", "{project}/src/a.py"),
        *("{link}/src/a.py", "here/a.py", "absolute/a.py", "up/a.py", "a-link", "chain39"),
    ):
        found = find_path(link, path.format(project=project.resolve(), link=link))
        assert (found.names, found.shown) == (("src", "a.py"), "src/a.py"), path
        assert found == find_path(project, "src/a.py"), path


def _link(target: str) -> Callable[[Path], object]:
    return lambda project: (project / "x").symlink_to(target)


def _socket(project: Path) -> None:
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(os.path.relpath(project / "x"))


@pytest.mark.parametrize(
    ("path", "make", "why"),
    [
        ("../outside/secret", None, "leads out"),
        ("src/../../outside/secret", None, "leads out"),
        ("../project/src/a.py", None, "leads out"),
        ("/etc/passwd", None, "leads out"),
        ("{project}x/src/a.py", None, "leads out"),
        ("{project}/../outside/secret", None, "leads out"),
        ("x", _link("../outside/secret"), "leads out"),
        ("x", _link("/etc/passwd"), "leads out"),
        ("x/secret", _link("../outside"), "leads out"),
        ("x/new.py", _link("../outside"), "leads out"),
        ("x", _link("../outside/new.py"), "leads out"),
        ("no/../../outside/secret", None, "no folder on its way"),
        (".antiphon/config", None, "kernel's own"),
        (".Antiphon/config", None, "kernel's own"),
        ("src/.antiphon/config", None, "kernel's own"),
        ("no/.antiphon/x", None, "kernel's own"),
        ("x", _link(".antiphon/config"), "kernel's own"),
        (".git/config", None, "git's own"),
        (".GIT/config", None, "git's own"),
        (".git", None, "git's own"),
        (".g\u200cit/config", None, "git's own"),
        (".git. /config", None, "git's own"),
        ("src/.git/new", None, "git's own"),
        ("x/config", _link(".git"), "git's own"),
        ("", None, "the project's folder"),
        ("./", None, "names a folder"),
        ("src/..", None, "the project's folder"),
        ("src/a.py/..", None, "not a file"),
        ("{project}", None, "the project's folder"),
        ("src", None, "not a file"),
        ("src/", None, "names a folder"),
        ("src/new/", None, "names a folder"),
        ("src/a.py/b", None, "Not a directory"),
        ("a\0b", None, "no name may have"),
        ("a\nb", None, "no name may have"),
        ("a\x1b[2Jb", None, "no name may have"),
        ("a\x9bb", None, "no name may have"),
        ("a\u202eyp.b", None, "no name may have"),
        ("a\udc80b", None, "no name may have"),
        ("\ud800", None, "no name may have"),
        ("x", _link("a\udc80b"), "no name may have"),
        ("é" * 128, None, "255 bytes"),
        ("a/" * 2_048 + "b", None, "4096 bytes"),
        ("a/" * 100 + "b", None, "100 folders"),
        ("x", _link("x"), "too many symbolic links"),
        ("x/a.py", _link("x/x"), "too many symbolic links"),
        ("x", lambda project: os.mkfifo(project / "x"), "not a file"),
        ("x", _socket, "not a file"),
        ("x", _link("/dev/null"), "leads out"),
    ],
)
def test_path_to_anything_but_a_file_of_the_project_is_refused(
    project: Path,
    path: str,
    make: Callable[[Path], object] | None,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(project)  # names of sockets are short
    if make is not None:
        make(project)
    with raises(ErrorCode.INVALID_PARAMS) as caught:
        find_path(project, path.format(project=project))
    assert why in caught.value.message
    assert "Name a file inside the project" in caught.value.message


@pytest.mark.parametrize(
    ("listed", "asked", "names", "shown"),
    [
        ([NFD], NFC, NFD, NFC),
        ([NFC], NFD, NFC, NFC),
        ([NFC, NFD], NFC, NFC, NFC),
        ([NFC, NFD], NFD, NFD, NFD),
        ([], NFD, NFC, NFC),
    ],
    ids=["other-form", "other-form-asked", "twins-nfc", "twins-nfd", "new"],
)
def test_name_in_another_normal_form_is_the_one_that_the_folder_lists(
    project: Path, listed: list[str], asked: str, names: str, shown: str
) -> None:
    for name in listed:
        (project / name).touch()
    found = find_path(project, asked)
    assert (found.name, found.shown) == (names, shown)


@pytest.mark.parametrize(
    ("listed", "asked", "found"),
    [("Read\u00c9.md", "rEADe\u0301.MD", "Read\u00c9.md"), ("README.md", "README~1.MD", None)],
)
def test_name_in_another_case_is_the_one_that_the_folder_lists(
    project: Path, listed: str, asked: str, found: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / listed).touch()
    (project / "other.md").touch()
    real = os.stat

    def of_any_case(path: Any, **options: Any) -> os.stat_result:
        """Stand for a disk that does not tell cases apart, and has short names."""
        return real(path if path in ("other.md", listed) else listed, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", of_any_case)
        if found is None:
            with raises(ErrorCode.INVALID_PARAMS):
                find_path(project, asked)
        else:
            assert find_path(project, asked).name == found


def test_folder_that_becomes_a_link_after_the_check_is_not_followed(project: Path) -> None:
    found = find_path(project, "src/a.py")
    (project / "src").rename(project / "old")
    (project / "src").symlink_to(project.parent / "outside")
    with pytest.raises(OSError, match=r"directory|links"), found.folder():
        pass
    with pytest.raises(OSError, match=r"directory|links"), found.folder(make=True):
        pass


def test_folders_of_a_new_file_are_made_when_asked_for(project: Path) -> None:
    found = find_path(project, "src/new/deep/b.py")
    with pytest.raises(FileNotFoundError), found.folder():
        pass
    with found.folder(make=True) as folder:
        assert os.path.samestat(os.fstat(folder), (project / "src/new/deep").stat())
