"""Conversations of other tools: imported, shown, continued and exported with nothing lost."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.messages import Message, MessageShape, SystemMessage, read_conversations
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.errors import raises
from tests.kernel.kernel.calls import OpenKernel
from tests.kernel.messages.generated import EXAMPLES
from tests.kernel.messages.test_foreign_writing import chained, conversations, written
from tests.kernel.tools.files import PDF, PNG
from tests.kernel.tools.test_message_tree import Conversation, answer, said


def is_spoken(said: Sequence[Message | SystemMessage]) -> bool:
    """Whether somebody else than the system says something."""
    return any(not isinstance(one, SystemMessage) for one in said)


OPENAI = {
    "model": "gpt-x",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "What is 2 + 2?"}], "name": "amy"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "calc", "arguments": '{"x": 2}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "4"},
        {"role": "assistant", "content": "It is 4.", "refusal": None},
        {"role": "system", "content": "And polite."},
    ],
}


def node(name: str, parent: str, children: list[str], role: str, text: str) -> dict[str, Any]:
    return {
        "id": name,
        "root_id": "r",
        "parent_id": parent,
        "child_ids": children,
        "message": {"role": role, "content": text},
        "metadata": {"tags": [name]},
    }


@pytest.fixture
def talk(kernel: Kernel, amy: Actor) -> Conversation:
    return Conversation(kernel, amy)


async def headers(talk: Conversation, label: str) -> list[dict[str, Any]]:
    exported = await talk.kernel.call(talk.actor, "context.export", {"context": label})
    lines = [json.loads(line) for line in exported["text"].splitlines()]
    return [line for line in lines if line["type"] == "block"]


async def test_imported_conversation_is_shown_continued_and_exported(talk: Conversation) -> None:
    made = await talk.call("import", text=json.dumps(OPENAI), label="sums")
    (conversation,) = made["conversations"]
    assert (conversation["label"], conversation["branches"]) == ("sums", 1)
    assert (await talk.texts(context="sums"))[0] == "What is 2 + 2?"
    assert (await talk.texts(context="sums"))[-1] == "It is 4."
    last = (await talk.call("path", context="sums"))["messages"][-1]["message_id"]
    more = await talk.append(last, {"role": "user", "content": "Thanks."})
    assert (more["label"], more["forked"]) == ("sums", False)
    blocks = await headers(talk, "sums")
    assert ("system", "Be brief.") in [(one["header"]["role"], one["text"]) for one in blocks]
    text = json.dumps(blocks)
    assert all(word in text for word in ("gpt-x", "And polite.", "amy"))


def url(data: bytes, kind: str) -> str:
    return f"data:{kind};base64,{b64encode(data).decode()}"


def image_part(data: bytes = PNG) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url(data, "image/png")}}


REMOTE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
WITH_FILES = [
    {
        "role": "user",
        "content": [
            image_part(),
            {"type": "text", "text": "What is it?"},
            {
                "type": "file",
                "file": {"filename": "menu.pdf", "file_data": url(PDF, "application/pdf")},
            },
            REMOTE,
        ],
    },
    {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "draw"}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": [image_part(PNG + b"2")]},
]


def stored(kind: str, media_type: str, data: bytes) -> dict[str, Any]:
    return {"type": kind, "media_type": media_type, "hash": sha256(data).hexdigest()}


@pytest.mark.sqlite
async def test_files_of_a_conversation_are_attached(talk: Conversation, data: Path) -> None:
    await talk.call("import", text=json.dumps(WITH_FILES), label="files")
    question, _, result = (await talk.call("path", context="files"))["messages"]
    assert question["message"]["content"] == [
        stored("image", "image/png", PNG),
        {"type": "text", "text": "What is it?"},
        stored("document", "application/pdf", PDF),
        {"type": "unknown", "raw": REMOTE},
    ]
    assert result["message"]["content"] == [stored("image", "image/png", PNG + b"2")]
    found = {one["header"].get("path"): one["header"] for one in await headers(talk, "files")}
    assert found["image.png"]["blob_bytes"] == len(PNG)
    assert found["menu.pdf"]["blob"] == sha256(PDF).hexdigest()
    layout = await talk.kernel.call(talk.actor, "context.layout", {"context": "files"})
    shown = [one["path"].partition("/")[2] for one in layout["items"] if "path" in one]
    assert {"image.png", "menu.pdf"} <= set(shown)
    again = await talk.call("append", context="files", messages=[question["message"]])
    assert (again["created"], again["reused"]) == ([], 1)
    await talk.kernel.close()
    assert [str(one) for one in (await run_checks(data)).all()] == []


async def test_files_beyond_a_limit_are_refused_and_nothing_is_made(talk: Conversation) -> None:
    usual = talk.kernel.limits
    text = json.dumps([{"messages": [answer("x")]}, {"messages": WITH_FILES}])
    for limit, most in (("attachment_bytes", 20), ("attachments_per_message", 1)):
        talk.kernel.limits = usual.model_copy(update={limit: most})
        with raises(ErrorCode.TOO_LARGE) as refused:
            await talk.call("import", text=text)
        assert refused.value.details["limit_name"] == limit
        assert [row.label for row in talk.kernel.contexts.rows()] == ["default"]


async def test_names_of_files_with_folders_are_not_taken(talk: Conversation) -> None:
    file = {"filename": "../../x", "file_data": url(PDF, "application/pdf")}
    content = [{"type": "text", "text": "a"}, {"type": "file", "file": file}]
    await talk.call("import", text=json.dumps([{"role": "user", "content": content}]), label="a")
    blocks = await headers(talk, "a")
    assert [one["header"].get("path") for one in blocks] == [None, "document.pdf"]
    assert "../../x" in json.dumps(blocks)


async def test_tree_with_two_beginnings_and_one_answer_twice_keeps_all(talk: Conversation) -> None:
    nodes = (
        node("a", "r", ["b", "c"], "user", "Hello"),
        node("b", "a", [], "assistant", "Hi"),
        node("c", "a", [], "assistant", "Hi"),
        node("d", "r", [], "user", "Bye"),
    )
    files = {f"{one['id']}.json": json.dumps(one) for one in nodes}
    roots = json.dumps([{"id": "r", "child_ids": ["a", "d"]}])
    text = json.dumps({"roots.json": roots, **files})
    made = await talk.call("import", text=text, format="loom", label="t")
    (one,) = made["conversations"]
    assert (one["messages"], one["branches"]) == (4, 3)
    branches = await talk.branches()
    assert branches["t"] == branches["t-branch"] == ["Hello", "Hi"]
    assert branches["t-branch-2"] == ["Bye"]
    lines = "\n".join(json.dumps({"messages": [answer(f"{at}")]}) for at in range(3))
    made = await talk.call("import", text=lines)
    labels = [one["label"] for one in made["conversations"]]
    assert labels == ["conversation", "conversation-2", "conversation-3"], "each in its own"
    kept = json.dumps([await headers(talk, label) for label in branches])
    assert all(json.dumps({"tags": [name]}) in kept for name in "abcd")
    begins = await talk.call("children", context="t")
    assert [said(one["message"]) for one in begins["messages"]] == ["Hello", "Bye"]


async def test_long_conversation_is_the_same_after_a_restart(
    talk: Conversation, open_kernel: OpenKernel
) -> None:
    asked = {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": f"c{at}", "type": "function", "function": {"name": "f"}} for at in range(150)
        ],
    }
    answered = [{"role": "tool", "tool_call_id": f"c{at}", "content": f"{at}"} for at in range(150)]
    text = json.dumps([answer("0"), asked, *answered, answer("1")])
    await talk.call("import", text=text, label="long")
    before = (await talk.call("path", context="long", limit=1_000))["messages"]
    assert len(before) == 153
    await talk.kernel.close()
    kernel = await open_kernel()
    after = Conversation(kernel, kernel.open_session(kernel.owner, "test"))
    assert (await after.call("path", context="long", limit=1_000))["messages"] == before


async def test_text_that_is_no_conversation_makes_nothing(talk: Conversation) -> None:
    params: dict[str, Any]
    for params in (
        {"text": "no json"},
        {"text": json.dumps({"messages": [{"role": "system", "content": "alone"}]})},
        {"text": json.dumps({"messages": [{"role": "tool", "content": "x"}]})},
        {"text": "[]", "format": "loom"},
        {"text": json.dumps({"nodes.json": "{}"}), "format": "loom"},
        {"text": json.dumps({"messages": [answer("x")]}), "label": "No Name"},
    ):
        with raises(ErrorCode.INVALID_PARAMS):
            await talk.call("import", **params)
        assert [row.label for row in talk.kernel.contexts.rows()] == ["default"], params


@settings(max_examples=max(3, EXAMPLES.max_examples // 15))
@given(
    st.lists(conversations().filter(is_spoken), min_size=1, max_size=8),
    st.sampled_from(MessageShape),
)
def test_random_conversations_are_exported_as_they_were_imported(
    said: list[list[Message | SystemMessage]], shape: MessageShape
) -> None:
    files = [json.dumps(written(chained(one), shape)) for one in said]
    with TemporaryDirectory() as folder:
        found = asyncio.run(imported_and_exported(Path(folder), "\n".join(files), shape))
    assert [read_conversations(text) for text in found] == [
        read_conversations(text) for text in files
    ]


async def imported_and_exported(data: Path, text: str, shape: MessageShape) -> list[str]:
    """Import a file, start the kernel again, and return its conversations as they are exported."""
    kernel = await Kernel.open(data, data, registry=Registry(KERNEL_TOOLS))
    owner = kernel.open_session(kernel.owner, "test")
    made = await kernel.call(owner, "message.import", {"text": text})
    await kernel.close()
    kernel = await Kernel.open(data, data, registry=Registry(KERNEL_TOOLS))
    owner = kernel.open_session(kernel.owner, "test")
    found: list[str] = []
    for one in made["conversations"]:
        params = {"context": one["context_id"], "format": "messages", "shape": shape}
        found.append((await kernel.call(owner, "context.export", params))["text"])
    await kernel.close()
    return found
