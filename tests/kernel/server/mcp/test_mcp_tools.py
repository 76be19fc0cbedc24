"""The tools of the MCP server, called by the library's client in both eras."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from tests.kernel.served import ServedKernel
from tests.kernel.server.invited import invite
from tests.kernel.server.mcp.clients import ERAS, LEGACY, MODERN, connected, done, failed

NAMES = [
    *("list_contexts", "read_context", "read_block", "search", "write_message", "append", "edit"),
    *("apply_patch", "blame", "list_files", "read_file", "edit_file", "undo_mine"),
]

CHANGING: dict[str, dict[str, Any]] = {
    "write_message": {"context": "default", "content": "New."},
    "append": {"block_id": "BLOCK", "insert": "More."},
    "edit": {
        "block_id": "BLOCK",
        "base_version": 1,
        "operations": [{"op": "insert", "line": 0, "content": "More."}],
    },
    "apply_patch": {"block_id": "BLOCK", "patch": "@@ -1 +1 @@\n-one\n+1\n"},
    "edit_file": {"path": "a.txt", "old_text": "first", "new_text": "last"},
    "undo_mine": {"context": "default"},
}
READING: dict[str, dict[str, Any]] = {
    "list_contexts": {},
    "read_context": {"context": "default"},
    "read_block": {"block_id": "BLOCK"},
    "search": {"query": "one"},
    "blame": {"block_id": "BLOCK"},
    "list_files": {},
    "read_file": {"path": "a.txt"},
}
"""A call of every tool."""


@pytest.fixture
async def block(served: ServedKernel) -> str:
    """A text of three lines by the owner, and a file that is open."""
    (served.kernel.project / "a.txt").write_text("first\nsecond\n")
    await served.call("file.open", path="a.txt")
    return await served.block("one\ntwo\nthree\n", kind="text", status="done")


def about(block: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {key: block if one == "BLOCK" else one for key, one in arguments.items()}


async def test_list_of_tools_is_the_same_for_everybody_and_says_all_of_them(
    served: ServedKernel,
) -> None:
    viewer = (await invite(served, "viewer"))["token"]
    lists = []
    for era, token in ((LEGACY, None), (LEGACY, viewer), (MODERN, None)):
        async with connected(served, era, token=token) as client:
            lists += [(await client.list_tools()).tools, (await client.list_tools()).tools]
    assert all(one == lists[0] for one in lists)
    assert [one.name for one in lists[0]] == NAMES
    for one in lists[0]:
        hints = one.annotations
        assert hints is not None
        assert hints.read_only_hint is (one.name in READING), one.name
        assert hints.idempotent_hint is (one.name in READING), one.name
        deletes = CHANGING.keys() - {"write_message", "append"}
        assert hints.destructive_hint is (one.name in deletes), one.name
        assert hints.open_world_hint is False
        assert one.output_schema is not None
        assert one.output_schema["type"] == one.input_schema["type"] == "object"
        named = re.findall(r"\b[a-z]+\.[a-z_]{3,}", json.dumps([one.description, one.input_schema]))
        assert {*named} <= {"context.name"}, "it names tools as the registry does"


@pytest.mark.parametrize("era", ERAS)
async def test_tools_read_and_change_a_document(era: str, served: ServedKernel, block: str) -> None:
    async with connected(served, era) as client:
        listed = await done(client, "list_contexts")
        assert [one["label"] for one in listed["contexts"]] == ["default"]
        wrote = await done(client, "write_message", context="default", content="Hello.")
        assert wrote["name"] == "default.claude-code.1"
        page = await done(client, "read_context", context="default")
        texts = [one["text"] for one in page["items"]]
        assert "one\ntwo\nthree" in texts[1]
        assert "Hello." in texts[-1]
        path = next(one["path"] for one in page["items"] if one["block_id"] == wrote["block_id"])
        assert (await done(client, "read_block", block_id=path))["content"] == "0\tHello."
        read = await done(client, "read_block", block_id=block, range={"start": 1, "end": 2})
        assert (read["content"], read["version"]) == ("1\ttwo\n", 1)
        await served.call("block.splice", block_id=block, offset=0, insert="zero\n")
        operations = [{"op": "replace", "start_line": 1, "end_line": 2, "content": "2"}]
        await done(client, "edit", block_id=block, base_version=1, operations=operations)
        await done(client, "apply_patch", block_id=block, patch="@@ -4 +4 @@\n-three\n+3\n")
        await done(client, "append", block_id=block, insert="four")
        text = (await served.call("block.read", block_id=block))["content"]
        assert text == "zero\none\n2\n3\nfour"
        blamed = await done(client, "blame", block_id=block)
        wrote_it = [
            text[one["start"] : one["end"]].strip()
            for one in blamed["runs"]
            if one["username"] == "claude-code"
        ]
        assert wrote_it == ["2", "3", "four"]
        assert (await done(client, "search", query="four"))["results"][0]["block_id"] == block
        undone = await done(client, "undo_mine", context="default")
        assert undone["undone"] == [block]
        assert (await served.call("block.read", block_id=block))["content"].endswith("3\n")


@pytest.mark.parametrize("era", ERAS)
async def test_files_are_those_that_somebody_has_opened(
    era: str, served: ServedKernel, block: str
) -> None:
    (served.kernel.project / "b.txt").write_text("hidden\n")
    served.kernel.files.saves_itself = False
    async with connected(served, era) as client:
        assert [one["path"] for one in (await done(client, "list_files"))["files"]] == ["a.txt"]
        assert (await done(client, "read_file", path="a.txt"))["content"] == "0\tfirst\n1\tsecond\n"
        await done(client, "edit_file", path="a.txt", old_text="first", new_text="1st")
        assert (await done(client, "list_files"))["files"][0]["dirty"]
        assert "permission_denied: Only the owner" in await failed(
            client, "read_file", path="b.txt"
        )
    async with connected(served, era, query="?as=amy") as client:
        assert (await done(client, "read_file", path="b.txt"))["content"] == "0\thidden\n"


async def test_long_context_is_read_page_by_page(served: ServedKernel) -> None:
    for number in range(70):
        await served.block(f"Message {number}. " + "x" * 90 * number, kind="text", status="done")
    async with connected(served, MODERN) as client:
        last = await done(client, "read_context", context="default")
        assert "next" not in last
        assert last["items"][-1]["text"].startswith("[USER")
        assert [one.get("truncated") for one in last["items"][-2:]] == [None, True]
        found: list[int] = []
        start: int | None = 0
        while start is not None:
            page = await done(client, "read_context", context="default", start=start)
            found += [one["index"] for one in page["items"]]
            start = page.get("next")
        assert found == list(range(last["count"]))
        assert (await done(client, "read_context", context="default", start=9_999))["items"] == []


ERRORS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "unknown context": (
        "read_context",
        {"context": "nowhere"},
        ["context_not_found", "Next: list_contexts."],
    ),
    "unknown block": ("read_block", {"block_id": "default.amy.99"}, ["block_not_found", "search"]),
    "no context": ("write_message", {"content": "Hello."}, ["needs context"]),
    "no version": ("edit", {"block_id": "BLOCK", "operations": []}, ["needs base_version"]),
    "unknown argument": ("read_block", {"block_id": "BLOCK", "line": 1}, ["line", "section"]),
    "wrong type": ("read_context", {"context": "default", "start": "x"}, ["start", "number"]),
    "negative": ("read_context", {"context": "default", "start": -1}, ["start", "at least 0"]),
    "stale": (
        "edit",
        {
            "block_id": "BLOCK",
            "base_version": 1,
            "operations": [{"op": "delete", "start_line": 1, "end_line": 2}],
        },
        ["stale_version", "1\tchanged two", "Next: read_block"],
    ),
    "patch": (
        "apply_patch",
        {"block_id": "BLOCK", "patch": "@@ -1 +1 @@\n-nothing\n+1\n"},
        ["patch_failed", "Next: read_block"],
    ),
    "text of a file": (
        "edit_file",
        {"path": "a.txt", "old_text": "firsd", "new_text": ""},
        ["content_mismatch", "0\tfirst", "read_file"],
    ),
    "nothing to undo": ("undo_mine", {"context": "default"}, ["nothing_to_undo"]),
    "huge": ("append", {"block_id": "BLOCK", "insert": "x" * 8_000_001}, ["too_large", "8000000"]),
}
"""By what is wrong: a call, and what its error says."""


async def test_errors_say_what_is_there_and_what_to_call(served: ServedKernel, block: str) -> None:
    await served.call("block.splice", block_id=block, offset=4, insert="changed ")
    async with connected(served, MODERN) as client:
        for what, (tool, arguments, says) in ERRORS.items():
            said = await failed(client, tool, **about(block, arguments))
            assert all(one in said for one in says), f"{what}: {said}"
        with pytest.raises(MCPError, match="Unknown tool: 'nothing'; there are: list_contexts,"):
            await client.call_tool("nothing", {})


@pytest.mark.parametrize("era", ERAS)
async def test_viewer_reads_with_every_tool_and_changes_nothing_with_any(
    era: str, served: ServedKernel, block: str
) -> None:
    viewer = (await invite(served, "viewer", name="vic"))["token"]
    before = (await served.context()).seq
    file = (await served.call("file.read", path="a.txt"))["version"]
    async with connected(served, era, token=viewer) as client:
        for tool, arguments in READING.items():
            await done(client, tool, **about(block, arguments))
        for tool, arguments in CHANGING.items():
            said = await failed(client, tool, **about(block, arguments))
            assert said.startswith("permission_denied:"), f"{tool}: {said}"
            assert "you are vic, a viewer" in said
    assert sorted([*READING, *CHANGING]) == sorted(NAMES)
    assert (await served.context()).seq == before
    assert (await served.call("file.read", path="a.txt"))["version"] == file


async def test_program_acts_under_its_name_and_under_another_one_if_that_is_taken(
    served: ServedKernel,
) -> None:
    await served.kernel.principal("bo")
    for said, name in (
        ("Visual Studio Code!", "visual-studio-code"),
        ("bo", "bo-2"),
        ("", "mcp-client"),
        ("ü", "mcp-client"),
        ("x" * 99, "x" * 60),
    ):
        async with connected(served, MODERN, name=said) as client:
            wrote = await done(client, "write_message", context="default", content="I.")
            assert wrote["name"].split(".")[1] == name
    guest = (await invite(served, "editor", name="cy"))["token"]
    async with connected(served, MODERN, name="bo", token=guest) as client:
        wrote = await done(client, "write_message", context="default", content="I.")
        assert wrote["name"].split(".")[1] == "cy"
    kinds = {one.username: str(one.kind) for one in served.kernel.members}
    assert (kinds["bo"], kinds["bo-2"], kinds["cy"]) == ("human", "agent", "human")
