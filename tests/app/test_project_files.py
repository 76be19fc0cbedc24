"""Paths that a text names, the file that is meant, and those that some letters find."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from antiphon.local_user import LocalUser
from antiphon.project_files import ContextPages, KernelFile, ProjectFiles, mentions
from antiphon.render.differences import patch_lines
from antiphon.screens.file_view import line_marks
from antiphon.session import KernelCalls
from antiphon_kernel.text.patch import unified_diff

PATHS = ("README.md", "app/m_a.py", "app/main.py", "docs/domain.md", "src/app/main.py", "z.py")


class FakeKernel:
    """Names paths, two at a time, to its owner."""

    session = SimpleNamespace(user=LocalUser())

    async def call(self, tool: str, params: Mapping[str, Any], failed: str) -> dict[str, Any]:
        behind = [path for path in PATHS if path > params.get("after", "")]
        return {"paths": behind[:2]} | ({"next_path": behind[1]} if len(behind) > 2 else {})


@pytest.fixture
async def files() -> ProjectFiles:
    pages = SimpleNamespace(open_file=None, go_back=None)
    files = ProjectFiles(cast(ContextPages, pages), Path("/home/amy/it"))
    await files.fetch(cast(KernelCalls, FakeKernel()))
    return files


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("see src/a.py.", "src/a.py", None),
        ("src/a.py:12: error", "src/a.py", 11),
        ("at src/a.py:12:3", "src/a.py", 11),
        ('  File "/home/my it/a.py", line 7, in f', "/home/my it/a.py", 6),
        ("(./a-b/c_d.txt)", "./a-b/c_d.txt", None),
        ("Makefile:3: no rule", "Makefile", 2),
        ("+++ b/src/a.py", "b/src/a.py", None),
    ],
)
def test_path_and_line_are_found_in_text(text: str, path: str, line: int | None) -> None:
    assert [(one.path, one.line) for one in mentions(text)] == [(path, line)]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("z.py", "z.py"),
        ("./app/main.py", "app/main.py"),
        ("b/app/main.py", "app/main.py"),
        ("/home/amy/it/app/main.py", "app/main.py"),
        ("/elsewhere/docs/domain.md", "docs/domain.md"),
        ("m_a.py", "app/m_a.py"),
        ("main.py", None),
        ("nothing.py", None),
    ],
)
async def test_file_is_found_by_what_a_text_calls_it(
    files: ProjectFiles, said: str, meant: str | None
) -> None:
    assert files.find(said) == meant


async def test_likeliest_path_comes_first(files: ProjectFiles) -> None:
    assert await files.matching("main") == ["app/main.py", "src/app/main.py", "docs/domain.md"]
    assert await files.matching("S A P") == ["src/app/main.py"]
    assert await files.matching("]^") == []
    files.opened("src/app/main.py")
    assert (await files.matching("main"))[0] == "src/app/main.py"
    assert (await files.matching(""))[:2] == ["src/app/main.py", "README.md"]


@pytest.mark.parametrize(
    ("before", "after", "marks"),
    [
        ("a\nb\nc\n", "a\nb\nc\n", {}),
        ("a\nb\nc\n", "a\nB\nc\n", {1: "~"}),
        ("a\nb\nc\n", "a\nx\ny\nb\nc\n", {1: "+", 2: "+"}),
        ("a\nb\nc\n", "a\nc\n", {1: "-"}),
        ("a\nb\nc\n", "a\nb\n", {1: "-"}),
        ("a\nb\nc\n", "X\nc\n", {0: "~", 1: "-"}),
        (
            "".join(f"{n}\n" for n in range(30)),
            "new\n" + "".join(f"{n}\n" for n in range(29)),
            {0: "+", 29: "-"},
        ),
        ("", "a\nb\n", {}),
    ],
)
def test_lines_that_differ_are_marked(before: str, after: str, marks: dict[int, str]) -> None:
    assert line_marks(patch_lines(unified_diff(before, after, "a"), "a")) == marks


def test_notes_on_a_file_say_what_is_unusual() -> None:
    file = KernelFile("a.py", "c", "b", "utf-8", is_dirty=False, state="")
    assert list(file.notes) == []
    told = {
        "path": "a.py",
        "context_id": "c",
        "block_id": "b",
        "encoding": "iso-8859-1",
        "dirty": True,
        "state": "",
    }
    assert list(KernelFile.of(told).notes) == ["● unsaved", "iso-8859-1"]
    assert "conflict" in KernelFile.of(told | {"state": "conflict"}).notes
