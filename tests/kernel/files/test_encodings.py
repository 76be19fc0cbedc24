"""Files in every encoding: one edit in the block, one save, and no other byte is another one."""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

from antiphon_kernel.files import file_contexts, open_file
from antiphon_kernel.files.disk_file import write
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.limits import DEFAULT_LIMITS
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.errors import raises
from tests.kernel.kernel.calls import OpenKernel

LONG: Final = b"x" * 2_500_000
CODED: Final = "# coding: latin-1\nä\n".encode("latin-1")
MARK: Final = codecs.BOM_UTF8


@dataclass(frozen=True, slots=True)
class Row:
    """A file, what is typed behind which text, and the file as it has to be then."""

    before: bytes
    behind: str
    typed: str
    after: bytes


EDITS: Final[Mapping[str, Row]] = {
    "utf-8": Row("aä漢\n".encode(), "ä", "ö😀", "aäö😀漢\n".encode()),
    "utf-8 with mark": Row(MARK + b"a\n", "a", "\nb", MARK + b"a\nb\n"),
    "utf-16-le": Row("\ufeffa\n".encode("utf-16-le"), "a", "ä", "\ufeffaä\n".encode("utf-16-le")),
    "utf-16-be": Row("\ufeffa\n".encode("utf-16-be"), "a", "ä", "\ufeffaä\n".encode("utf-16-be")),
    "utf-16, crlf": Row(b"\xff\xfea\0\r\0\n\0", "a\n", "\n", b"\xff\xfea\0\r\0\n\0\r\0\n\0"),
    "latin-1": Row(CODED, "ä", "ö", CODED.replace(b"\xe4", b"\xe4\xf6")),
    "latin-1, all ascii": Row(b"# coding: latin-1\n", "1\n", "ö", b"# coding: latin-1\n\xf6"),
    "crlf": Row(b"a\r\nb\r\n", "a", "x\ny", b"ax\r\ny\r\nb\r\n"),
    "cr": Row(b"a\rb\r", "a", "x\ny", b"ax\ry\rb\r"),
    "mixed": Row(b"a\r\nb\nc\rd\r\n", "b", "x", b"a\r\nbx\nc\rd\r\n"),
    "mixed, new line": Row(b"a\r\nb\nc\rd", "c", "\nx", b"a\r\nb\nc\rx\rd"),
    "no final newline": Row(b"a\nb", "b", "x", b"a\nbx"),
    "empty": Row(b"", "", "x\n", b"x\n"),
    "newlines only": Row(b"\n\n\n", "\n", "x", b"\nx\n\n"),
    "line separator": Row("a\u2028b\n".encode(), "b", "x", "a\u2028bx\n".encode()),
    "controls": Row(b"a\x0cb\x1b[1m\t \x7f\n", "b", "x", b"a\x0cbx\x1b[1m\t \x7f\n"),
    "one long line": Row(LONG + b"m" + LONG, "m", "y", LONG + b"my" + LONG),
    "typed mark": Row(b"a\n", "", "\ufeff", MARK + b"a\n"),
    "typed mark in utf-16": Row(b"\xff\xfea\0", "", "\ufeff", b"\xff\xfe\xff\xfea\0"),
    "pasted crlf": Row(b"a\nb\n", "a", "x\r\ny", b"ax\ny\nb\n"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_autosave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_contexts, "AUTOSAVE_SECONDS", 1e6)


class _KilledError(Exception):
    """The kernel is no more."""


class Editor:
    """Calls about the files of a project."""

    def __init__(self, kernel: Kernel, project: Path) -> None:
        self.kernel, self.project = kernel, project
        self.me: Actor = kernel.open_session(kernel.owner, "test")

    async def call(self, tool: str, **params: Any) -> dict[str, Any]:
        return await self.kernel.call(self.me, tool, params)

    def put(self, name: str, data: bytes) -> None:
        """Write a file as another program did long ago."""
        (self.project / name).write_bytes(data)
        os.utime(self.project / name, (1_700_000_000, 1_700_000_000))

    async def type(self, name: str, behind: str, text: str) -> None:
        read = await self.call("block.read", block_id=f"file:{name}")
        offset = read["content"].index(behind) + len(behind)
        await self.call("block.splice", block_id=f"file:{name}", offset=offset, insert=text)

    async def state(self, name: str) -> str:
        return str((await self.call("file.open", path=name))["state"])

    async def save(self, name: str) -> bytes:
        """The file as it is written."""
        await self.call("file.save", path=name)
        return (self.project / name).read_bytes()


@pytest.fixture
def editor(kernel: Kernel, data: Path) -> Editor:
    return Editor(kernel, data.parent)


async def test_file_differs_by_its_one_edit_alone(editor: Editor) -> None:
    written: dict[str, bytes] = {}
    for name, row in EDITS.items():
        editor.put(name, row.before)
        await editor.type(name, row.behind, row.typed)
        written[name] = await editor.save(name)
    wrong = [name for name, row in EDITS.items() if written[name] != row.after]
    assert not wrong, [written[one][:80] for one in wrong]
    for name, row in EDITS.items():  # what was written is what both have in common
        assert not (await editor.call("file.open", path=name))["dirty"], name
        await editor.type(name, "", "z")
        one = len("z".encode((await editor.call("file.open", path=name))["encoding"]))
        assert len(await editor.save(name)) == len(row.after) + one, name


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (b"a\0b", ErrorCode.INVALID_PARAMS, "Byte 1 is NUL"),
        (b"\x89PNG\r\n\x1a\n\xff", ErrorCode.INVALID_PARAMS, "is not UTF-8, and no other"),
        (None, ErrorCode.TOO_LARGE, "has 100000000 bytes, 8000000 are allowed"),
    ],
)
async def test_file_that_is_no_text_is_not_opened(
    editor: Editor, content: bytes | None, code: ErrorCode, message: str
) -> None:
    editor.put("a", content or b"x")
    if content is None:
        os.truncate(editor.project / "a", 100_000_000)
    with raises(code) as caught:
        await editor.call("file.open", path="a")
    assert message in caught.value.message
    assert "attach" not in caught.value.message


async def test_file_of_mixed_ends_is_saved_after_a_kill_that_came_after_a_save(
    editor: Editor, open_kernel: OpenKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*arguments: Any, **options: Any) -> NoReturn:
        write(*arguments, **options)
        raise _KilledError

    editor.put("a", b"a\r\nb\nc\rd")
    await editor.type("a", "b", "\nx")
    with monkeypatch.context() as patched:
        patched.setattr(open_file, "write", killed)
        with pytest.raises(_KilledError):
            await (await editor.kernel.files.open("a")).save()
    await editor.kernel.close()
    again = Editor(await open_kernel(), editor.project)
    await again.type("a", "c", "\ny")
    assert await again.save("a") == b"a\r\nb\nx\nc\ry\rd"


@pytest.mark.parametrize("away", [False, True])
async def test_format_of_a_conflict_is_forgotten_when_the_disk_is_as_it_was(
    editor: Editor, away: bool
) -> None:
    editor.put("a", b"one\r\ntwo\nthree\n")
    await editor.type("a", "two", " ours")
    theirs = "one\ntwo theirs\nthree\n".encode("utf-16")
    editor.put("a", theirs)
    assert await editor.state("a") == "conflict"
    if away:
        (editor.project / "a").unlink()
        assert await editor.state("a") == "deleted"
        editor.put("a", theirs)
        assert await editor.state("a") == "conflict"
    editor.put("a", b"one\r\ntwo\nthree\n")
    assert await editor.save("a") == b"one\r\ntwo ours\nthree\n"


async def test_character_that_the_encoding_lacks_is_named_and_the_file_stays(
    editor: Editor,
) -> None:
    editor.put("a", CODED)
    await editor.type("a", "ä", "漢")
    with pytest.raises(AntiphonError, match="which has no '漢', found in line 1"):
        await editor.save("a")
    assert (editor.project / "a").read_bytes() == CODED


async def test_text_that_is_too_large_for_a_file_is_not_written(
    open_kernel: OpenKernel, data: Path
) -> None:
    editor = Editor(
        await open_kernel(DEFAULT_LIMITS.model_copy(update={"file_bytes": 10})), data.parent
    )
    editor.put("a", b"x" * 10)
    await editor.type("a", "x", "é")
    for tool, params in (("file.save", {}), ("file.create", {"content": "x" * 11})):
        with raises(ErrorCode.TOO_LARGE):
            await editor.call(tool, path="a" if tool == "file.save" else "b", **params)
    assert [one.name for one in editor.project.glob("?")] == ["a"]
    assert (editor.project / "a").read_bytes() == b"x" * 10
