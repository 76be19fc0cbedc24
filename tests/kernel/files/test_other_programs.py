"""Real programs write a file that is open: block and disk end as one text, and blame names them."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from antiphon_kernel.files import file_contexts
from tests.e2e.terminal import Terminal
from tests.kernel.files.editor import Editor
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
    time.sleep(0.6)
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
    subprocess.run(
        ["sh", "-c", command],
        env={**environment, **shell},
        stdin=subprocess.DEVNULL,
        check=True,
        timeout=60,
    )


@pytest.mark.parametrize("name", PROGRAMS)
async def test_program_that_writes_an_open_file_is_its_author(editor: Editor, name: str) -> None:
    program = name.split(",")[0]
    if program in ("vim", "nano", "patch") and shutil.which(program) is None:
        pytest.skip(f"{program} is not installed (apt-get install {program})")
    places = [editor.put(one, TEXT.encode()) for one in ("clean.py", "dirty.py")]
    clean, dirty = files = [await editor.open(one.name) for one in places]
    await editor.type("dirty.py", "fourth = 4", "0")
    await asyncio.gather(*(asyncio.to_thread(run, PROGRAMS[name], one) for one in places))
    new, words = (f"{TEXT}more = 6\n", "more = 6") if name == "append" else (FORMATTED, " 2")
    texts = (new, new.replace("fourth = 4", "fourth = 40"))
    await until(lambda: (clean.now().text, dirty.now().text) == texts, f"{name} in the blocks")
    assert [one.read_text() for one in places] == [new, new]
    assert [await one.is_dirty() for one in files] == [False, True]
    assert await editor.save("dirty.py") == texts[1].encode()
    for file, before in zip(files, (TEXT, TEXT.replace("fourth = 4", "fourth = 40")), strict=True):
        runs = (await editor.call("block.blame", block_id=file.block))["runs"]
        at = file.now().text.index(words)
        assert [one["username"] for one in runs if one["start"] <= at < one["end"]] == ["disk"]
        while file.now().text != before:  # until there is nothing to undo
            await editor.call("block.undo", block_id=file.block, principal="disk")


async def test_file_is_not_saved_by_itself_while_another_program_writes_it(
    editor: Editor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_contexts, "AUTOSAVE_SECONDS", 1.0)
    place = editor.put("a.py", TEXT.encode())
    await editor.type("a.py", "first = 1", "0")
    await asyncio.sleep(0.6)  # so that the program is half-way when it would be saved
    await asyncio.to_thread(run, PROGRAMS["slow writer"], place)
    wanted = FORMATTED.replace("first = 1", "first = 10")
    await until(lambda: place.read_text() == wanted, "the save")


async def test_change_that_comes_while_other_files_are_opened_is_seen(editor: Editor) -> None:
    place = editor.put("a.py", b"")
    file = await editor.open("a.py")
    for number in range(5):
        editor.put(f"folder {number}/b.py", b"b")
        place.write_text(f"{number}\n")
        await editor.open(f"folder {number}/b.py")
        await until(lambda: file.now().text == place.read_text(), "the change")


async def test_change_after_a_name_that_is_no_text_was_made_is_seen(editor: Editor) -> None:
    place = editor.put("a.py", b"")
    file = await editor.open("a.py")
    for number in range(2):
        (editor.project / os.fsdecode(b"latin-\xe9-%d" % number)).touch()
        await asyncio.sleep(0.5)  # it is told alone
        place.write_text(f"{number}\n")
        await until(lambda: file.now().text == place.read_text(), "the change")


async def test_file_in_a_folder_that_goes_and_comes_back_is_followed(editor: Editor) -> None:
    path = "src/deep/a.py"
    place = editor.put(path, TEXT.encode())
    file = await editor.open(path)
    for text in ("one\n", "two\n"):
        shutil.rmtree(editor.project / "src")
        await until(lambda: file.row.state == "deleted", "that it is gone")
        for written in (text, f"{text}more\n"):
            editor.put(path, written.encode())
            await until(lambda: file.now().text == place.read_text(), "the text")
