"""A file that people, other programs and the kernel write at the same time."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.files.open_file import FileState, OpenFile
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.text.merge_edits import Resolution
from antiphon_kernel.types.block_metadata import FINDINGS
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.errors import raises
from tests.kernel.kernel.calls import OpenKernel
from tests.kernel.validation.peers import Peer
from tests.waiting import until

TEXT = "one\ntwo\nthree\nfour\nfive\n"


@dataclass
class Project:
    """A kernel on a project with one file."""

    kernel: Kernel
    me: Actor
    place: Path

    async def open(self) -> OpenFile:
        return await self.kernel.files.open("a.txt")

    def put(self, text: str) -> None:
        """Write the file as another program does."""
        self.place.write_bytes(text.encode())
        os.utime(self.place, (1_700_000_000, 1_700_000_000))

    async def type(self, file: OpenFile, at: str, text: str) -> None:
        """Insert a text behind another one."""
        now = file.now().text
        offset = now.index(at) + len(at)
        splice = {"block_id": file.block, "offset": offset, "delete_count": 0, "insert": text}
        await self.kernel.call(self.me, "block.splice", splice)


@pytest.fixture
async def project(open_kernel: OpenKernel, data: Path) -> Project:
    kernel = await open_kernel()
    project = Project(kernel, kernel.open_session(kernel.owner, "test"), data.parent / "a.txt")
    project.put(TEXT)
    return project


async def test_open_twice_gives_the_same_context_with_the_text_of_the_disk(
    project: Project,
) -> None:
    first, second = await project.open(), await project.kernel.files.open("./a.txt")
    assert first is second
    assert first.now().text == TEXT
    assert not await first.is_dirty()


@pytest.mark.parametrize(
    ("resolution", "expected"),
    [
        (Resolution.OURS, "two, ours"),
        (Resolution.THEIRS, "zwei"),
        (Resolution.BOTH, "two, ours\nzwei"),
        ("neither\n", "neither"),
    ],
)
async def test_conflict_keeps_both_until_somebody_decides(
    project: Project, resolution: Resolution | str, expected: str
) -> None:
    file = await project.open()
    await project.type(file, "two", ", ours")
    project.put(TEXT.replace("two", "zwei").replace("five", "5"))
    await file.look()
    assert file.state is FileState.CONFLICT
    assert file.now().text == TEXT.replace("two", "two, ours")
    with pytest.raises(AntiphonError, match="in the same place"):
        await file.save()
    assert not await file.resolve(project.me, {0: resolution})
    wanted = TEXT.replace("two", expected).replace("five", "5")
    assert file.now().text == wanted
    await file.save()
    assert project.place.read_text() == wanted


async def test_deleted_file_is_made_again_only_if_that_is_asked_for(project: Project) -> None:
    file = await project.open()
    await project.type(file, "two", "!")
    project.place.unlink()
    with pytest.raises(AntiphonError, match="deleted on disk"):
        await file.save()
    assert file.row.state == "deleted"
    assert await file.save(anew=True)
    assert project.place.read_text() == TEXT.replace("two", "two!")
    assert file.row.state == ""


async def test_revert_takes_the_text_of_the_disk_and_can_be_undone(project: Project) -> None:
    file = await project.open()
    await project.type(file, "two", "!")
    await file.revert(project.me)
    assert file.now().text == TEXT
    await project.kernel.call(project.me, "block.undo", {"block_id": file.block})
    assert file.now().text == TEXT.replace("two", "two!")


async def test_context_of_a_file_that_is_opened_by_its_id_follows_the_disk(
    project: Project, open_kernel: OpenKernel
) -> None:
    context = (await project.open()).context.id
    await project.kernel.close()
    kernel = await open_kernel()
    opened = await kernel.context(context)
    (block,) = opened.document.block_ids()
    project.put("one\n")
    await until(lambda: opened.document.text(block) == "one\n", "the text of the disk")


async def test_typed_text_is_not_saved_by_itself_where_that_is_off(project: Project) -> None:
    project.kernel.files.saves_itself = False
    file = await project.open()
    await project.type(file, "two", "!")
    await asyncio.sleep(1.2)
    assert project.place.read_text() == TEXT
    assert await file.save()


async def test_renamed_file_keeps_its_context_and_its_old_name_is_free(project: Project) -> None:
    file = await project.open()
    await project.type(file, "two", "!")
    call = partial(project.kernel.call, project.me)
    moved = await call("file.rename", {"path": "a.txt", "to": "src/b.py"})
    assert (moved["path"], moved["context_id"], moved["dirty"]) == (
        "src/b.py",
        file.context.id,
        True,
    )
    assert await file.save()
    place = project.place.with_name("src") / "b.py"
    assert place.read_text() == TEXT.replace("two", "two!") and not project.place.exists()
    header = file.context.document.header(file.block)
    assert (header.path, header.language) == ("src/b.py", "py")
    new = await call("file.create", {"path": "a.txt", "content": "new\n"})
    assert new["context_id"] != file.context.id
    with pytest.raises(AntiphonError, match="already"):
        await call("file.rename", {"path": "a.txt", "to": "src/b.py"})


async def test_file_that_another_program_renames_is_followed(project: Project) -> None:
    file = await project.open()
    project.put(TEXT.replace("one", "1"))
    await until(lambda: "1" in file.now().text, "that the folder is watched")
    await project.type(file, "two", "!")
    project.place.rename(project.place.with_name("b.txt"))
    await until(lambda: file.path.shown == "b.txt" and not file.state, "its new name")
    assert (await project.kernel.files.open("b.txt")) is file
    await until(lambda: "!" in project.place.with_name("b.txt").read_text(), "the save")


async def test_file_that_is_written_anew_beside_its_backup_keeps_its_name(project: Project) -> None:
    file = await project.open()
    project.place.rename(project.place.with_name("a.txt~"))
    await asyncio.sleep(0.1)
    project.put("one\n")
    await until(lambda: file.now().text == "one\n", "the new text")
    assert file.path.shown == "a.txt"


async def test_deleted_file_is_brought_back_with_its_text(project: Project) -> None:
    file = await project.open()
    call = partial(project.kernel.call, project.me)
    assert (await call("file.delete", {"path": "a.txt"}))["state"] == "deleted"
    assert not project.place.exists() and file.now().text == TEXT
    await call("file.save", {"path": "a.txt", "anew": True})
    assert project.place.read_text() == TEXT


async def test_findings_of_the_checks_are_kept_with_the_file_after_a_save(
    project: Project, tmp_path: Path
) -> None:
    tool = tmp_path / "find.sh"
    tool.write_text('grep -n two "$1" | sed "s/:.*/: error: no two [R1]/;s/^/$1:/"')
    project.kernel.files.checks.commands = {"txt": [f"sh {tool}"]}
    file = await project.open()

    def found() -> Any:
        return file.context.document.header(file.block).metadata.get(FINDINGS)

    await project.type(file, "one", "!")
    await file.save()
    await until(lambda: found() is not None, "the finding")
    row = {"line": 1, "severity": "error", "message": "no two", "code": "R1", "source": "checks"}
    assert found()["rows"] == [row]
    assert not await file.is_dirty()
    read = await project.kernel.call(project.me, "file.read", {"path": "a.txt"})
    assert read["findings"] == ["1: error: no two [R1]"]
    assert await project.kernel.call(project.me, "block.undo", {"block_id": file.block})
    assert file.now().text == TEXT
    project.put(TEXT.replace("two", "2"))
    await file.look()
    await project.type(file, "one", "?")
    await file.save()
    await until(lambda: found() is None, "that there is none")


async def test_lines_behind_a_path_are_those_that_are_read(project: Project) -> None:
    call = partial(project.kernel.call, project.me)
    for named, lines in (("#L2", "two\n"), ("#L2-L3", "two\nthree\n"), ("#L4-5", "four\nfive\n")):
        found = await call("block.read", {"block_id": f"file:a.txt{named}"})
        assert found["content"] == lines


async def test_reference_is_read_as_it_was_and_what_has_changed_since(project: Project) -> None:
    call = partial(project.kernel.call, project.me)
    made = await call("block.create", {"kind": "file", "path": "a.txt#L2-L3"})
    read = await call("context.layout", {"announce_since": 0})
    item = next(one for one in reversed(read["items"]) if one["block_id"] == made["block_id"])
    assert "[FILE] a.txt" in item["text"] and "1\ttwo\n2\tthree" in item["text"]
    assert "four" not in item["text"] and "FILE CHANGED" not in "".join(read["tail"])
    project.put(TEXT.replace("two", "2"))
    await (await project.open()).look()
    again = await call("context.layout", {"announce_since": 0})
    assert item in again["items"], "what was read once stays"
    assert "[FILE CHANGED] a.txt: version 1 to 2" in "".join(again["tail"])
    assert "-two\n+2" in "".join(again["tail"])
    await call("file.rename", {"path": "a.txt", "to": "b.txt"})
    project.put("another\n")
    renamed = await call("context.layout", {"announce_since": 0})
    assert "[FILE CHANGED] a.txt, now b.txt: version 1 to " in "".join(renamed["tail"])
    by_id = {"path": (await call("file.open", {"path": "b.txt"}))["context_id"]}
    assert (await call("file.diff", by_id))["path"] == "b.txt"


async def test_file_stays_one_block_whoever_writes_beside_it(project: Project) -> None:
    file = await project.open()
    context, call = file.context, partial(project.kernel.call, project.me)
    new = {"kind": "text", "role": "user", "content": "beside", "status": "done"}
    asked = (await call("block.create", new))["block_id"]
    for tool, params in (
        ("block.create", {**new, "context": context.id}),
        ("message.append", {"context": context.id, "role": "user", "content": "beside"}),
        ("drift.push", {"to": context.id, "blocks": [asked]}),
    ):
        with raises(ErrorCode.INVALID_PARAMS):
            await call(tool, params)
    client = Peer(context)
    client.draft(project.me, "beside")
    with raises(ErrorCode.PERMISSION_DENIED):
        await client.send(project.me)
    assert context.document.block_ids() == [file.block]
    await call("context.fork", {"context": context.id})
    assert (await run_checks(project.place.parent / "data")).clean
