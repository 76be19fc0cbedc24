"""Files as agents read and write them, while people have them open."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from antiphon_kernel.turns.agents.files import read_file, write_file
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.kernel.agents.conftest import TEXT, DirectTurn, OpenTurn
from tests.policies import policy_of

FREE: Final = policy_of({"file_edit": "allow"})


@pytest.fixture
async def free(open_turn: OpenTurn) -> DirectTurn:
    return await open_turn(FREE)


async def test_reads_the_live_text_and_of_a_file_that_is_not_open_the_disk(
    free: DirectTurn,
) -> None:
    turn, path = free.turn, free.put("a.txt")
    rows = await free.stage.kernel.call(free.stage.owner, "context.list", {})
    assert await read_file(turn, path, None, None) == TEXT
    assert await free.stage.kernel.call(free.stage.owner, "context.list", {}) == rows
    await free.type("a.txt", "two", "zwei")
    assert await read_file(turn, path, None, None) == TEXT.replace("two", "zwei")
    assert Path(path).read_text() == TEXT
    assert await read_file(turn, path, 2, 2) == "zwei\nthree\n"
    assert await read_file(turn, path, 5, None) == "five\n"
    assert await read_file(turn, path, None, 1) == "one\n"
    assert await read_file(turn, path, 9, 1) == ""
    crlf = free.put("crlf.txt", "one\r\ntwo\r\n")
    assert await read_file(turn, crlf, 2, None) == "two\n"


REFUSED: Final = (
    ("a.txt", "not absolute"),
    ("/etc/passwd", "leads out"),
    ("{project}/../x", "leads out"),
    ("{project}/out.txt", "leads out"),
    ("{project}/same.txt", "hard link"),
    ("{project}/.git/config", "git's own"),
    ("{project}/.env", "secrets"),
)


async def test_refuses_what_is_no_file_of_the_project_for_models(free: DirectTurn) -> None:
    a = free.put("a.txt")
    free.put(".env", "KEY=hunter2\n")
    os.link(a, free.project / "same.txt")
    (free.project.parent / "x").write_text("outside")
    (free.project / "out.txt").symlink_to(free.project.parent / "x")
    for path, said in REFUSED:
        place = path.format(project=free.project)
        with pytest.raises(AntiphonError, match=said):
            await read_file(free.turn, place, None, None)
        with pytest.raises(AntiphonError, match=said):
            await write_file(free.turn, place, "changed")
    assert (free.project.parent / "x").read_text() == "outside"
    with pytest.raises(AntiphonError, match="No such file"):
        await read_file(free.turn, f"{free.project}/none.txt", None, None)
    with pytest.raises(AntiphonError, match="no text"):
        await read_file(free.turn, free.put("image.png", b"\x89PNG\0\0"), None, None)


async def test_writes_a_minimal_edit_that_keeps_what_people_have_typed_since(
    free: DirectTurn,
) -> None:
    stage, path = free.stage, free.put("a.txt", TEXT.replace("\n", "\r\n"))
    file = await stage.kernel.files.open("a.txt")
    await read_file(free.turn, path, None, None)
    await free.type("a.txt", "two", "zwei")
    await write_file(free.turn, path, TEXT.replace("four", "4").replace("\n", "\r\n"))
    both = "one\nzwei\nthree\n4\nfive\n"
    assert file.now().text == both
    assert Path(path).read_bytes().decode() == both.replace("\n", "\r\n")
    await stage.kernel.call(free.turn.writer.actor, "block.undo", {"block_id": file.block})
    assert file.now().text == "one\nzwei\nthree\nfour\nfive\n"
    assert not free.calls()


async def test_refuses_to_write_over_lines_that_people_have_changed_and_then_takes_them_for_read(
    free: DirectTurn,
) -> None:
    path = free.put("a.txt")
    await read_file(free.turn, path, None, None)
    await free.type("a.txt", "two", "zwei")
    with pytest.raises(AntiphonError, match="2\tzwei") as error:
        await write_file(free.turn, path, TEXT.replace("two", "deux"))
    assert error.value.code is ErrorCode.STALE_VERSION
    file = await free.stage.kernel.files.open("a.txt")
    assert "zwei" in file.now().text
    await write_file(free.turn, path, TEXT.replace("two", "deux"))
    assert file.now().text == TEXT.replace("two", "deux")


async def test_compares_with_the_disk_where_it_has_read_nothing_here(free: DirectTurn) -> None:
    path = free.put("a.txt")
    await free.type("a.txt", "two", "zwei")  # not saved: the agent has not seen it
    await write_file(free.turn, path, TEXT.replace("four", "4"))
    assert Path(path).read_text() == "one\nzwei\nthree\n4\nfive\n"


async def test_makes_a_file_that_is_not_there(free: DirectTurn) -> None:
    path = free.project / "src" / "new.py"
    await write_file(free.turn, str(path), "a = 1\n")
    assert path.read_text() == "a = 1\n"
    await write_file(free.turn, str(path), "a = 2\n")
    assert path.read_text() == "a = 2\n"
    path.unlink()
    await write_file(free.turn, str(path), "a = 3\n")
    assert path.read_text() == "a = 3\n"


async def test_asks_for_a_write_unless_the_policy_or_a_person_has_allowed_it(
    open_turn: OpenTurn,
) -> None:
    asking = await open_turn(policy_of({}, files_allow=["free/**"]))
    path = asking.put("a.txt")
    await write_file(asking.turn, str(asking.project / "free" / "b.txt"), "b\n")
    assert not asking.calls()
    task, block = await asking.asked(write_file(asking.turn, path, TEXT.replace("two", "2")))
    assert block.tool_name == "file_edit"
    assert "-two\n+2\n" in asking.stage.text(block)
    await asking.decide(block, "no")
    with pytest.raises(AntiphonError, match="amy said no") as error:
        await task
    assert error.value.code is ErrorCode.PERMISSION_DENIED
    assert Path(path).read_text() == TEXT

    task, block = await asking.asked(write_file(asking.turn, path, TEXT.replace("two", "2")))
    await asking.decide(block, "always")
    await task
    await write_file(asking.turn, path, TEXT.replace("two", "II"))  # by the rule that this made
    assert Path(path).read_text() == TEXT.replace("two", "II")

    other = asking.put("c.txt")
    asking.turn.permitted.add(("file_edit", "c.txt"))
    await write_file(asking.turn, other, "c\n")
    assert Path(other).read_text() == "c\n"
    assert not [one for one in asking.stage.unfinished() if one.id != asking.turn.prompt]


async def test_writes_nothing_where_the_policy_denies_it(open_turn: OpenTurn) -> None:
    denied = await open_turn(policy_of({"file_edit": "deny"}))
    path = denied.put("a.txt")
    with pytest.raises(AntiphonError, match="policy of this kernel denies file_edit"):
        await write_file(denied.turn, path, "changed")
    assert Path(path).read_text() == TEXT
    assert denied.stage.results()[0].startswith("Not run: The policy")


async def test_file_that_has_become_another_one_is_not_written(open_turn: OpenTurn) -> None:
    asking = await open_turn()
    path, other = Path(asking.put("a.txt")), asking.project.parent / "other"
    other.write_text(TEXT)
    inside = Path(asking.put("b.txt"))
    changes: tuple[tuple[Callable[[], None], str], ...] = (
        (lambda: os.link(other, path), "hard link"),
        (lambda: path.symlink_to(inside), "another file"),
    )
    for become, said in changes:
        task, block = await asking.asked(write_file(asking.turn, str(path), "changed"))
        path.unlink()
        become()
        await asking.decide(block, "once")
        with pytest.raises(AntiphonError, match=said):
            await task
        path.unlink()
        asking.put("a.txt")
    assert (other.read_text(), inside.read_text()) == (TEXT, TEXT)
    assert not [one for one in asking.stage.unfinished() if one.id != asking.turn.prompt]
