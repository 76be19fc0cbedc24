"""Conversations of loom: trees of nodes, each in a file of its own."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from antiphon_kernel.messages import (
    AssistantMessage,
    ImportedConversation,
    MessageError,
    SystemMessage,
    TextBlock,
    ToolMessage,
    ToolUse,
    UserMessage,
    read_loom,
)
from antiphon_kernel.types.frozen_json import JsonObject, thaw


def root(number: int, *children: int, prompt: str | None = "Be brief.") -> dict[str, Any]:
    return {
        "id": f"root-{number}",
        "child_ids": [f"root-{number}/node-{child}" for child in children],
        "createdAt": "2026-01-02T03:04:05.000Z",
        "config": {} if prompt is None else {"systemPrompt": prompt},
    }


def node(number: int, parent: int | None, message: Any, *children: int) -> dict[str, Any]:
    return {
        "id": f"root-1/node-{number}",
        "root_id": "root-1",
        "parent_id": "root-1" if parent is None else f"root-1/node-{parent}",
        "child_ids": [f"root-1/node-{child}" for child in children],
        "message": message,
        "metadata": {
            "timestamp": "2026-01-02T03:04:06.000Z",
            "original_root_id": "root-1",
            "source_info": {"type": "user"},
        },
    }


def says(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def folder(roots: list[dict[str, Any]], *nodes: dict[str, Any]) -> dict[str, str]:
    files = {"roots.json": json.dumps(roots)}
    for one in nodes:
        parent, _, name = one["id"].partition("/")
        files[f"{parent}/nodes/{name}.json"] = json.dumps(one)
    return files


CALL = {"type": "tool-use", "id": "c1", "name": "look", "parameters": {"at": 1}}
LEGACY_CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "look", "arguments": '{"at": 1}'},
}
TREE = folder(
    [root(1, 1)],
    node(1, None, says("user", "hello"), 3, 2),
    node(2, 1, {"role": "assistant", "content": "legacy", "tool_calls": [LEGACY_CALL]}, 4),
    node(3, 1, {"role": "assistant", "content": [CALL]}, 5),
    node(4, 2, {"role": "tool", "content": "r2", "tool_call_id": "c1"}),
    node(5, 3, {**says("tool", "r3"), "tool_call_id": "c1"}),
)
USE = ToolUse("c1", "look", JsonObject({"at": 1}))


def text(value: str) -> tuple[TextBlock]:
    return (TextBlock(value),)


def read(files: dict[str, str]) -> ImportedConversation:
    (conversation,) = read_loom(files)
    return conversation


def test_tree_is_read_with_its_branches_in_the_order_of_their_parent() -> None:
    assert [(one.message, one.parent) for one in read(TREE).messages] == [
        (SystemMessage(text("Be brief.")), None),
        (UserMessage(text("hello")), 0),
        (AssistantMessage((USE,)), 1),
        (ToolMessage(text("r3"), "c1"), 2),
        (AssistantMessage((TextBlock("legacy"), USE)), 1),
        (ToolMessage(text("r2"), "c1"), 4),
    ]


def test_ids_and_metadata_of_nodes_are_kept() -> None:
    conversation = read(TREE)
    extra = thaw(conversation.messages[1].extra)
    assert extra["id"] == "root-1/node-1"
    assert extra["metadata"]["source_info"] == {"type": "user"}
    assert thaw(conversation.extra) == {"id": "root-1", "createdAt": "2026-01-02T03:04:05.000Z"}


def test_order_of_the_files_says_nothing() -> None:
    shuffled = list(TREE.items())
    random.Random(1).shuffle(shuffled)
    assert read(dict(shuffled)) == read(TREE)


def test_each_root_is_a_conversation() -> None:
    files = folder([root(1, prompt=None), root(2)], node(1, None, says("user", "a")))
    first, second = read_loom(files)
    assert [one.parent for one in first.messages] == [None]
    assert [one.message for one in second.messages] == [SystemMessage(text("Be brief."))]


def test_node_that_its_parent_does_not_list_is_read() -> None:
    files = folder([root(1, 2)], node(1, None, says("user", "a")), node(2, None, says("user", "b")))
    assert [one.message for one in read(files).messages[1:]] == [
        UserMessage(text("b")),
        UserMessage(text("a")),
    ]


USER = says("user", "a")


BAD_FOLDERS = {
    "no roots": ({}, "invalid_value", "roots.json"),
    "no JSON": ({"roots.json": "{"}, "invalid_value", "roots.json"),
    "root without id": ({"roots.json": '[{"config": {}}]'}, "invalid_value", "roots.json.[0].id"),
    "parent is missing": (
        folder([root(1)], node(2, 1, USER)),
        "invalid_value",
        "root-1/nodes/node-2.json",
    ),
    "cycle": (
        folder([root(1)], node(1, 2, USER), node(2, 1, USER)),
        "invalid_value",
        "root-1/nodes/node-1.json",
    ),
    "two nodes of one id": (
        {
            **folder([root(1)], node(1, None, USER)),
            "copy.json": json.dumps(node(1, None, USER)),
        },
        "invalid_value",
        "copy.json.id",
    ),
    "message that is none": (
        folder([root(1)], node(1, None, {"role": "user", "content": 5})),
        "wrong_shape",
        "root-1/nodes/node-1.json.message.content",
    ),
    "result in another branch than its call": (
        folder(
            [root(1)],
            node(1, None, {"role": "assistant", "content": [CALL]}),
            node(2, None, {**says("tool", "r"), "tool_call_id": "c1"}),
        ),
        "no_such_call",
        "root-1/nodes/node-2.json.tool_call_id",
    ),
}


@pytest.mark.parametrize(("files", "problem", "path"), BAD_FOLDERS.values(), ids=BAD_FOLDERS)
def test_folder_that_cannot_be_read_is_refused_with_file_and_field(
    files: dict[str, str], problem: str, path: str
) -> None:
    with pytest.raises(MessageError) as refused:
        read_loom(files)
    assert (refused.value.problem, refused.value.path) == (problem, path)


@pytest.mark.parametrize("seed", range(20))
def test_random_tree_is_read_with_every_node_below_its_parent(seed: int) -> None:
    rng = random.Random(seed)
    parents = [None, *(rng.choice([None, *range(1, at)]) for at in range(2, 40))]
    nodes = [node(at, parent, says("user", f"n{at}")) for at, parent in enumerate(parents, 1)]
    rng.shuffle(nodes)
    found = read(folder([root(1)], *nodes)).messages
    names = ["root", *(one.message.content[0].text for one in found[1:])]  # type: ignore[union-attr]
    below = {names[at]: names[one.parent or 0] for at, one in enumerate(found) if at}
    assert below == {
        f"n{at}": "root" if parent is None else f"n{parent}" for at, parent in enumerate(parents, 1)
    }
