"""The wheel and the source distribution: the same bytes wherever and whenever they are built."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
LOCAL = (
    "app/antiphon/__pycache__/app.cpython-311.pyc",
    "app/antiphon/app.py.orig",
    "docs/.DS_Store",
    "kernel/antiphon_kernel/.kernel.py.swp",
    "tests/.antiphon/journal.db",
    "tests/.hypothesis/examples/1",
    "themes/mine.toml~",
    ".env",
    "secret.txt",
)
"""Files that are of one person or machine."""


def build(place: Path, target: Path, *options: str, umask: int = 0o022) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(target), *options]
    subprocess.run(command, cwd=place, check=True, capture_output=True, umask=umask)
    return target


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Build twice: the sources as they are, and those that the first build has packed.

    The second are elsewhere, older, and have files beside them.
    """
    first = build(ROOT, tmp_path_factory.mktemp("dist"))
    copies = tmp_path_factory.mktemp("copy")
    with tarfile.open(next(first.glob("*.tar.gz"))) as archive:
        archive.extractall(copies, filter="data")
    (copy,) = copies.iterdir()
    for path in copy.rglob("*"):
        os.utime(path, (1, 1))
    for name in LOCAL:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text("not for others")
    return [first, build(copy, tmp_path_factory.mktemp("dist"), umask=0o077)]


def test_built_twice_are_the_same_bytes_without_local_files(folders: list[Path]) -> None:
    first, second = (
        {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in folder.iterdir()}
        for folder in folders
    )
    assert len(first) == 2
    assert first == second


def test_wheel_holds_the_program_its_licences_and_its_manual(folders: list[Path]) -> None:
    wheel = ZipFile(next(folders[0].glob("*.whl")))
    names = set(wheel.namelist())
    info = next(name for name in names if name.endswith("/METADATA")).removesuffix("/METADATA")
    about = Parser().parsestr(wheel.read(f"{info}/METADATA").decode())
    data = f"antiphon-{about['Version']}.data"
    assert {name.partition("/")[0] for name in names} == {"antiphon", "antiphon_kernel", info, data}
    player = f"{info}/licenses/app/antiphon/export/asciinema_player/LICENSE"
    manual = f"{data}/data/share/man/man1/antiphon.1"
    assert {f"{info}/licenses/LICENSE", player, manual} <= names
    assert [one for one in names if Path(one).name.startswith("test_")] == [
        "antiphon_kernel/providers/recordings/demo/test_choirs.py.txt"
    ]
    modules = {str(one.relative_to(ROOT / "app")) for one in (ROOT / "app").rglob("*.py")}
    assert modules <= names
