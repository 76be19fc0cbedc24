"""Files of the project as models read, search and change them, and as commands find them."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from antiphon_kernel.contexts import Applied
from antiphon_kernel.providers import PermissionPolicy
from antiphon_kernel.providers.events import ToolCallEvent
from antiphon_kernel.turns import TurnRunner
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole
from tests.kernel.turns.stage import DONE, OpenStage, Replying, Stage, call, open_kernel, remote
from tests.policies import policy_of
from tests.waiting import PATIENCE, until

TEXT: Final = "one\ntwo\nthree\nfour\nfive\n"
SECRET: Final = "KEY=hunter2\n"
READ: Final = call("file_read", "r", path="a.txt")
ALLOWED: Final = policy_of({"*": "allow"})
ASKING: Final = policy_of({"shell": "allow"}, files_allow=["src/**"])


@dataclass
class Desk:
    """A project, and a model that is asked to do something in it."""

    stage: Stage
    provider: Replying

    @property
    def project(self) -> Path:
        return self.stage.kernel.project

    def put(self, path: str, text: str = TEXT) -> Path:
        """Write a file as another program does."""
        place = self.project / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        os.utime(place, (1_700_000_000, 1_700_000_000))
        return place

    async def do(
        self, *calls: ToolCallEvent, by: Actor | None = None, together: bool = False
    ) -> list[str]:
        """Let the model make one call after the other, or all at once; return the results."""
        before = len(self.stage.results())
        rounds = [list(calls)] if together else [[one] for one in calls]
        self.provider.then(*rounds, DONE)
        await self.stage.play("Go on.", by)
        return self.stage.results()[before:]

    async def asked(self, *calls: ToolCallEvent) -> str:
        """Let the model make calls, and wait until a person is asked; return the call's block."""
        self.provider.then(*([one] for one in calls), DONE)
        await self.stage.submit("Go on.")
        return await self.waiting()

    async def waiting(self) -> str:
        """Wait until a person is asked; return the call's block."""
        waiting = self.stage.runner.permissions.waiting
        await until(lambda: bool(waiting))
        return next(iter(waiting))

    async def decide(self, block: str, decision: str = "once") -> str:
        await self.stage.call("permission.decide", block_id=block, decision=decision)
        await self.stage.runner.wait_idle()
        return self.stage.results()[-1]

    async def type(self, path: str, old: str, new: str) -> None:
        """Replace a text as a person does."""
        await self.stage.call("file.edit", path=path, old_text=old, new_text=new)

    def text(self, path: str = "a.txt") -> str:
        """Return the text of an open file."""
        return next(
            one.now().text for one in self.stage.kernel.files.opened() if one.path.shown == path
        )


OpenDesk = Callable[..., Any]


@pytest.fixture
def open_desk(open_stage: OpenStage) -> OpenDesk:
    async def open_one(policy: PermissionPolicy = ALLOWED) -> Desk:
        provider = Replying(DONE)
        stage = await open_stage(remote(provider, policy))
        desk = Desk(stage, provider)
        desk.put("a.txt")
        return desk

    return open_one


@pytest.fixture
async def desk(open_desk: OpenDesk) -> Desk:
    made: Desk = await open_desk()
    return made


# Reading and changing


async def test_model_is_present_in_a_file_that_it_has_edited_and_is_stopped_there(
    desk: Desk,
) -> None:
    file = await desk.stage.kernel.files.open("a.txt")
    places: list[list[tuple[str, str, str | None, int | None]]] = []

    async def look() -> None:
        states = file.context.presence.states().values()
        places.append([(one.username, one.activity, one.block, one.cursor) for one in states])

    async def type_before() -> None:
        await desk.type("a.txt", "one", "once")
        await asyncio.sleep(0)

    async def stop() -> None:
        stopped.append(asyncio.create_task(desk.stage.interrupt(context=file.context.id)))
        await asyncio.Event().wait()

    stopped: list[asyncio.Task[list[str]]] = []
    edit = call("file_edit", "e", path="a.txt", old_text="two", new_text="2")
    desk.provider.then([READ], [look, edit], [look, type_before, look, stop], DONE)
    await desk.stage.play("Go on.")
    assert await stopped[0] == ["aria"]
    await look()
    here = ("aria", "streaming", file.block)
    assert places == [[], [(*here, len("one\n2"))], [(*here, len("once\n2"))], []]


async def test_file_is_read_by_lines_and_edited_where_a_text_stands_once(desk: Desk) -> None:
    read, edited = await desk.do(
        call("file_read", "r", path="./a.txt", start_line=1, end_line=99),
        call("file_edit", "e", path="a.txt", old_text="three\nfour", new_text="3\nfour"),
    )
    assert read == "path: a.txt\nversion: 1\nlines: 5\n\n1\ttwo\n2\tthree\n3\tfour\n4\tfive\n"
    assert edited.startswith("path: a.txt\nversion: 2\n\n--- a/a.txt\n+++ b/a.txt\n")
    assert desk.text() == (desk.project / "a.txt").read_text() == TEXT.replace("three", "3")
    file = await desk.stage.kernel.files.open("a.txt")
    blame = await desk.stage.call("block.blame", block_id=file.block)
    assert "aria" in str(blame)
    await desk.do(call("block_undo", "u", block_id="file:a.txt"))
    assert desk.text() == (desk.project / "a.txt").read_text() == TEXT


BAD_EDITS: list[tuple[dict[str, Any], str]] = [
    ({"old_text": "o", "new_text": ""}, "stands 3 times in 'a.txt', in the lines 0, 1, 3:"),
    ({"old_text": "three \n", "new_text": ""}, "\n2\tthree\n"),
    ({"old_text": "xyz", "new_text": ""}, "nothing in it is like it"),
    ({"old_text": "", "new_text": ""}, "old_text"),
    ({"start_line": 4, "end_line": 9, "new_text": ""}, "line_out_of_range"),
    ({"new_text": ""}, "Say what is to be replaced"),
    ({"old_text": "one", "new_text": "", "dry_run": True}, "does not take dry_run"),
]


async def test_edit_that_has_no_place_is_refused(desk: Desk) -> None:
    for edit, said in BAD_EDITS:
        _, result = await desk.do(READ, call("file_edit", "e", path="a.txt", **edit))
        assert said in result
        assert (desk.project / "a.txt").read_text() == TEXT


async def test_edit_finds_lines_that_have_moved_and_not_those_that_have_changed(
    desk: Desk,
) -> None:
    await desk.do(READ)
    await desk.type("a.txt", "one\n", "zero\none\n")
    await desk.type("a.txt", "four", "4, by amy")
    stale = call("file_edit", "s", path="a.txt", old_text="four\n", new_text="x\n")
    moved = call("file_edit", "m", path="a.txt", start_line=1, end_line=2, new_text="2")
    results = await desk.do(stale, moved)
    assert "stale_version" in results[0] and "\n4\t4, by amy\n" in results[0]
    assert desk.text() == "zero\none\n2\nthree\n4, by amy\nfive\n"


@pytest.mark.parametrize(
    "change",
    [
        call("file_edit", "e", path="a.txt", old_text="one", new_text="1"),
        call("apply_patch", "e", patch="--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n"),
    ],
)
async def test_file_that_was_not_read_is_shown_before_it_can_be_changed(
    desk: Desk, change: ToolCallEvent
) -> None:
    results = await desk.do(change, change)
    assert "You had not read 'a.txt'" in results[0] and "\n1\ttwo\n" in results[0]
    assert desk.text() == TEXT.replace("one", "1")
    # What was read is known as long as the kernel runs.
    (await desk.stage.runner.models.open("aria")).files_read.clear()
    again = call("file_edit", "e", path="a.txt", old_text="two", new_text="2")
    (result,) = await desk.do(again)
    assert "You had not read 'a.txt'" in result


PATCH: Final = """\
diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,2 @@
-one
+1
 two
--- /dev/null
+++ b/src/new.txt
@@ -0,0 +1 @@
+new
--- b.txt
+++ b.txt
@@ -5 +5 @@
-five
+{last}
"""


async def test_patch_changes_all_of_its_files_or_none(desk: Desk) -> None:
    desk.put("b.txt", "other\n")
    b = call("file_read", "r", path="b.txt")
    for last, place in (("five\n+six", "line 13 of the patch"), ("", "b.txt")):
        *_, result = await desk.do(READ, b, call("apply_patch", "p", patch=PATCH.format(last=last)))
        assert place in result
        assert (desk.project / "a.txt").read_text() == TEXT
        assert not (desk.project / "src" / "new.txt").exists()
    desk.put("b.txt")
    await desk.do(READ, b, call("apply_patch", "p", patch=PATCH.format(last="5")))
    assert (desk.project / "a.txt").read_text() == TEXT.replace("one", "1")
    assert (desk.project / "b.txt").read_text() == TEXT.replace("five", "5")
    assert (desk.project / "src" / "new.txt").read_text() == "new\n"


async def test_created_file_is_the_models_and_is_not_made_twice(desk: Desk) -> None:
    create = call("file_create", "c", path="src/new.py", content="x = 1\n")
    edit = call("file_edit", "e", path="src/new.py", old_text="1", new_text="2")
    _, edited, again = await desk.do(create, edit, create)
    assert "version: 3" in edited
    assert "There is a file 'src/new.py' already" in again
    assert (desk.project / "src" / "new.py").read_text() == "x = 2\n"
    blame = await desk.stage.call("block.blame", block_id="file:src/new.py")
    assert "aria" in str(blame) and "disk" not in str(blame)


# Looking for files


@pytest.mark.parametrize("program", ["rg", ""])
async def test_files_are_listed_and_searched_without_what_is_ignored_or_secret(
    desk: Desk, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    which = shutil.which
    if program and which(program) is None:
        pytest.skip("there is no ripgrep here")
    monkeypatch.setattr(
        shutil, "which", lambda name: None if name == "rg" != program else which(name)
    )
    subprocess.run(["git", "init", "-q"], cwd=desk.project, check=True)
    desk.put(".gitignore", "/data\n*.log\n")
    for path in ("src/b.txt", "c.log", ".env", "keys/x.pem"):
        desk.put(path, f"three in {path}\n")
    (desk.project / "link.txt").symlink_to(".env")
    (desk.project / "hard.txt").hardlink_to(desk.project / ".env")
    os.mkfifo(desk.project / "pipe")
    await desk.stage.call("file.open", path="a.txt")
    await desk.type("a.txt", "two", "three, not saved")
    every, some, found, first, regex = await desk.do(
        call("file_list", "1"),
        call("file_list", "2", glob="*.{txt,md}"),
        call("file_search", "3", query="three"),
        call("file_search", "4", query="three", limit=1),
        call("file_search", "5", query="(?i)^nope|IN SRC", regex=True, glob="src/**"),
    )
    assert every.splitlines() == [".gitignore", "a.txt", "hard.txt", "src/b.txt"]
    assert some.splitlines() == ["a.txt", "hard.txt", "src/b.txt"]
    assert found.splitlines() == [
        "a.txt:1: three, not saved",
        "a.txt:2: three",
        "src/b.txt:0: three in src/b.txt",
    ]
    assert first.splitlines() == ["a.txt:1: three, not saved", "[more lines match]"]
    assert regex.splitlines() == ["src/b.txt:0: three in src/b.txt"]
    person = await desk.stage.call("file.search", query="three in")
    assert ".env" in [one["path"] for one in person["hits"]]


# Permission


def create(path: str) -> ToolCallEvent:
    return call("file_create", "c", path=path, content="new\n")


EDIT_LINK: Final = call("file_edit", "e", path="src/link", old_text="one", new_text="1")
EDIT_BLOCK: Final = call("block_edit", "e", block_id="file:a.txt", operations=[])


@pytest.mark.parametrize(
    ("rules", "change", "outcome"),
    [
        ({}, create("src/new.txt"), "asks"),
        ({"files_allow": ["src/**"]}, create("src/x/new.txt"), "runs"),
        ({"files_allow": ["src/**"]}, create("./src/../new.txt"), "asks"),
        ({"files_allow": ["*.txt"]}, create("src/new.txt"), "runs"),
        ({"files_allow": ["src/*"]}, EDIT_LINK, "asks"),
        ({"files_allow": ["a.txt"]}, EDIT_LINK, "runs"),
        ({"files_allow": ["a.txt"]}, call("apply_patch", "p", patch=PATCH.format(last=5)), "asks"),
        ({"files_allow": ["**"]}, call("apply_patch", "p", patch=PATCH.format(last=5)), "runs"),
        ({}, EDIT_BLOCK, "asks"),
        ({}, call("block_read", "e", block_id="file:a.txt"), "runs"),
        ({"permits": {"file_create": "deny"}, "files_allow": ["**"]}, create("new.txt"), "denies"),
        ({"permits": {"*": "allow"}}, create("new.txt"), "runs"),
        ({"permits": {"*": "allow"}}, create(".env.local"), "secrets"),
        ({"files_allow": ["**"], "files_deny": ["/src"]}, create("src/a/b.txt"), "secrets"),
        ({"files_allow": ["**"], "files_deny": ["/src"]}, create("lib/src/.env"), "runs"),
    ],
)  # fmt: skip
async def test_policy_of_paths_decides(
    open_desk: OpenDesk, rules: Any, change: ToolCallEvent, outcome: str
) -> None:
    desk = await open_desk(policy_of(**{"permits": {}, **rules}))
    desk.put("b.txt")
    (desk.project / "src").mkdir()
    (desk.project / "src" / "link").symlink_to("../a.txt")
    reads = [call("file_read", name, path=name) for name in ("a.txt", "b.txt")]
    if outcome == "asks":
        block = await desk.asked(*reads, change)
        assert "said no" in await desk.decide(block, "no")
        return
    *_, result = await desk.do(*reads, change)
    said = {"secrets": "may hold secrets", "denies": "policy of this kernel denies"}.get(outcome)
    assert said in result if said else "not" not in result.casefold().split("\n")[0], result


async def test_question_shows_the_difference_and_the_answer_carries_it_out(
    open_desk: OpenDesk,
) -> None:
    desk = await open_desk(ASKING)
    edit = call("file_edit", "e", path="a.txt", old_text="two", new_text="2")
    block = await desk.asked(READ, edit)
    assert desk.stage.text(block) == (
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,5 +1,5 @@\n one\n-two\n+2\n three\n four\n five\n"
    )
    (listed,) = (await desk.stage.call("permission.list"))["undecided"]
    assert (listed["tool"], listed["arguments"]["path"]) == ("file_edit", "a.txt")
    await desk.type("a.txt", "five", "5")
    await desk.decide(block)
    assert (desk.project / "a.txt").read_text() == "one\n2\nthree\nfour\n5\n"
    block = await desk.asked(create("new.txt"))
    assert desk.stage.text(block) == "--- a/new.txt\n+++ b/new.txt\n@@ -0,0 +1,1 @@\n+new\n"
    assert "version" in await desk.decide(block)


async def test_changes_that_were_not_allowed_are_committed_by_a_person(open_desk: OpenDesk) -> None:
    desk = await open_desk(ASKING)
    edit = call("file_edit", "e", path="a.txt", old_text="two", new_text="2")
    blocks = [await desk.asked(READ, edit)]
    await desk.decide(blocks[0], "no")
    blocks.append(await desk.asked(create("new.txt")))
    await desk.decide(blocks[1], "no")
    shown = await desk.stage.call("drift.commit", blocks=blocks)
    assert [one["path"] for one in shown["files"]] == ["a.txt", "new.txt"]
    assert not (desk.project / "new.txt").exists()
    await desk.stage.call("drift.commit", blocks=blocks, difference=shown["difference"])
    assert (await desk.stage.call("file.save", path="a.txt"))["written"]
    assert (desk.project / "a.txt").read_text() == "one\n2\nthree\nfour\nfive\n"
    assert (desk.project / "new.txt").read_text() == "new\n"


async def test_difference_that_somebody_writes_over_before_the_question_is_not_asked_about(
    open_desk: OpenDesk,
) -> None:
    desk, forged = await open_desk(ASKING), list[asyncio.Task[Any]]()

    def forge(applied: Applied) -> None:
        texts = [one.block for change in applied.changes for one in change.texts]
        if not forged and any(desk.stage.text(one).startswith("---") for one in texts):
            edit = desk.stage.call("block.splice", block_id=texts[0], offset=0, insert="harmless")
            forged.append(asyncio.create_task(edit))

    desk.stage.context.applied.listen(forge)
    edit = call("file_edit", "e", path="a.txt", old_text="two", new_text="2")
    _, result = await asyncio.wait_for(desk.do(READ, edit), PATIENCE)
    assert forged and "Not run: It was changed" in result
    assert (desk.project / "a.txt").read_text() == TEXT


async def test_question_about_an_edit_is_carried_out_after_a_restart(tmp_path: Path) -> None:
    edit = call("file_edit", "e", path="a.txt", old_text="two", new_text="2")
    for decision in ("", "once"):
        kernel, provider = await open_kernel(tmp_path / "project"), Replying([READ], [edit], DONE)
        runner = TurnRunner(kernel, remote(provider, ASKING))
        desk = Desk(Stage(kernel, await kernel.context(), runner), provider)
        if not decision:
            desk.put("a.txt")
            await desk.asked(READ, edit)
        else:
            provider.then(DONE)
            assert "version: 2" in await desk.decide(await desk.waiting())
        await runner.close()
        await kernel.close()
    assert (tmp_path / "project" / "a.txt").read_text() == TEXT.replace("two", "2")


async def test_turn_of_a_guest_has_only_the_files_that_the_guest_has(desk: Desk) -> None:
    principal = await desk.stage.kernel.principal("bo")
    await desk.stage.kernel.members.give_role(principal, AccessRole.EDITOR)
    bo = desk.stage.kernel.open_session(principal, "test")
    calls = (
        READ,
        call("block_read", "b", block_id="file:a.txt"),
        call("file_list", "l"),
        call("file_search", "s", query="one"),
        call("file_create", "c", path="b.txt"),
    )
    for result in await desk.do(*calls, by=bo):
        assert "a message of bo, an editor, and" in result and "one" not in result
    assert not desk.stage.kernel.files.is_known("a.txt")
    assert not (desk.project / "b.txt").exists()
    await desk.stage.call("file.open", path="a.txt")
    edit = call("file_edit", "e", path="a.txt", old_text="two", new_text="2")
    await desk.do(READ, edit, by=bo)
    assert desk.text() == TEXT.replace("two", "2")


# Names that lead elsewhere

ATTACKS: Final = (
    *("../outside.txt", "src/../../outside.txt", "/etc/hostname", "/dev/null", "{outside}"),
    *("out.txt", "out/outside.txt", "up/../../outside.txt", "loop", "hard.txt", "pipe", "tty"),
    *(".env", "./src/../.env", "env.txt", "src/env.txt", "{project}/.env", ".git/config"),
    *(
        "data/journal.db",
        "data/journal.db/../../.env",
        ".antiphon/x",
        ".GIT/x",
        ".gi\u200dt/config",
    ),
    *("a\nb.txt", "a\x1b[2J.txt", "a\ud800.txt", "a\0b.txt", "a\u202e.txt", "x" * 300, "", "src/"),
    *("keys/TOP.PEM", "keys/./top.pem", "keys/cle\u0301.pem", "keys/cl\u00e9.pem"),
)

REFUSALS: Final = (
    *("invalid_params:", "permission_denied:", "patch_failed:", "context_not_found:"),
    "input must be a JSON object",
)


def attacks(number: int, name: str) -> list[ToolCallEvent]:
    edit = {"operations": [{"start_line": 0, "end_line": 0, "content": "x"}]}
    patch = f"--- a/{name}\n+++ b/{name}\n@@ -1 +1,2 @@\n x\n+y\n"
    return [
        call("file_read", f"1-{number}", path=name),
        call("file_create", f"2-{number}", path=name, content="x"),
        call("apply_patch", f"3-{number}", patch=patch),
        call("block_read", f"4-{number}", block_id=f"file:{name}#L1-L2"),
        call("block_edit", f"5-{number}", block_id=f"file:{name}", **edit),
    ]


async def test_no_name_leads_a_model_out_of_the_project_or_to_a_secret(desk: Desk) -> None:
    project, outside = desk.project, desk.project.parent / "outside.txt"
    outside.write_text(SECRET)
    for path in (".env", "keys/top.pem", "keys/cle\u0301.pem", "src/x"):
        desk.put(path, SECRET)
    for path, target in {
        "out.txt": outside, "out": outside.parent, "up": "src", "loop": "loop", "tty": "/dev/tty",
        "env.txt": ".env", "src/env.txt": "../env.txt",
    }.items():  # fmt: skip
        (project / path).symlink_to(str(target))
    (project / "hard.txt").hardlink_to(outside)
    os.mkfifo(project / "pipe")
    (project / ".git").mkdir()
    (project / ".git" / "config").write_text(SECRET)
    before = {one: one.lstat() for one in project.rglob("*") if "data" not in one.parts}
    names = [name.format(outside=outside, project=project) for name in ATTACKS]
    calls = [one for number, name in enumerate(names) for one in attacks(number, name)]
    results = await desk.do(*calls, together=True)
    for attack, result in zip(calls, results, strict=True):
        assert "hunter2" not in result, attack
        assert result.startswith(REFUSALS), (attack, result)
    after = {one: one.lstat() for one in project.rglob("*") if "data" not in one.parts}
    assert {one: found.st_mtime_ns for one, found in after.items()} == {
        one: found.st_mtime_ns for one, found in before.items()
    }
    assert outside.read_text() == SECRET
    assert not [one for one in desk.stage.kernel.files.opened() if one.path.shown != "a.txt"]


async def test_secret_that_a_person_has_opened_is_found_by_no_tool(desk: Desk) -> None:
    desk.put(".env", SECRET)
    opened = await desk.stage.call("file.open", path=".env")
    for path in (".env", "a.txt#L1"):
        await desk.stage.call("block.create", kind="file", path=path)
    await desk.stage.call("context.layout")
    for result in await desk.do(
        call("block_read", "1", block_id=opened["block_id"]),
        call("block_read", "2", block_id=opened["name"]),
        call("block_list", "3", context=opened["label"]),
        call("block_search", "4", block_id=opened["block_id"], query="KEY"),
        call("kernel_search", "5", query="KEY="),
        call("file_search", "6", query="KEY="),
    ):
        assert "hunter2" not in result
    said = str(desk.provider.prompts[-1])
    assert "0\\tone" in said and "hunter2" not in said


@pytest.mark.parametrize(
    ("swapped", "target"),
    [
        ("lib/a.txt", "../../other/a.txt"),
        ("lib/a.txt", "../.env/a.txt"),
        ("lib", "../other"),
        ("lib", ".env"),
    ],
)
async def test_link_that_takes_a_files_place_before_the_answer_is_not_followed(
    open_desk: OpenDesk, swapped: str, target: str
) -> None:
    desk = await open_desk(ASKING)
    desk.put("lib/a.txt")
    others = [desk.put("../other/a.txt", SECRET), desk.put(".env/a.txt", SECRET)]
    edit = call("file_edit", "e", path="lib/a.txt", old_text="two", new_text="2")
    block = await desk.asked(call("file_read", "r", path="lib/a.txt"), edit)
    (desk.project / swapped).rename(desk.project / "before")
    (desk.project / swapped).symlink_to(target)
    result = await desk.decide(block)
    assert result.startswith(REFUSALS), result
    assert [one.read_text() for one in others] == [SECRET, SECRET]


# Commands


async def test_command_of_a_model_finds_its_edits_saved_and_its_own_writes_are_seen(
    desk: Desk,
) -> None:
    edit = call("file_edit", "e", path="a.txt", old_text="two", new_text="2")
    shell = call("shell", "s", command="cat a.txt; sed -i s/five/5/ a.txt")
    results = await desk.do(READ, edit, shell, READ)
    assert results[2] == TEXT.replace("two", "2")
    assert results[3].endswith("0\tone\n1\t2\n2\tthree\n3\tfour\n4\t5\n")


async def test_command_of_a_person_says_which_file_it_could_not_save(desk: Desk) -> None:
    for path in ("a.txt", "b.txt", "c.txt"):
        desk.put(path)
        await desk.stage.call("file.open", path=path)
    await desk.type("a.txt", "two", "two, here")
    await desk.type("b.txt", "two", "2")
    desk.put("a.txt", TEXT.replace("two", "two, there"))
    command = "grep -h two a.txt b.txt; echo new > c.txt"
    ran = await desk.stage.call("shell.run", command=command, wait=True)
    output = desk.stage.text(ran["result_id"])
    assert output.count("\n") == 2
    assert output.startswith("[The file 'a.txt' is not written: it was changed here and on disk")
    assert output.endswith("\ntwo, there\n")
    assert (desk.project / "b.txt").read_text() == TEXT.replace("two", "2")
    assert desk.text("c.txt") == "new\n"
