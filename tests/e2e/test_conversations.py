"""Conversations of other tools by command line: imported, shown, continued, exported, all of it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.messages import (
    ImportedConversation,
    ImportedMessage,
    TextBlock,
    UserMessage,
    read_conversations,
    read_loom,
)
from tests.e2e.machine import Machine
from tests.kernel.messages.test_foreign_conversations import ANTHROPIC, CHAT

SOURCES = [CHAT, ANTHROPIC] if os.environ.get("ANTIPHON_LONG") else [ANTHROPIC]
MORE = {"role": "user", "content": "And then?"}
NODES: dict[str, dict[str, Any]] = {
    "a": {
        "parent_id": "r",
        "child_ids": ["b", "c"],
        "message": {"role": "user", "content": [{"type": "text", "text": "Add 2"}]},
        "metadata": {"tags": ["first"]},
    },
    "b": {
        "parent_id": "a",
        "child_ids": ["d"],
        "message": {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "So:"},
                {"type": "tool-use", "id": "c1", "name": "add", "parameters": {"x": [1, None]}},
                {"type": "tool-use", "id": "c2", "name": "add", "parameters": {}},
            ],
        },
        "metadata": {"source_info": {"type": "model", "model_name": "m"}},
    },
    "c": {"parent_id": "a", "message": {"role": "assistant", "content": "No"}},
    "d": {
        "parent_id": "b",
        "child_ids": ["e"],
        "message": {"role": "tool", "tool_call_id": "c2", "content": "5"},
    },
    "e": {
        "parent_id": "d",
        "message": {"role": "tool", "tool_call_id": "c1", "content": [{"type": "video", "at": 1}]},
    },
}


def read(text: str) -> ImportedConversation:
    (conversation,) = read_conversations(text)
    return conversation


def path_to(messages: tuple[ImportedMessage, ...], index: int) -> list[tuple[object, object]]:
    """A message and those above it, with their further fields."""
    path: list[tuple[object, object]] = []
    at: int | None = index
    while at is not None:
        path.insert(0, (messages[at].message, messages[at].extra))
        at = messages[at].parent
    return path


def exported(machine: Machine, label: str, shape: str) -> ImportedConversation:
    options = ("--format", "messages", "--shape", shape)
    return read(machine.succeed("export", label, *options).stdout)


def continue_at_the_end(machine: Machine, label: str) -> None:
    found = json.loads(machine.succeed("call", "message.path", "--context", label).stdout)
    last = found["messages"][-1]["message_id"]
    params = json.dumps({"parent": last, "messages": [MORE]})
    placed = json.loads(machine.succeed("call", "message.append", params).stdout)
    assert (placed["label"], placed["forked"]) == (label, False)


@pytest.mark.parametrize("source", SOURCES)
def test_conversation_is_imported_shown_continued_and_exported_with_nothing_lost(
    machine: Machine, tmp_path: Path, source: dict[str, Any]
) -> None:
    file = tmp_path / "conversation.json"
    file.write_text(json.dumps(source))
    done = machine.succeed("import", "--format", "messages", str(file), "--label", "chat")
    before = read(json.dumps(source))
    assert done.stdout.startswith("chat: ")
    shown = machine.succeed("export", "chat", "--format", "markdown").stdout
    texts = (one.message.content for one in before.messages)
    assert all(
        block.text in shown for each in texts for block in each if isinstance(block, TextBlock)
    )
    continue_at_the_end(machine, "chat")
    for shape in ("openai", "anthropic"):
        after = exported(machine, "chat", shape)
        *same, added = after.messages
        assert (tuple(same), after.files, after.extra) == (
            before.messages,
            before.files,
            before.extra,
        )
        assert added.message == UserMessage((TextBlock("And then?"),))
    twice = tmp_path / "again.json"
    twice.write_text(machine.succeed("export", "chat", "--format", "messages").stdout)
    machine.succeed("import", "--format", "messages", str(twice), "--label", "again")
    assert exported(machine, "again", "openai") == exported(machine, "chat", "openai")
    assert machine.run("doctor").returncode == 0


def test_folder_of_loom_is_imported_shown_continued_and_exported_with_nothing_lost(
    machine: Machine, tmp_path: Path
) -> None:
    root = {"id": "r", "child_ids": ["a"], "config": {"systemPrompt": "Be brief.", "model": "m"}}
    files = {
        "roots.json": json.dumps([root]),
        **{
            f"r/nodes/{name}.json": json.dumps({"id": name, "root_id": "r", **fields})
            for name, fields in NODES.items()
        },
    }
    folder = tmp_path / "loom"
    (folder / "r" / "nodes").mkdir(parents=True)
    for path, text in files.items():
        (folder / path).write_text(text)
    (before,) = read_loom(files)
    done = machine.succeed("import", "--format", "messages", str(folder), "--label", "loom")
    assert "5 messages in 2 branches" in done.stdout
    broken = machine.run("import", "--format", "messages", "-", "--json", stdin="{broken")
    assert broken.returncode == 1 and "error" in json.loads(broken.stdout)
    shown = machine.succeed("export", "loom", "--format", "markdown").stdout
    assert "Add 2" in shown and "Be brief." in shown
    continue_at_the_end(machine, "loom")
    leaves = {one.parent for one in before.messages}
    ends = [at for at in range(len(before.messages)) if at not in leaves]
    for shape in ("openai", "anthropic"):
        found = [exported(machine, label, shape) for label in ("loom", "loom-branch")]
        assert [one.extra for one in found] == [before.extra] * 2
        paths = [path_to(one.messages, len(one.messages) - 1) for one in found]
        message, _ = paths[0].pop()
        assert message == UserMessage((TextBlock("And then?"),))
        assert paths == [path_to(before.messages, end) for end in ends]
