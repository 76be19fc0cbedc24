"""The wheel and the source distribution: the same bytes wherever and whenever they are built."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ("app", "docs", "kernel", "tests", "themes")
LOCAL = (
    "app/antiphon/__pycache__/app.cpython-311.pyc",
    "app/antiphon/app.py.orig",
    "docs/.DS_Store",
    "kernel/antiphon_kernel/.kernel.py.swp",
    "kernel/antiphon_kernel/kernel.py~",
    "tests/.antiphon/journal.db",
    "tests/.env",
    "tests/.hypothesis/examples/1",
    "tests/__pycache__/x.pyc",
    "themes/mine.toml~",
    ".env",
    "secret.txt",
)
"""Files that are of one person or machine."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Built twice: the sources as they are, and a copy elsewhere, older, with files beside them."""
    copy = tmp_path_factory.mktemp("copy") / "another name"
    caches = shutil.ignore_patterns("__pycache__", ".*_cache", ".hypothesis")
    for name in SOURCES:
        shutil.copytree(ROOT / name, copy / name, ignore=caches)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, copy)
    for path in copy.rglob("*"):
        os.utime(path, (1, 1))
    for name in LOCAL:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text("not for others")
    built = []
    for place, umask in ((ROOT, 0o022), (copy, 0o077)):
        built.append(tmp_path_factory.mktemp("dist"))
        command = [sys.executable, "-m", "hatchling", "build", "-d", str(built[-1])]
        subprocess.run(command, cwd=place, check=True, capture_output=True, umask=umask)
    return built


def test_built_twice_are_the_same_bytes_without_local_files(folders: list[Path]) -> None:
    names = sorted(path.name for path in folders[0].iterdir())
    assert [name.rpartition(".")[2] for name in names] == ["whl", "gz"]
    for name in names:
        first, second = ((folder / name).read_bytes() for folder in folders)
        assert first == second, name


def test_wheel_holds_the_program_its_licences_and_its_manual(folders: list[Path]) -> None:
    (path,) = folders[0].glob("*.whl")
    wheel = ZipFile(path)
    names = wheel.namelist()
    info = next(name for name in names if name.endswith("/METADATA")).removesuffix("/METADATA")
    about = Parser().parsestr(wheel.read(f"{info}/METADATA").decode())
    data = f"antiphon-{about['Version']}.data/data"
    assert {name.partition("/")[0] for name in names} == {
        "antiphon",
        "antiphon_kernel",
        info,
        data.partition("/")[0],
    }
    player = "app/antiphon/export/asciinema_player/LICENSE"
    assert {f"{info}/licenses/LICENSE", f"{info}/licenses/{player}"} <= set(names)
    assert [one for one in names if one.startswith(data)] == [f"{data}/share/man/man1/antiphon.1"]
    assert not [one for one in names if "test" in Path(one).name and "choirs" not in one]
    modules = {str(one.relative_to(ROOT / "app")) for one in (ROOT / "app").rglob("*.py")}
    assert modules <= set(names)
    extras = set(about.get_all("Provides-Extra") or ())
    assert {"agents", "anthropic", "google", "local", "models", "openai", "ssh", "web"} <= extras


def test_source_distribution_builds_the_same_wheel(folders: list[Path], tmp_path: Path) -> None:
    (path,) = folders[0].glob("*.tar.gz")
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path, filter="data")
    (place,) = tmp_path.iterdir()
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=place, check=True, capture_output=True)
    (again,), (wheel,) = tmp_path.glob("*.whl"), folders[0].glob("*.whl")
    assert again.read_bytes() == wheel.read_bytes()
