"""Files in every encoding: one edit in the block, one save, and no other byte is another one."""

from __future__ import annotations

import codecs
import os
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

from antiphon_kernel.files import open_file
from antiphon_kernel.files.disk_file import write
from antiphon_kernel.limits import DEFAULT_LIMITS
from antiphon_kernel.types.errors import ErrorCode
from tests.errors import raises
from tests.kernel.files.editor import Editor
from tests.kernel.kernel.calls import OpenKernel

LONG: Final = b"x" * 100_000
CODED: Final = "# coding: latin-1\nä\n".encode("latin-1")
MARK: Final = codecs.BOM_UTF8


EDITS: Final = {
    "utf-8": ("aä漢\n".encode(), "ä", "ö😀", "aäö😀漢\n".encode()),
    "utf-8 with mark": (MARK + b"a\n", "a", "\nb", MARK + b"a\nb\n"),
    "utf-16-le": ("\ufeffa\n".encode("utf-16-le"), "a", "ä", "\ufeffaä\n".encode("utf-16-le")),
    "utf-16-be": ("\ufeffa\n".encode("utf-16-be"), "a", "ä", "\ufeffaä\n".encode("utf-16-be")),
    "utf-16, crlf": (b"\xff\xfea\0\r\0\n\0", "a\n", "\n", b"\xff\xfea\0\r\0\n\0\r\0\n\0"),
    "latin-1": (CODED, "ä", "ö", CODED.replace(b"\xe4", b"\xe4\xf6")),
    "latin-1, all ascii": (b"# coding: latin-1\n", "1\n", "ö", b"# coding: latin-1\n\xf6"),
    "crlf": (b"a\r\nb\r\n", "a", "x\ny", b"ax\r\ny\r\nb\r\n"),
    "cr": (b"a\rb\r", "a", "x\ny", b"ax\ry\rb\r"),
    "mixed": (b"a\r\nb\nc\rd\r\n", "b", "x", b"a\r\nbx\nc\rd\r\n"),
    "mixed, new line": (b"a\r\nb\nc\rd", "c", "\nx", b"a\r\nb\nc\rx\rd"),
    "no final newline": (b"a\nb", "b", "x", b"a\nbx"),
    "empty": (b"", "", "x\n", b"x\n"),
    "newlines only": (b"\n\n\n", "\n", "x", b"\nx\n\n"),
    "line separator": ("a\u2028b\n".encode(), "b", "x", "a\u2028bx\n".encode()),
    "controls": (b"a\x0cb\x1b[1m\t \x7f\n", "b", "x", b"a\x0cbx\x1b[1m\t \x7f\n"),
    "one long line": (LONG + b"m" + LONG, "m", "y", LONG + b"my" + LONG),
    "typed mark": (b"a\n", "", "\ufeff", MARK + b"a\n"),
    "typed mark in utf-16": (b"\xff\xfea\0", "", "\ufeff", b"\xff\xfe\xff\xfea\0"),
    "typed return": (b"a\nb\n", "a", "\r", b"a\nb\n"),
    "pasted crlf": (b"a\nb\n", "a", "x\r\ny", b"ax\ny\nb\n"),
}  # fmt: skip
"""A file, what is typed behind which text, and the file as it has to be then."""


class _KilledError(Exception):
    """The kernel is no more."""


async def test_file_differs_by_its_one_edit_alone(editor: Editor) -> None:
    for name, (before, behind, typed, after) in EDITS.items():
        editor.put(name, before)
        await editor.type(name, behind, typed)
        written = await editor.save(name)
        assert written == after, (name, written[:80])
        opened = await editor.call("file.open", path=name)
        assert not opened["dirty"], name
        await editor.insert(name, 0, "z")
        assert len(await editor.save(name)) == len(after + "z".encode(opened["encoding"])), name


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


async def test_format_of_a_conflict_is_forgotten_when_the_disk_is_as_it_was(
    editor: Editor,
) -> None:
    mixed, theirs = b"one\r\ntwo\nthree\n", "one\ntwo theirs\nthree\n".encode("utf-16")
    place = editor.put("a", mixed)
    await editor.type("a", "two", " ours")
    for data, state in ((theirs, "conflict"), (None, "deleted"), (theirs, "conflict")):
        if data is None:
            place.unlink()
        else:
            editor.put("a", data)
        assert (await editor.call("file.open", path="a"))["state"] == state
    editor.put("a", mixed)
    assert await editor.save("a") == b"one\r\ntwo ours\nthree\n"


async def test_text_that_is_too_large_for_a_file_is_not_written(
    open_kernel: OpenKernel, data: Path
) -> None:
    limits = DEFAULT_LIMITS.model_copy(update={"file_bytes": 10})
    editor = Editor(await open_kernel(limits), data.parent)
    editor.put("a", b"x" * 10)
    await editor.type("a", "x", "é")
    with raises(ErrorCode.TOO_LARGE):
        await editor.save("a")
    with raises(ErrorCode.TOO_LARGE):
        await editor.call("file.create", path="b", content="x" * 11)
    assert [one.name for one in editor.project.glob("?")] == ["a"]
    assert (editor.project / "a").read_bytes() == b"x" * 10


PARTS: Final = {
    "utf-8": ("a漢\n" * 40_000).encode(),
    "one line": ("漢" * 40_000).encode(),
    "utf-16": ("\ufeff" + "a漢\n" * 40_000).encode("utf-16-le"),
    "latin-1": ("# coding: latin-1\n" + "ä\n" * 40_000).encode("latin-1"),
    "small": b"a\r\nb",
    "empty": b"",
    "torn after the beginning": b"a\n" * 40_000 + b"\xff\0",
}


async def test_parts_of_a_file_are_all_of_it_and_it_is_not_opened(editor: Editor) -> None:
    for name, data in PARTS.items():
        editor.put(name, data)
        told = await editor.call("file.part", path=name)
        assert told["text"] or not data, name
        parts = [told["text"]]
        while told["end"] < told["size"]:
            told = await editor.call("file.part", path=name, start=told["end"])
            parts.append(told["text"])
        codec = {"utf-16": "utf-16", "latin-1": "latin-1"}.get(name, "utf-8")
        expected = data.decode(codec, "replace").replace("\r\n", "\n")
        assert "".join(parts) == expected, name
        past = await editor.call("file.part", path=name, start=10**12)
        assert (past["text"], past["start"], past["end"]) == ("", len(data), len(data))
    assert not editor.kernel.files.opened()


async def test_part_of_a_binary_file_says_what_it_is(editor: Editor) -> None:
    editor.put("logo.png", b"\x89PNG\0")
    told = await editor.call("file.part", path="logo.png")
    assert (told["size"], told["text"], told["media_type"]) == (5, "", "image/png")
    assert told["problem"] == "Byte 4 is NUL, which is in no text."
    for path in (".", "gone", "../outside"):
        with raises(ErrorCode.INVALID_PARAMS):
            await editor.call("file.part", path=path)
