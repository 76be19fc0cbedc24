"""Paths that lead elsewhere, by every tool that takes one: nothing outside is read or written."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import re
import shutil
import socket
import sys
import threading
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.kernel.files.editor import Editor

SECRET: Final = "SECRET\n"
TOOLS: Final[Mapping[str, Mapping[str, Any]]] = {
    "file.open": {"path": "{}"},
    "file.save": {"path": "{}"},
    "file.revert": {"path": "{}"},
    "file.diff": {"path": "{}", "against": "head"},
    "file.resolve": {"path": "{}", "take": "ours"},
    "file.create": {"path": "{}", "content": "new"},
    "block.read": {"block_id": "file:{}"},
    "block.splice": {"block_id": "file:{}", "offset": 0, "insert": "new"},
}
PATHS: Final = (
    *("../outside/secret", "src/../../outside/secret", "{outside}/secret", "link"),
    *("folder-link/secret", "folder-link/new", "dangling", "loop"),
    *("pipe", "socket", "device", "src"),
    *("", "././.", "a\nb", "a\x1b]0;title\x07"),
    *("a\udc80", "\ud83d", "a\0b", "a" * 5_000),
    *("a/" * 2_500, ".git/config", ".GIT/hooks/post-checkout", "src/.git/config"),
    *(".antiphon/config.toml", "data/config.toml", "data-link/config.toml"),
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose data folder is in it, with everything that leads out."""
    project, outside = tmp_path / "project", tmp_path / "outside"
    outside.mkdir()
    for folder in ("src/.git", ".git", ".antiphon", "data"):
        (project / folder).mkdir(parents=True)
    (outside / "secret").write_text(SECRET)
    for place in (".git/config", "src/.git/config", ".antiphon/config.toml", "data/config.toml"):
        (project / place).write_text(SECRET)
    (project / "src" / "a.py").write_text("inside\n")
    links = {"link": "../outside/secret", "folder-link": "../outside", "dangling": "../outside/x"}
    for name, target in (links | {"loop": "loop", "data-link": "data"}).items():
        (project / name).symlink_to(target)
    os.mkfifo(project / "pipe")
    with socket.socket(socket.AF_UNIX) as opened:
        monkeypatch.chdir(project)  # names of sockets are short
        opened.bind("socket")
    try:
        os.mknod(project / "device", 0o20666, os.makedev(1, 5))  # endless zeros
    except PermissionError:
        (project / "device").symlink_to("/dev/zero")
    return project


@pytest.fixture
def data(project: Path) -> Path:
    return project / "data"


def contents(folder: Path) -> dict[str, str | None]:
    """The text of every file, but those that the kernel writes as it runs."""
    every = (one for one in folder.rglob("*") if one.parent.name != "data" or one.suffix == ".toml")
    return {str(one): one.read_text() if one.is_file() else None for one in every}


async def test_path_that_leads_elsewhere_is_an_error_that_says_so(
    editor: Editor, project: Path
) -> None:
    before = contents(project.parent)
    for path in PATHS:
        for tool, params in TOOLS.items():
            found = path.format(outside=project.parent / "outside")
            given = {key: value and str(value).format(found) for key, value in params.items()}
            with pytest.raises(AntiphonError) as caught:
                await asyncio.wait_for(editor.call(tool, **given), 10)
            error = caught.value
            assert error.code is ErrorCode.INVALID_PARAMS, (path, tool)
            advice = r"Name a file inside the project|send whole characters"
            assert re.search(advice, error.message), (path, tool)
            assert error.message.isprintable() and len(error.message) < 1_000, (path, tool)
            assert "SECRET" not in json.dumps(error.as_json()).encode().decode(), (path, tool)
    assert contents(project.parent) == before


def exchange(one: Path, other: Path) -> None:
    """Give two files the name of each other, in one step."""
    here, is_exchange = -100, 2
    ctypes.CDLL(None).renameat2(here, bytes(one), here, bytes(other), is_exchange)


@contextmanager
def swapped_again_and_again(project: Path) -> Iterator[None]:
    """Let a thread put a link that leads out in the place of a folder, and of a file in it."""
    (project.parent / "outside" / "a.py").write_text(SECRET)
    (project / "out").symlink_to("../outside")
    (project / "out.py").symlink_to("../outside/a.py")
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            for one, other in (("src", "out"), ("src/a.py", "out.py")):
                for _ in range(2):
                    exchange(project / one, project / other)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.skipif(sys.platform != "linux", reason="two names are exchanged in one step")
async def test_folder_that_is_swapped_for_a_link_leads_nowhere(
    editor: Editor, project: Path
) -> None:
    file = await editor.open("src/a.py")
    done = 0
    with swapped_again_and_again(project):
        before = contents(project.parent / "outside")
        for number in range(8):
            typed = {"block_id": file.block, "offset": 0, "insert": f"{number}\n"}
            await editor.call("block.splice", **typed)
            for tool, path in (
                ("file.save", "src/a.py"),
                ("file.create", f"src/new-{number}"),
                ("file.open", "src/a.py"),
            ):
                with suppress(AntiphonError):
                    await editor.call(tool, path=path)
                    done += 1
            assert SECRET not in file.now().text
        assert contents(project.parent / "outside") == before
    assert done


async def test_two_hard_links_are_written_in_place_and_follow_each_other(
    editor: Editor, project: Path
) -> None:
    one, other = "src/a.py", "b.py"
    (project / other).hardlink_to(project / one)
    files = [await editor.open(name) for name in (one, other)]
    await editor.insert(one, 0, "from one\n")
    await editor.type(other, "inside\n", "from the other\n")
    await editor.save(one)
    written = await editor.save(other)
    await files[0].look()
    assert written == b"from one\ninside\nfrom the other\n"
    assert {file.now().text for file in files} == {written.decode()}
    assert (project / one).samefile(project / other)


async def test_twins_of_one_name_are_two_files(editor: Editor) -> None:
    names = ["caf\u00e9", unicodedata.normalize("NFD", "caf\u00e9"), "CAF\u00c9"]
    for number, name in enumerate(names):
        editor.put(name, f"{number}\n".encode())
    for number, name in enumerate(names):
        await editor.insert(name, 0, "typed\n")
        assert await editor.save(name) == f"typed\n{number}\n".encode()


async def test_listing_leaves_out_what_cannot_be_opened(editor: Editor, project: Path) -> None:
    shutil.rmtree(project / ".git")
    strange = ("a\nb", "a\x1b[1m", os.fsdecode(b"a\xff"), f".a.py.antiphon-{'0' * 16}")
    for name in strange:
        (project / "src" / name).write_text("x")
    assert (await editor.call("file.list", glob="src/*"))["paths"] == ["src/a.py"]
