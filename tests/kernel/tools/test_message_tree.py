"""The conversation as a tree: what is reused, what is new, where it goes, and who may write it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.conversation import MessagePath, tree
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.enums import PrincipalKind, Status
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole
from tests.errors import raises
from tests.kernel.kernel.calls import Make, OpenKernel
from tests.kernel.tools.files import PNG, sent

MANY = 600
"""Messages of a long conversation."""

Json = dict[str, Any]


class Conversation:
    """Calls of the message tools, and what they leave behind."""

    def __init__(self, kernel: Kernel, actor: Actor) -> None:
        self.kernel = kernel
        self.actor = actor

    async def call(self, tool: str, **params: Any) -> Json:
        return await self.kernel.call(self.actor, f"message.{tool}", params)

    async def append(self, parent: str | None, *messages: Json) -> Json:
        where = {"parent": parent} if parent is not None else {}
        return await self.call("append", messages=list(messages), **where)

    async def path(self, message: str) -> list[Json]:
        found = (await self.call("path", message=message))["messages"]
        return [one["message"] for one in found]

    async def texts(self, **where: str) -> list[str]:
        found = (await self.call("path", **where))["messages"]
        return [said(one["message"]) for one in found]

    async def store(self, data: bytes) -> None:
        """Attach a file to a message in a context of its own."""
        label = f"files-{len(self.kernel.contexts.rows())}"
        await self.kernel.call(self.actor, "context.create", {"label": label})
        draft = {"context": label, "role": "user", "kind": "text"}
        message = (await self.kernel.call(self.actor, "block.create", draft))["block_id"]
        file = sent("file", data)
        await self.kernel.call(self.actor, "block.attach", {"block_id": message, "files": [file]})

    async def branches(self) -> dict[str, list[str]]:
        """The texts of every context, by label."""
        rows = self.kernel.contexts.rows()
        return {row.label: await self.texts(context=row.label) for row in rows}


def said(message: Json) -> str:
    return "".join(one.get("text", "") for one in message["content"])


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def answer(text: str) -> Json:
    return {"role": "assistant", "content": text}


def use(call_id: str = "c1", **parameters: Any) -> Json:
    block = {"type": "tool-use", "id": call_id, "name": "calc", "parameters": parameters}
    return {"role": "assistant", "content": [block]}


def result(call_id: str = "c1", text: str = "5") -> Json:
    return {"role": "tool", "content": text, "tool_call_id": call_id}


@pytest.fixture
def talk(kernel: Kernel, amy: Actor) -> Conversation:
    return Conversation(kernel, amy)


# The rows of the worked cases


async def test_message_edited_to_a_text_that_is_there_is_that_message(talk: Conversation) -> None:
    first = await talk.append(None, user("hello"), answer("hi"))
    edited = await talk.call("edit", message="default.amy.1", content="hello")
    assert (edited["message_id"][-1], edited["forked"]) == ("1", False)
    assert edited["context_version"] == first["context_version"]
    other = await talk.append(None, user("x"), answer("y"))
    found = await talk.call("edit", message="default.amy.1", content="x")
    assert (found["label"], found["created"]) == (other["label"], []), "what a sibling says"


async def test_delete_with_cascade_removes_what_descends(talk: Conversation) -> None:
    await talk.append(None, user("a"), answer("b"), user("c"), answer("d"))
    await talk.append(None, user("a"), answer("b"), user("e"))
    deleted = await talk.call("delete", messages=["default.amy.3"], descendants="cascade")
    assert len(deleted["deleted"]) == 2
    branches = await talk.branches()
    assert branches == {"default": ["a", "b"], "default-branch": ["a", "b", "e"]}
    await talk.call("delete", messages=["default.amy.2"], descendants="cascade")
    assert await talk.branches() == {"default": ["a"], "default-branch": ["a"]}


async def test_delete_with_reparent_moves_what_descends_up_and_keeps_its_place(
    talk: Conversation,
) -> None:
    await talk.append(None, user("a"), answer("b"), user("c"))
    await talk.append(None, user("a"), answer("b"), user("d"))
    await talk.append(None, user("a"), answer("x"))
    await talk.call("delete", messages=["default.amy.2"], descendants="reparent")
    assert await talk.branches() == {
        "default": ["a", "c"],
        "default-branch": ["a", "d"],
        "default-branch-2": ["a", "x"],
    }
    children = (await talk.call("children", message="default.amy.1"))["messages"]
    assert [said(one["message"]) for one in children] == ["c", "d", "x"]


# More of the rules


EVERYTHING: Sequence[Json] = (
    user("  kept to the character  "),
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "text": "hm", "signature": "s1"},
            {"type": "text", "text": "let me see"},
            {"type": "tool-use", "id": "c1", "name": "calc", "parameters": {"x": [1, {"y": None}]}},
            {
                "type": "tool-use",
                "id": "c2",
                "name": "calc",
                "parameters": {},
                "signature": "s2",
            },
        ],
    },
    {"role": "tool", "content": [{"type": "text", "text": "5"}], "tool_call_id": "c1"},
    {
        "role": "tool",
        "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
        "tool_call_id": "c2",
        "is_error": True,
    },
    {
        "role": "user",
        "content": [
            {"type": "image", "media_type": "image/png", "hash": sha256(PNG).hexdigest()},
            {"type": "text", "text": "and this?"},
            {"type": "unknown", "raw": {"type": "video", "deep": [1, 2]}},
        ],
    },
)


async def test_messages_of_every_kind_come_back_as_they_went_in_also_from_a_fork(
    talk: Conversation, open_kernel: Any
) -> None:
    await talk.store(PNG)
    expected = [
        {"role": "user", "content": [{"type": "text", "text": "  kept to the character  "}]},
        *EVERYTHING[1:],
    ]
    placed = await talk.append(None, *EVERYTHING)
    assert await talk.path(placed["message_id"]) == expected
    await talk.append(placed["message_id"], answer("first"))
    branch = await talk.append(placed["message_id"], answer("second"))
    assert branch["forked"]
    assert (await talk.path(branch["message_id"]))[:-1] == expected
    await talk.kernel.close()
    again = await open_kernel()
    after = Conversation(again, again.open_session(again.owner, "test"))
    assert (await after.path(branch["message_id"]))[:-1] == expected
    assert (await after.append(None, *EVERYTHING, answer("second")))["created"] == []


async def test_append_behind_a_block_that_is_being_written_forks(
    talk: Conversation, make: Make
) -> None:
    first = await talk.append(None, user("a"))
    await make("still wri", role="model", parent_id=first["message_id"])
    more = await talk.append(first["message_id"], answer("b"))
    assert more["forked"]
    assert await talk.texts(context=more["label"]) == ["a", "b"]


async def test_branch_has_no_result_of_a_call_that_is_still_open_and_hidden(
    talk: Conversation,
) -> None:
    await talk.append(None, user("a"), use(), result(), answer("b"), user("c"))
    context = await talk.kernel.context()
    call = context.document.block_ids()[1]

    def reopen() -> None:
        context.document.set_fields(call, status=Status.PENDING, excluded=True)

    await context.write(talk.kernel.system, "status", reopen, blocks=[call], undo=None).saved()
    await talk.append("default.amy.4", user("d"))
    branch = (await talk.kernel.context("default-branch")).document
    assert [branch.header(one).kind for one in branch.block_ids()] == ["text"] * 3


async def test_append_of_a_result_without_its_call_changes_nothing(talk: Conversation) -> None:
    await talk.append(None, user("a"), use("c1"), result("c1"))
    context = await talk.kernel.context()
    before = context.seq
    for parent, messages, index in (
        ("default.amy.1", [result("c9")], 0),
        ("default.amy.3", [user("b"), result("c1")], 1),
        ("default.amy.3", [use("c1")], 0),
        ("default.amy.1", [result("c1")], 0),
    ):
        with raises(ErrorCode.INVALID_PARAMS) as caught:
            await talk.append(parent, *messages)
        assert caught.value.details["index"] == index
    assert (context.seq, len(talk.kernel.contexts.rows())) == (before, 1)


BAD_CALLS: list[tuple[str, Json, ErrorCode | None]] = [
    ("append", {"messages": [user("   ")]}, ErrorCode.INVALID_PARAMS),
    ("append", {"messages": [use("x" * 9_000)]}, ErrorCode.TOO_LARGE),
    ("append", {"parent": "default.amy.4", "messages": []}, ErrorCode.INVALID_PARAMS),
    ("append", {"parent": "default.amy.1", "context": "default", "messages": []}, None),
    ("edit", {"message": "default.amy.2", "content": []}, ErrorCode.INVALID_PARAMS),
    ("edit", {"message": "default.amy.3", "content": ""}, ErrorCode.INVALID_PARAMS),
    ("split", {"message": "default.amy.1", "at": 99}, ErrorCode.INVALID_PARAMS),
    ("split", {"message": "default.amy.2", "at": 1}, ErrorCode.INVALID_PARAMS),
    ("split", {"message": "default.amy.1", "at": 3}, ErrorCode.INVALID_PARAMS),
    ("search", {"text": "x" * 1_001}, ErrorCode.TOO_LARGE),
    (
        "delete",
        {"messages": ["default.amy.3"], "descendants": "reparent"},
        ErrorCode.INVALID_PARAMS,
    ),
    (
        "delete",
        {"messages": ["default.amy.3"], "descendants": "cascade"},
        ErrorCode.INVALID_PARAMS,
    ),
]


async def test_bad_input_is_answered_with_a_code_and_changes_nothing(
    talk: Conversation, make: Make
) -> None:
    await talk.append(None, user("👩‍👩‍👧 a"), use("c1"), result("c1"))
    await make("a draft")
    before = (await talk.branches(), (await talk.kernel.context()).seq)
    for tool, params, code in BAD_CALLS:
        with raises(code or ErrorCode.INVALID_PARAMS):
            await talk.call(tool, **params)
        assert (await talk.branches(), (await talk.kernel.context()).seq) == before


async def test_append_of_a_models_message_by_an_editor_is_refused(
    talk: Conversation, bo: Actor
) -> None:
    editor = Conversation(talk.kernel, bo)
    placed = await editor.append(None, user("a"))
    for message in (answer("b"), use()):
        with raises(ErrorCode.PERMISSION_DENIED):
            await editor.append(placed["message_id"], message)
    assert await talk.texts(context="default") == ["a"]
    await editor.append(placed["message_id"], user("b"))


async def test_edit_in_place_that_would_part_a_call_from_its_result_is_refused(
    talk: Conversation,
) -> None:
    await talk.append(None, user("a"), use("c1"), result("c1"))
    with raises(ErrorCode.INVALID_PARAMS):
        await talk.call("edit", message="default.amy.2", content="no call", in_place=True)
    edited = await talk.call("edit", message="default.amy.2", content="no call")
    assert await talk.texts(context=edited["label"]) == ["a", "no call"]


async def test_edit_changes_the_number_of_content_blocks(talk: Conversation) -> None:
    placed = await talk.append(None, user("a"), answer("b"))
    content = [{"type": "text", "text": "first"}, {"type": "text", "text": "second"}]
    for wanted in (content, content[:1], [*content, use("c7")["content"][0]], content):
        await talk.call("edit", message=placed["message_id"], content=wanted)
        assert (await talk.path(placed["message_id"]))[-1]["content"] == wanted


async def test_edit_of_a_text_shares_whole_characters_at_both_ends(
    talk: Conversation, bo: Actor
) -> None:
    before, after = "👩‍👩‍👧 e\u0301x", "👩‍👩‍👦 e\u0300x"
    await talk.append(None, user(before), answer("yes"))
    params = {"message": "default.amy.1", "content": after}
    edited = await talk.kernel.call(bo, "message.edit", params)
    blame = await talk.kernel.call(bo, "block.blame", {"block_id": edited["message_id"]})
    runs = [(after[run["start"] : run["end"]], run["username"]) for run in blame["runs"]]
    assert runs == [("👩‍👩‍👦 e\u0300", "bo"), ("x", "amy")]
    assert await talk.texts(context="default") == [before, "yes"]


async def test_split_makes_two_messages_of_one_text_each_of_which_ended_alike_and_is_not_signed(
    talk: Conversation,
) -> None:
    await talk.append(None, user("one two 👩‍👩‍👧"), answer("yes"))
    placed = await talk.call("split", message="default.amy.1", at=4)
    assert await talk.texts(context="default") == ["one ", "two 👩‍👩‍👧", "yes"]
    with raises(ErrorCode.INVALID_PARAMS) as caught:
        await talk.call("split", message=placed["message_id"], at=6)
    assert "name 4 or 9" in caught.value.message
    signed = (await talk.append(placed["message_id"], thinking("a b", signature="s1")))[
        "message_id"
    ]
    halves = await talk.call("split", message=signed, at=2)
    assert (await talk.path(halves["message_id"]))[-2:] == [thinking("a "), thinking("b")]
    context = await talk.kernel.context("default")
    block = placed["message_id"]
    ended = {"status": Status.ERROR, "stop_reason": "interrupted", "stopped_by": "amy"}
    stop = partial(context.document.set_fields, block, **ended)
    await context.write(talk.actor, "status", stop, blocks=[block], undo=None).saved()
    placed = await talk.call("split", message=block, at=4)
    parts = [context.document.header(one) for one in (block, placed["message_id"])]
    assert [(one.status, one.stop_reason, one.stopped_by) for one in parts] == [
        (Status.ERROR, "interrupted", "amy")
    ] * 2


async def test_split_is_undone_by_its_name_alone_and_what_came_later_stays(
    talk: Conversation,
) -> None:
    await talk.append(None, user("one two"))
    placed = await talk.call("split", message="default.amy.1", at=4)
    block = {"block_id": "default.amy.1"}
    other = await talk.kernel.call(talk.actor, "block.undo", {**block, "preview": True})
    assert other["restored"]["words"] == 0
    await talk.kernel.call(talk.actor, "block.splice", {**block, "offset": 0, "insert": "zero "})
    split = {**block, "edit": placed["context_version"]}
    await talk.kernel.call(talk.actor, "block.undo", split)
    assert await talk.texts(context="default") == ["zero one two", "two"]
    await talk.kernel.call(talk.actor, "block.redo", split)
    assert await talk.texts(context="default") == ["zero one ", "two"]


async def test_content_block_in_the_metadata_of_a_text_is_not_read_as_its_message(
    talk: Conversation, make: Make
) -> None:
    called = await talk.append(None, user("a"), use("c1"))
    for stated in (
        {"type": "tool-use", "id": "c9", "name": "calc", "parameters": {}},
        {"type": "thinking", "text": "hm", "signature": "s1"},
        {"type": "text", "text": "not what people see"},
    ):
        params = {"status": "done", "metadata": {"content_block": stated, "more": True}}
        for kind in ("tool_result", "file"):
            parent = {"parent_id": called["message_id"]} if kind == "tool_result" else {}
            block = await make("seen", kind=kind, **params, **parent)
            found = (await talk.call("path"))["messages"]
            (last,) = [one for one in found if block in (one["message_id"], *one["blocks"])]
            assert last["message"]["content"][-1] == {"type": "text", "text": "seen"}, kind


def thinking(text: str, **signature: str) -> Json:
    return {"role": "assistant", "content": [{"type": "thinking", "text": text, **signature}]}


async def test_edit_of_a_file_keeps_its_block_and_one_to_an_image_its_text(
    talk: Conversation, make: Make
) -> None:
    await talk.store(PNG)
    block = await make("one", kind="file", status="done")
    edited = await talk.call("edit", message=block, content="one two")
    assert (edited["message_id"], await talk.texts(context="default")) == (block, ["one two"])
    image = [{"type": "image", "media_type": "image/png", "hash": sha256(PNG).hexdigest()}]
    await talk.call("edit", message=block, content=image)
    read = await talk.kernel.call(talk.actor, "block.get", {"block_id": block})
    assert read["value"] == "one two"
    assert [one["message"]["content"] for one in (await talk.call("path"))["messages"]] == [image]


async def test_append_of_more_content_blocks_than_allowed_is_refused_and_of_known_ones_is_not(
    talk: Conversation,
) -> None:
    limit = 50
    update = {"content_blocks_per_append": limit}
    talk.kernel.limits = talk.kernel.limits.model_copy(update=update)
    texts = [{"type": "text", "text": str(number)} for number in range(limit)]
    full: Json = {"role": "user", "content": texts}
    first = await talk.append(None, full)
    assert (await talk.append(None, full, answer("yes")))["reused"] == 1
    for more in ([full, answer("no")], [{**full, "content": [*texts, texts[0]]}]):
        with raises(ErrorCode.TOO_LARGE):
            await talk.append(first["message_id"], *more)
    with raises(ErrorCode.TOO_LARGE):
        await talk.call("edit", message=first["message_id"], content=[*texts, texts[0]])
    assert len((await talk.call("path"))["messages"]) == 2


@pytest.mark.sqlite
async def test_delete_in_a_context_that_cannot_be_read_is_an_error_and_nothing_is_deleted(
    talk: Conversation, open_kernel: OpenKernel, data: Path
) -> None:
    await talk.append(None, user("a"))
    await talk.kernel.call(talk.actor, "context.create", {"label": "broken"})
    await talk.call("append", context="broken", messages=[user("b")])
    await talk.kernel.close()
    with sqlite3.connect(data / "journal.db") as database:
        damage = "UPDATE ops SET changes = x'ff' || changes WHERE context = 2 AND seq = 2"
        assert database.execute(damage).rowcount == 1
    kernel = await open_kernel()
    again = Conversation(kernel, kernel.open_session(kernel.owner, "test"))
    names = ["default.amy.1", "broken.amy.1"]
    with raises(ErrorCode.STORAGE_FAILED):
        await again.call("delete", messages=names, descendants="reparent")
    assert await again.texts(context="default") == ["a"]


async def test_branches_names_each_message_with_siblings_and_where_they_are(
    talk: Conversation,
) -> None:
    first = await talk.append(None, user("q"), answer("one"), user("more"))
    other = await talk.append(None, user("q"), answer("two"))
    alone = await talk.call("branches", context=first["label"])
    (forking,) = alone["messages"]
    assert forking["blocks"] == [first["created"][1]]
    assert forking["position"] == 0
    assert [one["message_id"] for one in forking["siblings"]] == [
        first["created"][1],
        other["created"][-1],
    ]
    there = await talk.call("branches", context=other["label"])
    assert [one["position"] for one in there["messages"]] == [1]
    assert there["messages"][0]["siblings"] == forking["siblings"]


# Attached files


def image(data: bytes = PNG) -> Json:
    return {"type": "image", "media_type": "image/png", "hash": sha256(data).hexdigest()}


async def test_file_of_a_message_is_part_of_it_from_when_it_is_sent(talk: Conversation) -> None:
    call = talk.kernel.call
    draft = (await call(talk.actor, "block.create", {"role": "user", "kind": "text"}))["block_id"]
    await call(talk.actor, "block.splice", {"block_id": draft, "offset": 0, "insert": "look"})
    files = {"block_id": draft, "files": [sent("a.png", PNG), sent("n.txt", b"note")]}
    await call(talk.actor, "block.attach", files)
    assert (await talk.call("path"))["messages"] == []
    await call(talk.actor, "block.status", {"block_id": draft, "status": "done"})
    note = {"type": "document", "media_type": "text/plain", "hash": sha256(b"note").hexdigest()}
    content = [{"type": "text", "text": "look"}, image(), note]
    assert await talk.path(draft) == [{"role": "user", "content": content}]
    later = {"block_id": draft, "files": [sent("b.png", PNG + b"2")]}
    await call(talk.actor, "block.attach", later)
    assert image(PNG + b"2") in (await talk.path(draft))[0]["content"]


async def test_edit_of_the_text_of_a_message_leaves_its_files(talk: Conversation) -> None:
    await talk.store(PNG)
    content = [image(), {"type": "text", "text": "this?"}, {**image()}]
    placed = await talk.append(None, {"role": "user", "content": content}, answer("yes"))
    first = (await talk.call("path"))["messages"][0]["message_id"]
    edited = await talk.call("edit", message=first, content="that?")
    assert (edited["forked"], placed["forked"]) == (True, False)
    (message,) = await talk.path(edited["message_id"])
    assert message["content"] == [image(), {"type": "text", "text": "that?"}, image()]


async def test_append_of_an_image_that_nobody_has_attached_is_refused(talk: Conversation) -> None:
    with raises(ErrorCode.INVALID_PARAMS):
        await talk.append(None, {"role": "user", "content": [image()]})
    await talk.store(PNG)
    wrong = {**image(), "media_type": "image/jpeg"}
    with raises(ErrorCode.INVALID_PARAMS):
        await talk.append(None, {"role": "user", "content": [wrong]})


async def test_block_that_names_the_message_of_another_is_a_message_of_its_own(
    talk: Conversation,
) -> None:
    content = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    placed = await talk.append(None, {"role": "user", "content": content})
    group = placed["message_id"].partition(".")[2]
    bob = talk.kernel.open_session(await talk.kernel.principal("bob"), "test")
    said = {"role": "user", "kind": "text", "status": "done", "metadata": {"message": group}}
    await talk.kernel.call(bob, "block.create", {**said, "content": "and I"})
    aria = await talk.kernel.principal("aria", PrincipalKind.MODEL)
    model = {**said, "role": "model", "content": "so I", "parent_id": placed["message_id"]}
    await talk.kernel.call(talk.kernel.open_session(aria, "test"), "block.create", model)
    assert await talk.texts(context="default") == ["onetwo", "and I", "so I"]


async def test_edit_of_the_message_of_another_keeps_it_one_message(talk: Conversation) -> None:
    await talk.store(PNG)
    bob = talk.kernel.open_session(await talk.kernel.principal("bob"), "test")
    await Conversation(talk.kernel, bob).append(None, user("bobs"))
    content = [{"type": "text", "text": "bobs"}, image()]
    (bobs,) = (await talk.call("path"))["messages"]
    edited = await talk.call("edit", message=bobs["message_id"], content=content)
    assert await talk.path(edited["message_id"]) == [{"role": "user", "content": content}]


# Pages


async def pages(talk: Conversation, tool: str, **params: Any) -> list[list[Json]]:
    """Every page of an answer."""
    found = [await talk.call(tool, **params)]
    while found[-1]["truncated"]:
        found.append(await talk.call(tool, **params, after_message=found[-1]["next"]))
    return [one["messages"] for one in found]


@pytest.fixture
async def long(talk: Conversation) -> Conversation:
    """A conversation of many messages."""
    messages = [{"role": ("user", "assistant")[at % 2], "content": f"{at}"} for at in range(MANY)]
    await talk.call("import", text=json.dumps(messages), label="long")
    return talk


async def test_path_of_many_messages_is_read_page_by_page(long: Conversation) -> None:
    found = await pages(long, "path", context="long", limit=MANY // 10)
    assert [len(page) for page in found] == [MANY // 10] * 10
    assert [said(one["message"]) for page in found for one in page] == [
        str(number) for number in range(MANY)
    ]
    assert len((await long.call("path", context="long"))["messages"]) == 100
    some = await pages(long, "search", context="long", text="59", limit=10)
    assert [said(one["message"]) for page in some for one in page] == [
        str(number) for number in range(MANY) if "59" in str(number)
    ]


async def test_tree_of_many_messages_is_read_with_pauses(
    long: Conversation, open_kernel: OpenKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    await long.kernel.close()
    kernel = await open_kernel()
    most, read, pauses = 0, 0, 0
    before = MessagePath.refresh

    def refresh(path: MessagePath, limit: int | None = None) -> int:
        nonlocal read, most
        first = before(path, limit)
        read += len(path.messages) - first
        most = max(most, read)
        return first

    class Slices:
        async def pause(self) -> None:
            nonlocal read, pauses
            read, pauses = 0, pauses + 1

    monkeypatch.setattr(MessagePath, "refresh", refresh)
    monkeypatch.setattr(tree, "TimeSlice", Slices)
    talk = Conversation(kernel, kernel.open_session(kernel.owner, "test"))
    placed = await talk.call("append", context="long", messages=[user("0"), answer("other")])
    assert (placed["reused"], placed["forked"]) == (1, True)
    assert most <= 200 and pauses >= MANY // 100 - 1  # the last ones, and then the fork


async def test_page_of_long_messages_is_as_long_as_an_answer_may_be(talk: Conversation) -> None:
    half = talk.kernel.limits.page_code_points // 2
    texts = ["a" * half, "b" * (3 * half), "c", "d" * (half // 2), "e" * (2 * half)]
    await talk.append(None, *map(user, texts))
    found = await pages(talk, "path", context="default")
    lengths = [[len(said(one["message"])) for one in page] for page in found]
    assert lengths == [[half], [3 * half], [1, half // 2], [2 * half]]


async def test_page_goes_on_though_its_last_message_is_gone(talk: Conversation) -> None:
    await talk.append(None, *(user(f"{at}") for at in range(4)))
    first = await talk.call("path", context="default", limit=2)
    await talk.call("delete", messages=[first["next"]], descendants="reparent")
    rest = await talk.call("path", context="default", after_message=first["next"])
    assert [said(one["message"]) for one in rest["messages"]] == ["2", "3"]
    searched = await talk.call("search", text="3", after_message=first["next"])
    assert [said(one["message"]) for one in searched["messages"]] == ["3"]
    await talk.kernel.call(talk.actor, "context.create", {"label": "other"})
    await talk.call("append", context="other", messages=[user("r")])
    elsewhere = {"context": "default", "after_message": "other.amy.1"}
    for tool, params in (("path", elsewhere), ("search", {**elsewhere, "text": "3"})):
        with raises(ErrorCode.INVALID_PARAMS):
            await talk.call(tool, **params)


async def test_children_and_siblings_are_read_page_by_page(talk: Conversation) -> None:
    placed = await talk.append(None, user("q"))
    for number in range(5):
        await talk.append(placed["message_id"], answer(f"{number}"))
    for tool, message in (("children", placed["message_id"]), ("siblings", "default.amy.2")):
        found = await pages(talk, tool, message=message, limit=2)
        assert [len(page) for page in found] == [2, 2, 1]
        assert [said(one["message"]) for page in found for one in page] == list("01234")
    last = await talk.call(
        "siblings", message="default.amy.2", limit=1, after_message="default.amy.2"
    )
    assert (last["position"], last["count"]) == (0, 5)


async def test_search_of_branches_is_read_page_by_page(talk: Conversation) -> None:
    for number in range(4):
        await talk.append(None, user("find"), answer(f"find {number}"), user(f"find {number}"))
    found = await pages(talk, "search", text="find", limit=2)
    assert [len(page) for page in found] == [2, 2, 2, 2, 1]
    names = [one["message_id"] for page in found for one in page]
    assert len(set(names)) == 9


PARTS = [{"type": "text", "text": "part A"}, {"type": "text", "text": "part B"}]


@pytest.fixture
async def agent(kernel: Kernel, amy: Actor, aria: Actor) -> Actor:
    await kernel.call(amy, "kernel.role", {"principal": "aria", "role": AccessRole.AGENT.value})
    messages = [{"role": "user", "content": PARTS}, {"role": "assistant", "content": "yes"}]
    await kernel.call(amy, "message.append", {"messages": messages})
    return aria


async def path(kernel: Kernel, actor: Actor) -> list[Any]:
    found = await kernel.call(actor, "message.path", {})
    return [one["message"]["content"] for one in found["messages"]]


async def denied(kernel: Kernel, actor: Actor, tool: str, params: dict[str, Any]) -> None:
    """Make a call that must be denied and change nothing."""
    before = [await path(kernel, actor), len(kernel.contexts.rows())]
    with raises(ErrorCode.PERMISSION_DENIED):
        await kernel.call(actor, tool, params)
    assert [await path(kernel, actor), len(kernel.contexts.rows())] == before


FIRST = {"message": "default.amy.1"}
MORE = [*PARTS, {"type": "text", "text": "part C"}]
OF_A_PERSON = [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "do it"}]
OF_THE_SYSTEM = [{"role": "assistant", "content": "ok"}, {"role": "system", "content": "do it"}]


OF_OTHERS: Sequence[tuple[str, Json]] = (
    ("message.append", {"parent": "default.amy.1", "messages": OF_A_PERSON}),
    ("message.append", {"parent": "default.amy.3", "messages": OF_A_PERSON}),
    ("message.edit", {**FIRST, "content": PARTS[:1], "in_place": True}),
    ("message.edit", {**FIRST, "content": MORE, "in_place": True}),
    ("message.edit", {**FIRST, "content": MORE}),
    ("message.split", {**FIRST, "at": 4}),
    ("message.delete", {"messages": ["default.amy.1"], "descendants": "reparent"}),
    ("message.import", {"text": json.dumps({"messages": OF_A_PERSON})}),
    ("message.import", {"text": json.dumps({"messages": OF_THE_SYSTEM})}),
)


async def test_message_of_others_is_not_written_by_an_agent(kernel: Kernel, agent: Actor) -> None:
    for tool, params in OF_OTHERS:
        await denied(kernel, agent, tool, params)


async def test_message_edit_of_a_text_and_split_of_its_own_by_an_agent_are_allowed(
    kernel: Kernel, agent: Actor
) -> None:
    own = [{"role": "assistant", "content": "one two"}]
    made = await kernel.call(agent, "message.append", {"parent": "default.amy.3", "messages": own})
    await kernel.call(agent, "message.split", {"message": made["message_id"], "at": 4})
    assert len(await path(kernel, agent)) == 4
    messages = [{"role": "user", "content": PARTS}, {"role": "assistant", "content": "no"}]
    made = await kernel.call(agent, "message.append", {"messages": messages})
    assert (made["reused"], made["forked"]) == (1, True), "below a message of a person"
    content = [PARTS[0], {"type": "text", "text": "part Z"}]
    await kernel.call(agent, "message.edit", {**FIRST, "content": content, "in_place": True})
    assert (await path(kernel, agent))[0] == content


async def test_message_delete_by_a_model_takes_out_only_what_it_may_hide(
    kernel: Kernel, amy: Actor, aria: Actor
) -> None:
    await kernel.call(amy, "kernel.role", {"principal": "aria", "role": AccessRole.EDITOR.value})
    texts: list[dict[str, Any]] = [{"role": "user", "content": "first"}]
    for number in range(6):
        call = {"type": "tool-use", "id": f"c{number}", "name": "look", "parameters": {}}
        texts.append({"role": "assistant", "content": [call]})
        texts.append({"role": "tool", "tool_call_id": f"c{number}", "content": "seen"})
    await kernel.call(amy, "message.append", {"messages": texts})
    found = (await kernel.call(aria, "message.path", {}))["messages"]
    early, late = found[1]["message_id"], found[-2]["message_id"]
    for names in ([early], [late, early], [found[0]["message_id"]]):
        how = {"messages": names, "descendants": "reparent"}
        await denied(kernel, aria, "message.delete", how)
    deleted = {"messages": [late], "descendants": "reparent"}
    assert len((await kernel.call(aria, "message.delete", deleted))["deleted"]) == 2
    deleted = {"messages": [early], "descendants": "reparent"}
    assert len((await kernel.call(amy, "message.delete", deleted))["deleted"]) == 2
