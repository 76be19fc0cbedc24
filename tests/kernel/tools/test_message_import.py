"""Conversations of other tools: imported, shown, continued and exported with nothing lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.errors import raises
from tests.kernel.tools.test_message_tree import Conversation, answer, said

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
ANTHROPIC = {
    "system": "Be brief.",
    "messages": [
        {"role": "user", "content": "What is 2 + 2?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "easy", "signature": "s1"},
                {"type": "tool_use", "id": "t1", "name": "calc", "input": {"x": 2}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "4"}]},
        {"role": "assistant", "content": "It is 4."},
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


LOOM = {
    "roots.json": json.dumps(
        [{"id": "r", "child_ids": ["a"], "config": {"systemPrompt": "Be brief."}}]
    ),
    **{
        f"{one['id']}.json": json.dumps(one)
        for one in (
            node("a", "r", ["b", "c"], "user", "Hello"),
            node("b", "a", ["d"], "assistant", "Hi"),
            node("c", "a", [], "assistant", "Good day"),
            node("d", "b", [], "user", "And then?"),
        )
    },
}


@pytest.fixture
def talk(kernel: Kernel, amy: Actor) -> Conversation:
    return Conversation(kernel, amy)


async def headers(talk: Conversation, label: str) -> list[dict[str, Any]]:
    exported = await talk.kernel.call(talk.actor, "context.export", {"context": label})
    lines = [json.loads(line) for line in exported["text"].splitlines()]
    return [line for line in lines if line["type"] == "block"]


@pytest.mark.parametrize("source", [OPENAI, ANTHROPIC], ids=["openai", "anthropic"])
async def test_imported_conversation_is_shown_continued_and_exported(
    talk: Conversation, source: dict[str, Any]
) -> None:
    made = await talk.call("import", text=json.dumps(source), label="sums")
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
    kept = ("gpt-x", "And polite.", "amy") if source is OPENAI else ("s1", "easy")
    assert all(word in text for word in kept)


async def test_imported_tree_has_its_branches(talk: Conversation) -> None:
    made = await talk.call("import", text=json.dumps(LOOM), format="loom", label="tree")
    (conversation,) = made["conversations"]
    assert (conversation["messages"], conversation["branches"]) == (4, 2)
    branches = await talk.branches()
    assert branches["tree"] == ["Hello", "Hi", "And then?"]
    assert branches["tree-branch"] == ["Hello", "Good day"]
    found = (await talk.call("path", context="tree"))["messages"]
    siblings = await talk.call("siblings", message=found[1]["message_id"])
    assert [said(one["message"]) for one in siblings["messages"]] == ["Hi", "Good day"]
    assert "tags" in json.dumps(await headers(talk, "tree-branch"))


async def test_several_conversations_become_contexts_of_their_own(talk: Conversation) -> None:
    lines = "\n".join(json.dumps({"messages": [answer(f"{at}")]}) for at in range(3))
    made = await talk.call("import", text=lines)
    labels = [one["label"] for one in made["conversations"]]
    assert labels == ["conversation", "conversation-2", "conversation-3"]


@pytest.mark.parametrize(
    "params",
    [
        {"text": "no json"},
        {"text": json.dumps({"messages": [{"role": "system", "content": "alone"}]})},
        {"text": json.dumps({"messages": [{"role": "tool", "content": "x"}]})},
        {"text": "[]", "format": "loom"},
        {"text": json.dumps({"nodes.json": "{}"}), "format": "loom"},
        {"text": json.dumps({"messages": [answer("x")]}), "label": "No Name"},
    ],
)
async def test_text_that_is_no_conversation_makes_nothing(
    talk: Conversation, params: dict[str, Any]
) -> None:
    with raises(ErrorCode.INVALID_PARAMS):
        await talk.call("import", **params)
    assert [row.label for row in talk.kernel.context_rows()] == ["default"]
