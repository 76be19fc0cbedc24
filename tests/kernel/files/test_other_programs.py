"""Real programs write a file that is open: block and disk end as one text, and blame names them."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from antiphon_kernel.files import file_contexts
from antiphon_kernel.files.open_file import OpenFile
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.records import Actor
from tests.e2e.terminal import Terminal
from tests.waiting import until

TEXT: Final = "first = 1\nvalues = [1,2]\nthird = 3\nfourth = 4\nlast = 5\n"
FORMATTED: Final = TEXT.replace("1,2", "1, 2")
PATCH: Final = "@@ -1,3 +1,3 @@\n first = 1\n-values = [1,2]\n+values = [1, 2]\n third = 3\n"

VIM: Final = "vim -Nu NONE -n -es -c 'set {}' -c '2s/1,2/1, 2/' -c wq \"$FILE\""
WRITE_SLOWLY: Final = """
import os, time
half = len(os.environ["NEW"]) // 2
with open(os.environ["FILE"], "w") as file:
    file.write(os.environ["NEW"][:half])
    file.flush()
    time.sleep(0.3)
    file.write(os.environ["NEW"][half:])
"""
PROGRAMS: Final = {
    "vim, backupcopy=yes": VIM.format("backupcopy=yes"),
    "vim, backupcopy=no": VIM.format("backupcopy=no"),
    "vim, backupcopy=auto": VIM.format("backupcopy=auto"),
    "vim, with a backup": VIM.format("backup backupcopy=no"),
    "nano": "nano",
    "sed -i": "sed -i 's/1,2/1, 2/' \"$FILE\"",
    "ruff format": '"$BIN/ruff" format -q "$FILE"',
    "patch": 'printf %s "$PATCH" | patch -s "$FILE"',
    "slow writer": '"$PYTHON" -c "$WRITE_SLOWLY"',
    "truncate, then write": ': > "$FILE"; sleep 0.3; printf %s "$NEW" > "$FILE"',
    "append": "printf 'more = 6\\n' >> \"$FILE\"",
    "cp": 'printf %s "$NEW" > "$FILE.new"; cp "$FILE.new" "$FILE"',
    "mv": 'printf %s "$NEW" > "$FILE.new"; mv "$FILE.new" "$FILE"',
    "away and back": 'mv "$FILE" "$FILE.old"; sleep 0.3; mv "$FILE.old" "$FILE"; '
    "sed -i 's/1,2/1, 2/' \"$FILE\"",
}


def run(command: str, place: Path) -> None:
    """Let a program change the file as its users do."""
    shell = {"FILE": str(place), "NEW": FORMATTED, "PATCH": PATCH, "WRITE_SLOWLY": WRITE_SLOWLY}
    shell |= {"PYTHON": sys.executable, "BIN": str(Path(sys.executable).parent)}
    environment = {"PATH": os.environ["PATH"], "HOME": str(place.parent)}
    if command == "nano":
        with Terminal(["nano", "-I", "+2,13", str(place)], env=environment) as terminal:
            terminal.wait_for("values")
            terminal.type(" ")
            terminal.press("ctrl+s", "ctrl+x")
            assert terminal.wait_for_end() == 0
        return
    subprocess.run(["sh", "-c", command], env={**environment, **shell}, check=True, timeout=60)


class Opened:
    """A file of the project that is open."""

    def __init__(self, kernel: Kernel, me: Actor, file: OpenFile, place: Path) -> None:
        self._kernel, self._me = kernel, me
        self.file, self.place = file, place

    @classmethod
    async def of(cls, kernel: Kernel, place: Path) -> Opened:
        place.write_text(TEXT)
        os.utime(place, (1_700_000_000, 1_700_000_000))
        me = kernel.open_session(kernel.owner, "test")
        return cls(kernel, me, await kernel.files.open(place.name), place)

    async def call(self, tool: str, **params: Any) -> dict[str, Any]:
        return await self._kernel.call(self._me, tool, {"block_id": self.file.block, **params})

    async def type(self, at: str, text: str) -> None:
        """Insert a text behind another one."""
        offset = self.text.index(at) + len(at)
        await self.call("block.splice", offset=offset, insert=text)

    @property
    def text(self) -> str:
        return self.file.now().text

    async def undo_the_disk(self, wanted: str) -> None:
        """Undo what other programs have written, until the text is what it was."""
        while self.text != wanted:
            await self.call("block.undo", principal="disk")


@pytest.mark.parametrize("name", PROGRAMS)
async def test_program_that_writes_an_open_file_is_its_author(
    kernel: Kernel, data: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = name.split(",")[0]
    if program in ("vim", "nano", "patch") and shutil.which(program) is None:
        pytest.skip(f"{program} is not installed (apt-get install {program})")
    monkeypatch.setattr(file_contexts, "AUTOSAVE_SECONDS", 1e6)
    clean = await Opened.of(kernel, data.parent / "clean.py")
    dirty = await Opened.of(kernel, data.parent / "dirty.py")
    await dirty.type("fourth = 4", "0")
    places = (clean.place, dirty.place)
    await asyncio.gather(*(asyncio.to_thread(run, PROGRAMS[name], one) for one in places))
    new, words = (f"{TEXT}more = 6\n", "more = 6") if name == "append" else (FORMATTED, " 2")
    typed = new.replace("fourth = 4", "fourth = 40")
    await until(lambda: (clean.text, dirty.text) == (new, typed), f"{name} in the blocks")
    assert (clean.place.read_text(), dirty.place.read_text()) == (new, new)
    assert (await clean.file.is_dirty(), await dirty.file.is_dirty()) == (False, True)
    await dirty.file.save()
    assert dirty.place.read_text() == typed
    for one in (clean, dirty):
        runs = (await one.call("block.blame"))["runs"]
        at = one.text.index(words)
        (author,) = (run["username"] for run in runs if run["start"] <= at < run["end"])
        assert author == "disk"
    await clean.undo_the_disk(TEXT)
    await dirty.undo_the_disk(TEXT.replace("fourth = 4", "fourth = 40"))


async def test_file_is_not_saved_by_itself_while_another_program_writes_it(
    kernel: Kernel, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_contexts, "AUTOSAVE_SECONDS", 0.5)
    opened = await Opened.of(kernel, data.parent / "a.py")
    await opened.type("first = 1", "0")
    await asyncio.sleep(0.4)
    await asyncio.to_thread(run, PROGRAMS["slow writer"], opened.place)
    wanted = FORMATTED.replace("first = 1", "first = 10")
    await until(lambda: opened.place.read_text() == wanted, "the save")
    assert opened.text == wanted


async def test_change_that_comes_while_other_files_are_opened_is_seen(
    kernel: Kernel, data: Path
) -> None:
    opened = await Opened.of(kernel, data.parent / "a.py")
    for number in range(5):
        place = data.parent / f"folder {number}" / "b.py"
        place.parent.mkdir()
        place.write_text("b")
        opened.place.write_text(f"{number}\n")
        await kernel.files.open(f"{place.parent.name}/b.py")
        await until(lambda: opened.text == opened.place.read_text(), "the change")


async def test_file_in_a_folder_that_goes_and_comes_back_is_followed(
    kernel: Kernel, data: Path
) -> None:
    place = data.parent / "src" / "deep" / "a.py"
    place.parent.mkdir(parents=True)
    place.write_text(TEXT)
    file = await kernel.files.open("src/deep/a.py")

    async def holds(text: str) -> None:
        await until(lambda: file.now().text == text, f"the text {text!r}")

    for text in ("one\n", "two\n"):
        shutil.rmtree(data.parent / "src")
        await until(lambda: file.state == "deleted", "that it is gone")
        place.parent.mkdir(parents=True)
        place.write_text(text)
        await holds(text)
        place.write_text(f"{text}more\n")
        await holds(f"{text}more\n")
