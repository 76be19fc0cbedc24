"""Language servers: findings, answers, and the end of bad ones."""

from __future__ import annotations

import asyncio
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.files import language_servers
from antiphon_kernel.files.open_file import OpenFile
from antiphon_kernel.types.block_metadata import FINDINGS
from antiphon_kernel.types.errors import AntiphonError
from tests.kernel.files.editor import Editor
from tests.kernel.kernel.calls import OpenKernel
from tests.waiting import until

SCRIPTED = Path(__file__).with_name("scripted_server.py")


def scripted(manner: str = "") -> str:
    return shlex.join([sys.executable, "-I", "-S", str(SCRIPTED), manner])


def rows(file: OpenFile) -> list[dict[str, Any]]:
    header = file.context.document.header(file.block)
    return [dict(one) for one in header.metadata.get(FINDINGS, {"rows": ()})["rows"]]


def processes(folder: Path) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_there = process.joinpath("cwd").readlink() == folder
        except OSError:
            continue
        if is_there:
            found.append(int(process.name))
    return found


async def test_real_server_finds_defines_explains_and_completes(editor: Editor) -> None:
    editor.kernel.files.servers.commands = {
        "py": f"{Path(sys.executable).parent}/jedi-language-server"
    }
    editor.put(
        "lib.py", b"import os\n\ndef greet(name: str) -> str:\n    'Say hello.'\n    return name\n"
    )
    editor.put("src/a.py", "import lib\nx = '😀'; lib.greet(1)\n".encode())
    ask = partial(editor.call, "file.ask", path="src/a.py")
    place = {"line": 1, "column": 15}
    said = await ask(what="definition", **place)
    assert said == {"places": [{"path": "lib.py", "line": 2, "outside": False}]}
    assert "Say hello." in (await ask(what="hover", **place))["text"]
    assert (await ask(what="hover", line=2, column=0))["text"] == ""
    # The line grows, and the server is asked about it before it could be told.
    await editor.type("src/a.py", "greet(1)", "; lib.gree")
    said = await ask(what="completion", line=1, column=32)
    assert said == {"begun": "gree", "items": [{"text": "greet", "detail": ""}]}
    file = await editor.open("src/a.py")
    await editor.type("src/a.py", "1); lib.gree", "t(")
    await until(lambda: rows(file), "the finding")
    assert rows(file)[0]["source"] == "jedi-language-server"
    await editor.type("src/a.py", "1); lib.greet(", ")")
    await until(lambda: not rows(file), "that nothing is wrong any more")
    outside = await editor.call("file.ask", path="lib.py", what="definition", line=0, column=8)
    assert outside["places"][0]["outside"] and outside["places"][0]["path"].endswith("/os.py")


NEVER_READY = {
    "fails": "has ended with exit code 1: 'no configuration'",
    "talks": "has sent no message, or too long a one: 'Good morning!'",
    "boasts": "too long a one: 'Content-Length: 999999999'",
    "rambles": "has sent what is no message",
    "lies": "has sent what is no message",
    "refuses": "refuses: {'code': -32603, 'message': 'not today'}",
    "deaf": "was not ready after 0.3 s",
}
BAD_ANSWERS = {
    "wrong": "has sent an answer that is none",
    "dies": "has ended and is begun again",
    "mute": "has not answered for 0.1 s",
}


async def test_server_that_does_not_do_its_work_is_reported(
    editor: Editor, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = editor.kernel.files.servers
    servers.commands = {manner: scripted(manner) for manner in (*NEVER_READY, *BAD_ANSWERS)}

    async def opened(manner: str) -> OpenFile:
        editor.put(f"a.{manner}", b"one\n")
        file = await editor.open(f"a.{manner}")
        await until(lambda: rows(file), f"what the server says that {manner}")
        return file

    async def answers(manner: str, problem: str) -> None:
        with pytest.raises(AntiphonError) as failed:
            await editor.call("file.ask", path=f"a.{manner}", what="hover", line=0, column=0)
        assert problem in failed.value.message, manner

    files = [await opened(manner) for manner in BAD_ANSWERS]
    for manner, problem in BAD_ANSWERS.items():
        if manner == "mute":
            monkeypatch.setattr(language_servers, "ANSWER_SECONDS", 0.1)
        await answers(manner, problem)
    monkeypatch.undo()
    for file in files:
        servers.closed(file)
    await until(lambda: not processes(editor.project), "the end of all servers")
    for manner, problem in NEVER_READY.items():
        if manner == "deaf":
            monkeypatch.setattr(language_servers, "ANSWER_SECONDS", 0.1)
        (row,) = rows(await opened(manner))
        assert (row["line"], row["severity"]) == (0, "note") and problem in row["message"]
        await answers(manner, problem)
        await until(
            lambda: not processes(editor.project), f"the end of the server that is {manner}"
        )


async def test_server_that_has_ended_is_begun_again_with_the_text_as_it_is(editor: Editor) -> None:
    editor.kernel.files.servers.commands = {"txt": scripted("dies once")}
    editor.put("a.txt", b"one\n")
    ask = partial(editor.call, "file.ask", path="a.txt", what="hover", line=0, column=0)
    with pytest.raises(AntiphonError, match="begun again"):
        await ask()
    await editor.type("a.txt", "one", "!")
    assert (await ask())["text"] == "one!"


async def test_findings_in_an_older_text_are_left_out(
    editor: Editor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server finds its whole text, at the end of the first line, after something late."""
    editor.kernel.files.servers.commands = {"txt": scripted()}
    editor.put("a.txt", "one 😀\n".encode())
    file, seen = await editor.open("a.txt"), []
    file.context.applied.listen(lambda _: seen.extend(one["message"] for one in rows(file)))
    await until(lambda: seen == ["one 😀"], "the first")
    assert rows(file)[0]["column"] == 4
    await editor.type("a.txt", "one", " 😀")
    await editor.type("a.txt", "one 😀", "!")
    await until(lambda: "one 😀! 😀" in seen, "the second")
    assert rows(file)[0]["column"] == 7
    assert "late" not in seen


async def test_server_runs_as_long_as_files_of_its_kind_are_open(
    open_kernel: OpenKernel, data: Path
) -> None:
    editor = Editor(await open_kernel(), data.parent)
    servers = editor.kernel.files.servers
    servers.commands = {"txt": scripted(), "md": scripted()}
    for path in ("a.txt", "b.md", "c.rst"):
        editor.put(path, b"one\n")
        await editor.open(path)
    a, b, c = [await editor.open(path) for path in ("a.txt", "b.md", "c.rst")]
    await until(lambda: rows(a) and rows(b), "the findings")
    assert not rows(c) and len(processes(editor.project)) == 1
    with pytest.raises(AntiphonError, match="language_servers` in config"):
        await editor.call("file.ask", path="c.rst", what="hover", line=0, column=0)
    # A file of another name is another file for the server.
    await editor.call("file.rename", path="a.txt", to="d.txt")
    said = await editor.call("file.ask", path="d.txt", what="hover", line=0, column=0)
    assert said["text"] == "one"
    servers.closed(a)
    assert processes(editor.project)
    servers.closed(b)
    await until(lambda: not processes(editor.project), "its end")
    servers.opened(a)
    await until(lambda: processes(editor.project), "another one")
    await editor.kernel.close()
    assert not processes(editor.project)
    # What it had found is not there without it.
    again = Editor(await open_kernel(), data.parent)
    assert not rows(await again.open("d.txt"))


async def test_definition_is_where_it_has_gone_meanwhile(editor: Editor) -> None:
    editor.kernel.files.servers.commands = {"txt": scripted("slow")}
    editor.put("a.txt", b"0\n1\n2\n3\n4\n5\n")
    file = await editor.open("a.txt")
    await until(lambda: rows(file), "that it runs")
    said = asyncio.create_task(
        editor.call("file.ask", path="a.txt", what="definition", line=0, column=0)
    )
    await asyncio.sleep(0.05)
    await editor.insert("a.txt", 2, "one\nmore\n")
    here, outside = (await said)["places"]
    assert here == {"path": "a.txt", "line": 6, "outside": False}
    assert outside == {"path": "/lib/other.py", "line": 4, "outside": True}
