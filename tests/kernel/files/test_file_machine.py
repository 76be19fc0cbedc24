"""People, another program and saves change one file at random; no word that somebody wrote is lost.

Every word is written once. It has to be in the block, on disk or in an open conflict until somebody
deletes it. `ANTIPHON_CASES` says how many seeds are played.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import pytest

from antiphon_kernel.files import file_contexts, open_file
from antiphon_kernel.files.disk_file import DiskState, digest_of, write
from antiphon_kernel.files.open_file import FileState, OpenFile
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.text.merge_edits import Resolution
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.project_paths import ProjectPath
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import OpenKernel

SEEDS = range(int(os.environ.get("ANTIPHON_CASES", "2")))
STEPS = 60


class Machine:
    """One file, whoever writes it, and the words that have to be somewhere."""

    def __init__(self, open_kernel: OpenKernel, place: Path, rng: random.Random) -> None:
        self._open_kernel, self.place, self._rng = open_kernel, place, rng
        self._numbers = count()
        self.wanted: set[str] = set()
        self.done: list[str] = []
        ends = rng.choice((["\n"], ["\r\n"], ["\n", "\r\n"], ["\n", "\r\n", "\r"]))
        place.write_bytes("".join(self._word() + rng.choice(ends) for _ in range(8)).encode())
        self.write: Callable[..., DiskState] = write
        """How files are written; others may come in between."""
        self.kinds = ["type", "type", "type", "disk", "disk", "save", "look", "restart"]
        self.kinds += ["resolve", "crash", "append", "slow", "chmod", "away", "delete"]
        self._mode = 0o644
        place.chmod(self._mode)
        if rng.random() < 0.2:  # it is written in place
            place.with_name("link").hardlink_to(place)
        self._kernel: Kernel
        self._people: list[Actor]
        self.file: OpenFile

    async def start(self) -> None:
        self._kernel = kernel = await self._open_kernel()
        names = ("amy", "bo")
        self._people = [kernel.open_session(await kernel.principal(one), "test") for one in names]
        self.file = await kernel.files.open(self.place.name)

    def _word(self) -> str:
        word = f"w{next(self._numbers)}"
        self.wanted.add(word)
        return word

    def _changed(self, text: str) -> str:
        """A text with new words, without old ones, or both."""
        rng, lines = self._rng, text.splitlines(keepends=True)
        if lines and not lines[-1].endswith(("\n", "\r")):  # another program is not finished
            lines[-1] += "\n"
        for _ in range(rng.randint(1, 3)):
            at = rng.randint(0, len(lines))
            kind = rng.choice(("line", "line", "word", "delete", "delete word"))
            if kind == "line" or at == len(lines):
                lines.insert(at, f"{self._word()}\n")
            elif kind == "word":
                lines[at] = f"{self._word()} {lines[at]}"
            else:
                gone, *rest = lines[at].split(maxsplit=kind == "delete word") or [""]
                self.wanted.difference_update(gone.split())
                lines[at] = rest[0] if rest else ""
        return "".join(lines)

    async def step(self) -> None:
        kind = self._rng.choice(self.kinds)
        self.done.append(kind)
        await getattr(self, f"_{kind}")()

    async def _type(self) -> None:
        now = self.file.now().text
        actor, block = self._rng.choice(self._people), self.file.block
        content = {"block_id": block, "content": self._changed(now)}
        await self._kernel.call(actor, "block.import", content)

    async def _disk(self) -> None:
        self._write_beside()

    def _write_beside(self) -> None:
        """Write the file as another program does, from what it reads there."""
        self._put(self._changed(self._read()))

    def _read(self) -> str:
        return self.place.read_bytes().decode()

    def _put(self, text: str) -> None:
        is_renamed = self._rng.random() < 0.5
        target = self.place.with_name("beside") if is_renamed else self.place
        target.write_bytes(text.encode())
        target.chmod(self._mode)
        if is_renamed:
            target.rename(self.place)

    async def _append(self) -> None:
        with self.place.open("a") as file:
            file.write(f"{self._word()}\n")

    async def _slow(self) -> None:
        """Write a part of the file, and a moment later all of it."""
        text = self._changed(self._read())
        self.place.write_bytes(text[: self._rng.randint(0, len(text))].encode())
        await self.file.look()
        self.place.write_bytes(text.encode())

    async def _chmod(self) -> None:
        self._mode = self._rng.choice((0o600, 0o644, 0o755))
        self.place.chmod(self._mode)

    async def _away(self) -> None:
        """Rename the file, and back."""
        away = self.place.rename(self.place.with_name("away"))
        await self.file.look()
        assert self.file.state is FileState.DELETED
        await self._type()
        away.rename(self.place)

    async def _delete(self) -> None:
        """Delete the file, and save the text that is here anew."""
        self.wanted -= {*self._read().split()} - {*self.file.now().text.split()}
        self.place.unlink()
        await self._type()
        await self.file.save(anew=True)
        self._mode = self.place.stat().st_mode & 0o777

    async def _save(self) -> None:
        await self.file.look()
        if self.file.state is FileState.USUAL:
            with suppress(AntiphonError):  # another program was faster, and there is a conflict
                await self.file.save()

    def written(self, path: ProjectPath, data: bytes, *rest: Any, **options: Any) -> DiskState:
        """Write, now and then after another program has."""
        if "disk" in self.kinds and self.place.exists() and self._rng.random() < 0.3:
            self._write_beside()
        return self.write(path, data, *rest, **options)

    async def _crash(self) -> None:
        """Kill the kernel before or after the file gets its new content."""
        await self.file.look()
        is_before, write = self._rng.random() < 0.5, self.write

        def killed(*arguments: Any, **options: Any) -> NoReturn:
            if not is_before:
                write(*arguments, **options)
            raise _KilledError

        if self.file.state is FileState.USUAL:
            self.write = killed
            with suppress(_KilledError, AntiphonError):
                await self.file.save()
            self.write = write
        await self._restart()

    async def _look(self) -> None:
        await self.file.look()

    async def _restart(self) -> None:
        await self._kernel.close()
        await self.start()

    async def _resolve(self) -> None:
        await self.file.look()
        found = (await self.file.conflicts()).conflicts
        if not found:
            return
        at = self._rng.randrange(len(found))
        choice: Resolution | str = self._rng.choice((*Resolution, "resolved\n"))
        sides = {"ours": found[at].ours.text, "theirs": found[at].theirs.text}
        kept = {**sides, "both": found[at].both}.get(choice, choice)
        gone = {*found[at].ours.text.split(), *found[at].theirs.text.split()} - {*kept.split()}
        await self.file.resolve(self._people[0], {at: choice})
        self.wanted -= gone

    async def operations(self) -> list[str]:
        """The operations of all changes of the block."""
        about = {"block_id": self.file.block, "limit": 1_000}
        history = await self._kernel.call(self._people[0], "block.history", about)
        return [one["operation"] for one in history["versions"]]

    async def check(self) -> None:
        """Every wanted word is somewhere."""
        texts = [self.file.now().text, self.place.read_text()]
        for one in (await self.file.conflicts()).conflicts:
            texts += [one.ours.text, one.theirs.text]
        missing = self.wanted - set("\n".join(texts).split())
        assert not missing, f"{sorted(missing)} {self.done}"

    async def finish(self) -> None:
        """Decide about all that is open, save, and compare."""
        self.kinds = []  # nobody comes in between
        await self.file.look()
        count = len((await self.file.conflicts()).conflicts)
        await self.file.resolve(self._people[0], dict.fromkeys(range(count), Resolution.BOTH))
        await self.file.save()
        text = self.place.read_text()
        assert text == self.file.now().text
        assert not await self.file.is_dirty()
        assert self.place.stat().st_mode & 0o777 == self._mode
        assert not self.wanted - set(text.split()), (self.wanted - set(text.split()), self.done)


class _KilledError(Exception):
    """The kernel is no more."""


@pytest.fixture
async def machine(
    open_kernel: OpenKernel, data: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> Machine:
    """A file that is saved only when the seed says so."""
    monkeypatch.setattr(file_contexts, "AUTOSAVE_SECONDS", 1e6)
    monkeypatch.setattr(open_file, "_EMPTY_SECONDS", 0.001)
    machine = Machine(open_kernel, data.parent / "a.txt", random.Random(seed))
    monkeypatch.setattr(open_file, "write", machine.written)
    await machine.start()
    return machine


async def play(machine: Machine) -> None:
    for _ in range(STEPS):
        await machine.step()
        await machine.check()
    await machine.finish()


@pytest.mark.parametrize("seed", SEEDS)
async def test_words_that_nobody_deletes_stay_however_a_file_is_written(machine: Machine) -> None:
    await play(machine)


@pytest.mark.parametrize("seed", [1])
async def test_own_writes_are_never_taken_for_those_of_another_program(machine: Machine) -> None:
    machine.kinds = ["type", "save", "look", "restart", "crash"]
    await play(machine)
    edits = await machine.operations()
    assert edits.count("disk") == 1


def forgets_the_base(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> None:
    """Control: what was written is not noted."""

    async def written(file: OpenFile, *_: object) -> None:
        await file._store(replace(file.row, next_digest=""))  # noqa: SLF001

    monkeypatch.setattr(OpenFile, "_written", written)


def does_not_compare(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> None:
    """Control: whatever is on disk is written over."""
    write = machine.write

    def written(path: ProjectPath, data: bytes, _: object, **options: Any) -> DiskState:
        there = machine.place
        digest = digest_of(there.read_bytes()) if there.exists() else None
        return write(path, data, digest, **options)

    machine.write = written


@pytest.mark.parametrize("seed", [0])
@pytest.mark.parametrize("fault", [forgets_the_base, does_not_compare])
async def test_machine_finds_a_fault(
    machine: Machine, fault: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch, machine)
    with pytest.raises(AssertionError):
        await play(machine)
