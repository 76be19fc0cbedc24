"""Paths that lead elsewhere, by every tool that takes one: nothing outside is read or written."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import re
import socket
import sys
import threading
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from antiphon_kernel.files.disk_file import digest_of
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor

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
PATHS: Final = {
    "up": "../outside/secret",
    "up and down": "src/../../outside/secret",
    "absolute": "{outside}/secret",
    "link out": "link",
    "file behind a link out": "folder-link/secret",
    "new file behind a link out": "folder-link/new",
    "dangling link out": "dangling",
    "loop": "loop",
    "pipe": "pipe",
    "socket": "socket",
    "device": "device",
    "folder": "src",
    "empty": "",
    "blank of folders": "././.",
    "newline": "a\nb",
    "escape sequence": "a\x1b]0;title\x07",
    "lone surrogate": "a\udc80",
    "half of a pair": "\ud83d",
    "NUL": "a\0b",
    "long": "a" * 5_000,
    "long, in folders": "a/" * 2_500,
    "git": ".git/config",
    "git, in another case": ".GIT/hooks/post-checkout",
    "git, below": "src/.git/config",
    "kernel": ".antiphon/config.toml",
    "kernel, by another name": "data/config.toml",
    "kernel, by a link": "data-link/config.toml",
}


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


async def type_at_start(kernel: Kernel, me: Actor, block: str, text: str) -> None:
    await kernel.call(me, "block.splice", {"block_id": block, "offset": 0, "insert": text})


async def test_path_that_leads_elsewhere_is_an_error_that_says_so(
    kernel: Kernel, project: Path
) -> None:
    me = kernel.open_session(kernel.owner, "test")
    before = contents(project.parent)
    for name, path in PATHS.items():
        for tool, params in TOOLS.items():
            found = path.format(outside=project.parent / "outside")
            given = {key: value and str(value).format(found) for key, value in params.items()}
            with pytest.raises(AntiphonError) as caught:
                await asyncio.wait_for(kernel.call(me, tool, given), 10)
            error = caught.value
            assert error.code is ErrorCode.INVALID_PARAMS, (name, tool)
            advice = r"Name a file inside the project|send whole characters"
            assert re.search(advice, error.message), (name, tool)
            assert error.message.isprintable() and len(error.message) < 1_000, (name, tool)
            assert "SECRET" not in json.dumps(error.as_json()).encode().decode(), (name, tool)
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
    kernel: Kernel, project: Path
) -> None:
    me = kernel.open_session(kernel.owner, "test")
    file = await kernel.files.open("src/a.py")
    done = 0
    with swapped_again_and_again(project):
        before = contents(project.parent / "outside")
        for number in range(60):
            await type_at_start(kernel, me, file.block, f"{number}\n")
            for tool, path in (
                ("file.save", "src/a.py"),
                ("file.create", f"src/new-{number}"),
                ("file.open", "src/a.py"),
            ):
                with suppress(AntiphonError):
                    await kernel.call(me, tool, {"path": path})
                    done += 1
            assert SECRET not in file.now().text
        assert contents(project.parent / "outside") == before
    assert done


async def test_two_hard_links_are_written_in_place_and_follow_each_other(
    kernel: Kernel, project: Path
) -> None:
    me = kernel.open_session(kernel.owner, "test")
    names = ["src/a.py", "b.py"]
    (project / "b.py").hardlink_to(project / "src" / "a.py")
    one, other = [await kernel.files.open(path) for path in names]
    await type_at_start(kernel, me, one.block, "from one\n")
    params = {"block_id": other.block, "offset": len("inside\n"), "insert": "from the other\n"}
    await kernel.call(me, "block.splice", params)
    for file in (one, other):
        await file.save()
    await one.look()
    wanted = "from one\ninside\nfrom the other\n"
    texts = {one.now().text, other.now().text, *((project / name).read_text() for name in names)}
    assert texts == {wanted}
    assert (project / "b.py").samefile(project / "src" / "a.py")


async def test_twins_of_one_name_are_two_files(kernel: Kernel, project: Path) -> None:
    me = kernel.open_session(kernel.owner, "test")
    names = ["caf\u00e9", unicodedata.normalize("NFD", "caf\u00e9"), "CAF\u00c9"]
    for number, name in enumerate(names):
        (project / name).write_text(f"{number}\n")
    for number, name in enumerate(names):
        await type_at_start(kernel, me, f"file:{name}", "typed\n")
        await kernel.call(me, "file.save", {"path": name})
        assert (project / name).read_text() == f"typed\n{number}\n"


async def test_listing_leaves_out_what_cannot_be_opened(kernel: Kernel, project: Path) -> None:
    me = kernel.open_session(kernel.owner, "test")
    (project / ".git").rename(project / "src" / ".git2")
    strange = ("a\nb", "a\x1b[1m", os.fsdecode(b"a\xff"), f".a.py.antiphon-{'0' * 16}")
    long = f".{digest_of(b'x')}.antiphon-{'0' * 16}"
    for name in (*strange, long):
        (project / "src" / name).write_text("x")
    found = (await kernel.call(me, "file.list", {"glob": "src/*"}))["paths"]
    assert found == ["src/a.py"]
    json.dumps(found).encode()
