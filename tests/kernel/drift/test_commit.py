"""Decisions that are committed to files and to git."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.drift import drift_origin
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole
from tests.kernel.drift.repository import LIST, Repository
from tests.kernel.files.editor import Editor
from tests.kernel.kernel.calls import Caller, Make, check_error
from tests.waiting import until

PATCH: Final = (
    "--- a/list.txt\n+++ b/list.txt\n@@ -1,3 +1,3 @@\n milk\n-bread\n+rye bread\n soap\n"
    "--- /dev/null\n+++ b/src/new.txt\n@@ -0,0 +1 @@\n+candles\n"
)
SECOND: Final = "--- a/list.txt\n+++ b/list.txt\n@@ -2,2 +2,3 @@\n rye bread\n soap\n+tea\n"
CHANGED: Final = "milk\nrye bread\nsoap\n"


async def commit(call: Caller | Editor, blocks: list[str], **params: Any) -> dict[str, Any]:
    """Commit blocks as a person does who has looked at the difference."""
    shown = await _call(call, blocks=blocks, **params)
    assert "drift" not in shown
    return await _call(call, blocks=blocks, difference=shown["difference"], **params)


async def _call(call: Caller | Editor, **params: Any) -> dict[str, Any]:
    made = call.call if isinstance(call, Editor) else call
    return await made("drift.commit", **params)


FORMS: Final = {
    "the whole text": (["{patch}"], CHANGED),
    "fenced": (["So be it:\n\n- as said\n  ````diff\n  {indented}  ````\nAgreed.\n"], CHANGED),
    "two blocks about one file": (["{patch}", f"```patch\n{SECOND}```\n"], f"{CHANGED}tea\n"),
    "fenced as something else": (["```text\nno\n```\n```diff\n{patch}```\n"], CHANGED),
}


@pytest.mark.parametrize("form", FORMS)
async def test_diffs_of_blocks_become_edits_once_they_were_shown(
    editor: Editor, repository: Repository, make: Make, form: str
) -> None:
    texts, wanted = FORMS[form]
    indented = PATCH.replace("\n", "\n  ").removesuffix("  ")
    blocks = [await make(one.format(patch=PATCH, indented=indented)) for one in texts]
    shown = await editor.call("drift.commit", blocks=blocks)
    assert [one["path"] for one in shown["files"]] == ["list.txt", "src/new.txt"]
    assert (await editor.open("list.txt")).now().text == LIST
    assert not (editor.project / "src").exists()
    done = await editor.call("drift.commit", blocks=blocks, difference=shown["difference"])
    assert (await editor.open("list.txt")).now().text == wanted
    assert (editor.project / "src" / "new.txt").read_text() == "candles\n"
    assert done["drift"]["state"] == "delivered" and "commit" not in done
    assert [one["diff"] for one in done["files"]] == [one["diff"] for one in shown["files"]]
    assert repository.commits() == 1


PLACES: Final[dict[str, tuple[str, str | None, str]]] = {
    "a file that is not there": ("", None, "one\n\ntwo\n"),
    "the end of a file": ("", "before\n", "before\n\none\n\ntwo\n"),
    "behind a blank line": ("", "before\n\n", "before\n\none\n\ntwo\n"),
    "behind an unfinished line": ("", "before", "before\n\none\n\ntwo"),
    "an empty file": ("", "", "one\n\ntwo\n"),
    "lines": ("#L2-L3", "a\nb\nc\nd\n", "a\none\n\ntwo\nd\n"),
    "one line": ("#L1", "a\nb\n", "one\n\ntwo\nb\n"),
}


async def test_other_texts_go_to_a_path(editor: Editor, make: Make) -> None:
    blocks = [await make("one"), await make("two\n")]
    for number, (place, (lines, before, after)) in enumerate(PLACES.items()):
        name = f"notes-{number}.md"
        if before is not None:
            editor.put(name, before.encode())
        await commit(editor, blocks, path=f"{name}{lines}")
        assert (await editor.open(name)).now().text == after, place


async def test_what_was_committed_stands_in_the_conversation(
    editor: Editor, repository: Repository, make: Make, context: Context
) -> None:
    blocks = [await make(f"````diff\n{PATCH}````\n"), await make("See ```` here")]
    version = context.seq
    done = await commit(editor, blocks, path="notes.md", message="Buy rye bread\n\n# kept")
    header = context.document.header(done["drift"]["block_id"])
    origin = drift_origin(header.metadata)
    assert origin is not None and origin.as_json() == {
        "id": done["drift"]["drift_id"],
        "context": context.id,
        "label": "default",
        "version": version,
        "by": "amy",
        "blocks": blocks,
        "lineage": [],
        "wakes": False,
    }
    assert (header.drift_kind, header.role, header.status) == ("commit", "user", "done")
    text = context.document.text(done["drift"]["block_id"])
    whole = "".join(one["diff"] for one in done["files"])
    assert text == f"`````diff\n{whole}`````\n\nCommit {done['commit']}\n"
    said = repository.git("log", "-1", "--format=%H%n%B")
    assert said.rstrip() == (
        f"{done['commit']}\nBuy rye bread\n\n# kept\n\n"
        f"From antiphon context default, version {version}"
    )
    assert repository.git("show", "--format=", "--name-only", "HEAD").split() == [
        "list.txt",
        "notes.md",
        "src/new.txt",
    ]
    assert repository.status() == []


async def test_git_gets_these_files_only_and_with_all_that_they_hold(
    editor: Editor, repository: Repository, make: Make
) -> None:
    (editor.project / "other.txt").write_text("staged\n")
    repository.git("add", "other.txt")
    (editor.project / "loose.txt").write_text("not known to git\n")
    await editor.insert("list.txt", 0, "typed before\n")
    block = await make("done\n")
    shown = await editor.call("drift.commit", blocks=[block], path="list.txt", message="x")
    # What is committed is shown, and that is more than the block says.
    (file,) = shown["files"]
    assert "+typed before" in file["diff"] and "+done" in file["diff"]
    done = await commit(editor, [block], path="list.txt", message="x")
    assert repository.git("show", "--format=", "--name-only", "HEAD").split() == ["list.txt"]
    assert repository.status() == ["M  other.txt", "?? loose.txt"]
    assert done["commit"] == repository.git("rev-parse", "HEAD").strip()


async def test_first_commit_of_a_repository_that_begins_above_the_project(
    editor: Editor, make: Make, tmp_path: Path
) -> None:
    for arguments in (
        ("init", "-q"),
        ("config", "user.name", "Amy"),
        ("config", "user.email", "amy@example.org"),
    ):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    done = await commit(editor, [await make("-n\n")], path="-n *.md", message="--amend\n\n#1")
    shown = ["git", "show", "--format=%B", "--name-only", "HEAD"]
    said = subprocess.run(shown, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert "commit" in done, done["outcome"]
    assert said.splitlines()[0] == "--amend" and said.splitlines()[-1] == "project/-n *.md"


async def test_difference_that_was_shown_is_made_once(editor: Editor, make: Make) -> None:
    editor.put("list.txt", LIST.encode())
    block, new = await make("done\n"), await make(PATCH.replace("list.txt", "other.txt"))
    editor.put("other.txt", LIST.encode())
    params: dict[str, Any] = {"blocks": [block, new], "path": "list.txt"}
    params["difference"] = (await editor.call("drift.commit", **params))["difference"]
    answers = await asyncio.gather(
        *(editor.call("drift.commit", **params) for _ in range(3)), return_exceptions=True
    )
    assert sum(isinstance(one, dict) for one in answers) == 1, answers
    assert (await editor.open("list.txt")).now().text == f"{LIST}\ndone\n"
    assert (await editor.open("other.txt")).now().text == CHANGED
    assert (editor.project / "src" / "new.txt").read_text() == "candles\n"


async def test_difference_that_was_not_shown_is_not_made(
    editor: Editor, repository: Repository, make: Make, context: Context
) -> None:
    block, new = await make("done\n"), await make(PATCH.replace("list.txt", "other.txt"))
    shown = await editor.call("drift.commit", blocks=[block, new], path="list.txt#L2")
    await editor.insert("list.txt", 0, "above\n")
    before = context.seq
    params = {"blocks": [block, new], "path": "list.txt#L2", "difference": shown["difference"]}
    with pytest.raises(AntiphonError) as caught:
        await editor.call("drift.commit", **params)
    check_error(editor.kernel, "drift.commit", caught.value)
    assert caught.value.code is ErrorCode.STALE_VERSION
    assert "-milk" in caught.value.details["diff"]
    assert (await editor.open("list.txt")).now().text == f"above\n{LIST}"
    assert not (editor.project / "src" / "new.txt").exists()
    assert context.seq == before
    await editor.call("drift.commit", **params | {"difference": caught.value.details["difference"]})
    assert (await editor.open("list.txt")).now().text == "above\ndone\nbread\nsoap\n"


def refuse(repository: Repository) -> None:
    repository.hook("pre-commit", "echo 'tests fail' >&2; exit 1")


def rebase(repository: Repository) -> None:
    (repository.project / ".git" / "rebase-merge").mkdir()


def forget(repository: Repository) -> None:
    (repository.project / ".git").rename(repository.project / "gone")


def ignore(repository: Repository) -> None:
    (repository.project / ".gitignore").write_text(".antiphon/\nsrc/\n")


REFUSALS: Final[dict[str, tuple[Callable[[Repository], None], str]]] = {
    "a hook": (refuse, "git says: tests fail"),
    "a rebase": (rebase, "rebase-merge"),
    "no repository": (forget, "no repository"),
    "an ignored file": (ignore, "ignored"),
}


@pytest.mark.parametrize("why", REFUSALS)
async def test_files_stay_changed_when_git_refuses(
    editor: Editor, repository: Repository, make: Make, context: Context, why: str
) -> None:
    prepare, said = REFUSALS[why]
    prepare(repository)
    block = await make(PATCH)
    staged = None if why == "no repository" else repository.git("ls-files", "--stage")
    done = await commit(editor, [block], message="x")
    assert "commit" not in done and done["drift"]["state"] == "delivered"
    assert done["outcome"].startswith("The files are changed, but there is no commit: ")
    assert said in done["outcome"]
    assert done["outcome"] in context.document.text(done["drift"]["block_id"])
    assert (editor.project / "list.txt").read_text() == CHANGED
    assert (editor.project / "src" / "new.txt").read_text() == "candles\n"
    if staged is not None:
        assert repository.git("ls-files", "--stage") == staged
        assert repository.commits() == 1


async def test_file_that_cannot_be_saved_is_not_committed(
    editor: Editor, repository: Repository, make: Make
) -> None:
    block = await make("done\n")
    await editor.insert("list.txt", 0, "here ")
    (editor.project / "list.txt").write_text(f"there {LIST}")
    done = await commit(editor, [block], path="list.txt", message="x")
    assert "no commit" in done["outcome"] and repository.commits() == 1
    assert "done" in (await editor.open("list.txt")).now().text


async def test_commit_in_a_file_is_undone_like_any_edit(editor: Editor, make: Make) -> None:
    editor.put("list.txt", LIST.encode())
    done = await commit(editor, [await make(PATCH)])
    file = await editor.open("list.txt")
    blame = await editor.call("block.blame", block_id=file.block)
    assert {one["username"] for one in blame["runs"]} == {"disk", "amy"}
    await editor.call("block.undo", context=file.context.id)
    assert file.now().text == LIST
    await editor.call("block.redo", context=file.context.id)
    assert file.now().text == CHANGED
    assert done["files"][0]["version"] < file.now().version


async def test_who_may_commit(
    editor: Editor, repository: Repository, make: Make, kernel: Kernel, bo: Actor, aria: Actor
) -> None:
    block = await make("done\n")
    (editor.project / ".env").write_text("SECRET\n")
    await editor.open("list.txt")  # others may write in it from then on
    kernel.files.is_denied = lambda who, path: who is aria.principal and path == ".env"
    await kernel.members.give_role(kernel.members["bo"], AccessRole.EDITOR)
    params: dict[str, Any] = {"blocks": [block], "path": "list.txt"}
    for actor, more in (
        (bo, {"message": "x"}),  # hooks run on the host
        (bo, {"path": "other.txt"}),  # not open yet
        (bo, {"path": "new.txt"}),
        (aria, {"path": ".env"}),
        (aria, {"message": "x"}),
    ):
        with pytest.raises(AntiphonError) as caught:
            await kernel.call(actor, "drift.commit", params | more)
        assert caught.value.code is ErrorCode.PERMISSION_DENIED, more
        assert "SECRET" not in str(caught.value.as_json())
    await commit(Caller(kernel, bo), [block], path="list.txt")
    assert (await editor.open("list.txt")).now().text == f"{LIST}\ndone\n"


async def test_who_loses_the_right_to_write_meanwhile_is_told_what_was_done(
    editor: Editor, repository: Repository, make: Make, kernel: Kernel, bo: Actor
) -> None:
    await kernel.members.give_role(bo.principal, AccessRole.OWNER)
    repository.hook("pre-commit", "touch ../begun; while [ ! -e ../go ]; do sleep 0.01; done")
    folder, block = editor.project.parent, await make("done\n")
    work = asyncio.create_task(commit(Caller(kernel, bo), [block], path="list.txt", message="x"))
    await until((folder / "begun").exists)
    await kernel.members.give_role(bo.principal, AccessRole.VIEWER)
    (folder / "go").touch()
    with pytest.raises(AntiphonError) as caught:
        await work
    assert caught.value.code is ErrorCode.PERMISSION_DENIED
    commit_id = repository.git("rev-parse", "HEAD").strip()
    assert caught.value.message.startswith(f"Commit {commit_id}, but the conversation does not")
    assert repository.status() == []


FAULTS: Final[dict[str, tuple[list[str], dict[str, Any], ErrorCode]]] = {
    "no path": (["done"], {}, ErrorCode.INVALID_PARAMS),
    "an empty block": (["done", " \n"], {"path": "list.txt"}, ErrorCode.INVALID_PARAMS),
    "a diff without a file": (["```diff\n-a\n+b\n```"], {}, ErrorCode.PATCH_FAILED),
    "a diff of another text": ([PATCH.replace("bread", "brot")], {}, ErrorCode.PATCH_FAILED),
    "lines that are not there": (
        ["done"],
        {"path": "list.txt#L3-L9"},
        ErrorCode.LINE_OUT_OF_RANGE,
    ),
    "the same text": (["milk"], {"path": "list.txt#L1"}, ErrorCode.INVALID_PARAMS),
    "a path that leads out": (["done"], {"path": "../list.txt"}, ErrorCode.INVALID_PARAMS),
    "a diff that leads out": (
        [PATCH.replace("src/new.txt", "../new.txt")],
        {},
        ErrorCode.INVALID_PARAMS,
    ),
    "a file of git": (["done"], {"path": ".git/hooks/pre-commit"}, ErrorCode.INVALID_PARAMS),
    "too much": (["x" * 1_000_001], {"path": "list.txt"}, ErrorCode.TOO_LARGE),
    "a message of blanks": (
        ["done"],
        {"path": "list.txt", "message": " \n"},
        ErrorCode.INVALID_PARAMS,
    ),
    "a NUL in the message": (
        ["done"],
        {"path": "list.txt", "message": "a\0"},
        ErrorCode.INVALID_PARAMS,
    ),
}


async def test_what_cannot_be_committed_is_stated_and_changes_nothing(
    editor: Editor, repository: Repository, call: Caller, make: Make
) -> None:
    for fault, (texts, params, code) in FAULTS.items():
        blocks = [await make(one) for one in texts]
        error = await call.refused("drift.commit", blocks=blocks, **params)
        assert error.code is code, (fault, error.message)
    assert repository.status() == []


async def test_blocks_of_files_are_not_committed(
    editor: Editor, repository: Repository, call: Caller, make: Make
) -> None:
    file = await editor.open("list.txt")
    error = await call.refused("drift.commit", blocks=[file.block], path="other.txt")
    assert error.code is ErrorCode.INVALID_PARAMS
    block = await make("done")
    error = await call.refused("drift.commit", blocks=[block, file.block], path="other.txt")
    assert error.code is ErrorCode.BLOCK_NOT_FOUND
