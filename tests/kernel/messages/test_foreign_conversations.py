"""Conversations of other tools: every kind of message of the documented shapes, nothing lost.

Those of loom are trees of nodes, each in a file of its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antiphon_kernel.messages import (
    AssistantMessage,
    DocumentBlock,
    ImageBlock,
    ImportedConversation,
    MessageError,
    MessageProblem,
    SystemMessage,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UnknownBlock,
    UserMessage,
    dump_block,
    read_conversations,
    read_loom,
)
from antiphon_kernel.types.frozen_json import JsonObject, thaw
from tests.kernel.messages.generated import EXAMPLES

PIXEL = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
PDF = b"%PDF-1.7"


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def text(value: str) -> tuple[TextBlock]:
    return (TextBlock(value),)


def use(call_id: str, name: str, **parameters: Any) -> ToolUse:
    return ToolUse(call_id, name, JsonObject(parameters))


def read(value: object) -> ImportedConversation:
    (conversation,) = read_conversations(json.dumps(value))
    return conversation


def messages(value: object) -> list[object]:
    return [one.message for one in read(value).messages]


def extras(value: object) -> list[dict[str, Any]]:
    return [thaw(one.extra) for one in read(value).messages]


CHAT = {
    "model": "some-model",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "No lists."}]},
        {"role": "user", "content": "What is in it?", "name": "anna"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "this one"},
                {
                    "type": "image_url",
                    "image_url": {
                        "url": f"data:image/png;base64,{encoded(PIXEL)}",
                        "detail": "low",
                    },
                },
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                {
                    "type": "file",
                    "file": {
                        "filename": "a.pdf",
                        "file_data": f"data:application/pdf;base64,{encoded(PDF)}",
                    },
                },
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "Look first.",
            "refusal": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"at": [1, 2]}'},
                },
                {"id": "c2", "type": "custom", "custom": {"name": "run", "input": "ls -l"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c2", "content": ""},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a cat"}]},
        {
            "role": "assistant",
            "content": "",
            "function_call": {"name": "old", "arguments": ""},
        },
        {"role": "function", "name": "old", "content": "fine"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "I may not."}]},
        {"role": "assistant", "content": None},
    ],
}

PARTS = CHAT["messages"][3]["content"]  # type: ignore[index]


def test_openai_chat_is_read_with_every_kind_of_message() -> None:
    assert messages(CHAT) == [
        SystemMessage(text("Be brief.")),
        SystemMessage(text("No lists.")),
        UserMessage(text("What is in it?")),
        UserMessage(
            (
                TextBlock("this one"),
                ImageBlock("image/png", digest(PIXEL)),
                UnknownBlock(JsonObject(PARTS[2])),
                UnknownBlock(JsonObject(PARTS[3])),
                DocumentBlock("application/pdf", digest(PDF)),
            )
        ),
        AssistantMessage(
            (Thinking("Look first."), use("c1", "look", at=[1, 2]), use("c2", "run", input="ls -l"))
        ),
        ToolMessage((UnknownBlock(JsonObject({"content": ""})),), "c2"),
        ToolMessage(text("a cat"), "c1"),
        AssistantMessage((use("function_call_1", "old"),)),
        ToolMessage(text("fine"), "function_call_1"),
        AssistantMessage((UnknownBlock(JsonObject({"type": "refusal", "refusal": "I may not."})),)),
        AssistantMessage((UnknownBlock(JsonObject({"role": "assistant", "content": None})),)),
    ]


def test_openai_chat_keeps_its_files_and_fields_without_a_place() -> None:
    assert read(CHAT).files == {digest(PIXEL): PIXEL, digest(PDF): PDF}
    assert thaw(read(CHAT).extra) == {"model": "some-model"}
    assert extras(CHAT)[1:5] == [
        {"role": "developer"},
        {"name": "anna"},
        {
            "content[1]": {"image_url": {"detail": "low"}},
            "content[4]": {"file": {"filename": "a.pdf"}},
        },
        {"refusal": None, "content[2]": {"type": "custom"}},
    ]


ANTHROPIC = {
    "model": "claude",
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "eA=="},
                {"type": "text", "text": "Two calls.", "citations": [{"cited_text": "x"}]},
                {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}},
                {"type": "tool_use", "id": "t2", "name": "look", "input": {}},
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t2",
                    "is_error": True,
                    "content": "no",
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": [
                        {
                            "type": "image",
                            "source": {
                                "type": "base64",
                                "media_type": "image/PNG",
                                "data": encoded(PIXEL),
                            },
                        }
                    ],
                },
                {"type": "text", "text": "and this"},
                {
                    "type": "document",
                    "title": "notes",
                    "source": {"type": "text", "media_type": "text/plain", "data": "né"},
                },
                {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            ],
        },
    ],
}


def test_anthropic_conversation_is_read_with_every_kind_of_block() -> None:
    redacted, searched = ANTHROPIC["messages"][1]["content"][1::4]  # type: ignore[index]
    by_url = ANTHROPIC["messages"][2]["content"][4]  # type: ignore[index]
    assert messages(ANTHROPIC) == [
        SystemMessage(text("Be brief.")),
        UserMessage(text("Hi")),
        AssistantMessage(
            (
                Thinking("Hm.", "c2ln"),
                UnknownBlock(JsonObject(redacted)),
                TextBlock("Two calls."),
                use("t1", "look", at=1),
                use("t2", "look"),
                UnknownBlock(JsonObject(searched)),
            )
        ),
        ToolMessage(text("no"), "t2", is_error=True),
        ToolMessage((ImageBlock("image/png", digest(PIXEL)),), "t1"),
        UserMessage(
            (
                TextBlock("and this"),
                DocumentBlock("text/plain", digest("né".encode())),
                UnknownBlock(JsonObject(by_url)),
            )
        ),
    ]
    assert read(ANTHROPIC).files == {digest(PIXEL): PIXEL, digest("né".encode()): "né".encode()}
    assert [one.parent for one in read(ANTHROPIC).messages] == [None, 0, 1, 2, 3, 4]
    assert extras(ANTHROPIC) == [
        {"content[0]": {"cache_control": {"type": "ephemeral"}}},
        {},
        {"content[2]": {"citations": [{"cited_text": "x"}]}},
        {},
        {"content[0]": {"media_type": "image/PNG"}},
        {"content[1]": {"title": "notes"}},
    ]


@pytest.mark.parametrize(
    ("stated", "data", "block", "extra"),
    [
        ("image/jpeg", PIXEL, ImageBlock("image/png", digest(PIXEL)), "image/jpeg"),
        ("application/pdf", PIXEL, ImageBlock("image/png", digest(PIXEL)), "application/pdf"),
        ("text/html;charset=utf-8", b"<p>", DocumentBlock("text/html", digest(b"<p>")), None),
        ("image/bmp", b"BM\0\0", None, None),
        ("image/png", b"", None, None),
        ("../../etc/passwd", PDF, DocumentBlock("application/pdf", digest(PDF)), None),
    ],
)
def test_file_is_of_the_type_that_its_bytes_have_and_kept_whole_if_of_none(
    stated: str, data: bytes, block: ImageBlock | DocumentBlock | None, extra: str | None
) -> None:
    part = {"type": "image_url", "image_url": {"url": f"data:{stated};base64,{encoded(data)}"}}
    (found,) = read([{"role": "user", "content": [part]}]).messages
    assert found.message.content == (block or UnknownBlock(JsonObject(part)),)
    kept = thaw(found.extra)
    assert kept == ({"content[0]": {"media_type": extra or stated}} if block else {})


def test_jsonl_holds_one_conversation_a_line() -> None:
    lines = [{"messages": [{"role": "user", "content": str(number)}]} for number in range(3)]
    found = read_conversations("\n".join(map(json.dumps, lines)) + "\n\n")
    assert [one.messages[0].message for one in found] == [
        UserMessage(text(str(number))) for number in range(3)
    ]
    assert read_conversations(json.dumps(lines)) == found


def test_jsonl_holds_one_message_a_line() -> None:
    lines = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    (found,) = read_conversations("\r\n".join(map(json.dumps, lines)))
    assert [one.message for one in found.messages] == [
        UserMessage(text("a")),
        AssistantMessage(text("b")),
    ]
    assert read(lines) == found


def test_own_content_blocks_are_read_too() -> None:
    blocks = (Thinking("t"), use("c", "n", a=1), ImageBlock("image/png", "0" * 64))
    value = [{"role": "assistant", "content": [dump_block(one) for one in blocks]}]
    assert messages(value) == [AssistantMessage(blocks)]


def test_blocks_of_the_assistant_in_a_message_of_a_user_are_kept_whole() -> None:
    part = {"type": "thinking", "thinking": "mine"}
    assert messages([{"role": "user", "content": [part]}]) == [
        UserMessage((UnknownBlock(JsonObject(part)),))
    ]


A_CALL = {"id": "c", "type": "function", "function": {"name": "n", "arguments": "{}"}}
WRONG_CALL = {**A_CALL, "function": {"name": "n", "arguments": "[1]"}}
A_RESULT = {"role": "tool", "tool_call_id": "c", "content": "r"}


@pytest.mark.parametrize(
    ("value", "problem", "index", "path"),
    [
        ([{"role": "narrator", "content": "a"}], "unknown_role", 0, "role"),
        (
            [{"role": "user", "content": "a"}, {"role": "user", "content": 5}],
            "wrong_shape",
            1,
            "content",
        ),
        (
            [{"role": "user", "content": "a"}, {"role": "user", "content": [5]}],
            "wrong_shape",
            1,
            "content[0]",
        ),
        (
            [{"role": "user", "content": "a"}, {"role": "tool", "content": "r"}],
            "wrong_shape",
            1,
            "tool_call_id",
        ),
        (
            [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t9"}]}],
            "no_such_call",
            0,
            "tool_call_id",
        ),
        (
            [{"role": "function", "name": "old", "content": "r"}],
            "no_such_call",
            0,
            "name",
        ),
        (
            [{"role": "assistant", "tool_calls": [WRONG_CALL]}],
            "invalid_arguments",
            0,
            "tool_calls[0].function.arguments",
        ),
        (
            [{"role": "assistant", "tool_calls": [A_CALL]}, A_RESULT, A_RESULT],
            "already_answered",
            2,
            "tool_call_id",
        ),
        ({"messages": {}}, "wrong_shape", None, "messages"),
        ({"title": "a"}, "wrong_shape", None, "messages"),
        ({"system": 5, "messages": []}, "wrong_shape", None, "system.content"),
    ],
)
def test_conversation_that_cannot_be_read_is_refused_with_its_place(
    value: object, problem: str, index: int | None, path: str
) -> None:
    with pytest.raises(MessageError) as refused:
        read(value)
    error = refused.value
    assert (error.problem, error.index, error.path) == (problem, index, path)


@pytest.mark.parametrize(
    ("file", "path"),
    [
        ("", ""),
        ("{", ""),
        ('{"a": 1, "a": 2}', ""),
        ('{"role": "user", "content": "a"}\n{"role"', "line 2"),
        ('{"role": "user", "content": "a"}\n\n{"x": NaN}', "line 3"),
    ],
)
def test_file_that_is_no_json_is_refused_with_its_line(file: str, path: str) -> None:
    with pytest.raises(MessageError) as refused:
        read_conversations(file)
    assert (refused.value.problem, refused.value.path) == (MessageProblem.INVALID_VALUE, path)


def test_wrong_conversation_of_several_is_named() -> None:
    good = {"messages": []}
    with pytest.raises(MessageError) as refused:
        read_conversations(json.dumps([good, {"messages": [{"role": "x"}]}]))
    assert refused.value.path == "conversations[1].role" and refused.value.index == 0


# Texts that are found again wherever they end up.
MARKS = st.integers(0, 10**9).map("mark{}".format)
FIELDS = st.dictionaries(
    st.sampled_from(["name", "weight", "annotations", "audio"]),
    MARKS | st.lists(MARKS, max_size=2) | st.none(),
    max_size=2,
)


def with_fields(part: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(part, FIELDS).map(lambda both: {**both[1], **both[0]})


def shaped(**fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    parts = {
        name: value if isinstance(value, st.SearchStrategy) else st.just(value)
        for name, value in fields.items()
    }
    return with_fields(st.fixed_dictionaries(parts))


INPUT_PARTS = st.one_of(
    shaped(type="text", text=MARKS),
    shaped(type="text", text=" "),
    shaped(type="image_url", image_url=shaped(url=MARKS)),
    shaped(type="image", source=shaped(type="url", url=MARKS)),
    shaped(type="document", source=shaped(type="base64", media_type=MARKS, data=MARKS)),
    shaped(type="input_audio", input_audio=MARKS),
    shaped(type="never_seen", inner=shaped(deep=MARKS)),
)
OUTPUT_PARTS = INPUT_PARTS | shaped(type="thinking", thinking=MARKS, signature=MARKS)
FOREIGN = st.one_of(
    shaped(role="user", content=MARKS | st.lists(INPUT_PARTS, max_size=3)),
    shaped(role="system", content=MARKS | st.lists(INPUT_PARTS, max_size=2)),
    shaped(role="assistant", content=st.none() | MARKS | st.lists(OUTPUT_PARTS, max_size=3)),
    shaped(role="assistant", reasoning_content=MARKS, content=MARKS),
)


def marks(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if value.startswith("mark") else []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [one for item in inner for one in marks(item)]


BLANK = {"type": "text", "text": " ", "name": "mark1"}
NO_FILE = {"type": "base64", "media_type": "mark2", "data": "mark3"}


@EXAMPLES
@given(st.lists(FOREIGN, max_size=4))
@example([{"role": "user", "content": [BLANK, {"type": "document", "source": NO_FILE}]}])
def test_reading_loses_nothing(value: list[dict[str, Any]]) -> None:
    kept: list[str] = []
    for one in read(value).messages:
        kept += marks([dump_block(block) for block in one.message.content])
        kept += marks(thaw(one.extra))
    assert sorted(kept) == sorted(marks(value))


@pytest.mark.parametrize("lines", [1, 2])
def test_read_conversations_of_a_file_with_a_byte_order_mark_is_that_without(lines: int) -> None:
    text = "\n".join(['{"messages": [{"role": "user", "content": "a"}]}'] * lines)
    assert read_conversations("\ufeff" + text) == read_conversations(text)


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


def read_tree(files: dict[str, str]) -> ImportedConversation:
    (conversation,) = read_loom(files)
    return conversation


def test_tree_is_read_with_its_branches_in_the_order_of_their_parent() -> None:
    assert [(one.message, one.parent) for one in read_tree(TREE).messages] == [
        (SystemMessage(text("Be brief.")), None),
        (UserMessage(text("hello")), 0),
        (AssistantMessage((USE,)), 1),
        (ToolMessage(text("r3"), "c1"), 2),
        (AssistantMessage((TextBlock("legacy"), USE)), 1),
        (ToolMessage(text("r2"), "c1"), 4),
    ]


def test_ids_and_metadata_of_nodes_are_kept() -> None:
    conversation = read_tree(TREE)
    extra = thaw(conversation.messages[1].extra)
    assert extra["id"] == "root-1/node-1"
    assert extra["metadata"]["source_info"] == {"type": "user"}
    assert thaw(conversation.extra) == {"id": "root-1", "createdAt": "2026-01-02T03:04:05.000Z"}


def test_each_root_is_a_conversation() -> None:
    files = folder([root(1, prompt=None), root(2)], node(1, None, says("user", "a")))
    first, second = read_loom(files)
    assert [one.parent for one in first.messages] == [None]
    assert [one.message for one in second.messages] == [SystemMessage(text("Be brief."))]


def test_node_that_its_parent_does_not_list_is_read() -> None:
    files = folder([root(1, 2)], node(1, None, says("user", "a")), node(2, None, says("user", "b")))
    assert [one.message for one in read_tree(files).messages[1:]] == [
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


@pytest.mark.parametrize("seed", range(3))
def test_random_tree_is_read_with_every_node_below_its_parent(seed: int) -> None:
    rng = random.Random(seed)
    parents = [None, *(rng.choice([None, *range(1, at)]) for at in range(2, 40))]
    nodes = [node(at, parent, says("user", f"n{at}")) for at, parent in enumerate(parents, 1)]
    rng.shuffle(nodes)
    found = read_tree(folder([root(1)], *nodes)).messages
    names = ["root", *(one.message.content[0].text for one in found[1:])]  # type: ignore[union-attr]
    below = {names[at]: names[one.parent or 0] for at, one in enumerate(found) if at}
    assert below == {
        f"n{at}": "root" if parent is None else f"n{parent}" for at, parent in enumerate(parents, 1)
    }
