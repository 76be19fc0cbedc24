"""`context.layout`, `context.request` and `context.usage`, and paths in the place of block ids."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.records import Actor
from tests.clocks import ManualClock
from tests.kernel.kernel.calls import OpenKernel, refused
from tests.kernel.reference.examples import CountingIds
from tests.kernel.tools.files import PDF, sent

GOLDEN = Path(__file__).with_name("layout_stream.txt")


class Conversation:
    """Calls of a person and of models in the default context."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.person = kernel.open_session(kernel.owner, "test")

    async def actor(self, name: str, kind: PrincipalKind = PrincipalKind.HUMAN) -> Actor:
        return self.kernel.open_session(await self.kernel.principal(name, kind), "test")

    async def create(self, actor: Actor, role: str, kind: str, content: str, **params: Any) -> str:
        """Create a block that is done."""
        request = {"role": role, "kind": kind, "content": content, "status": "done", **params}
        return str((await self.kernel.call(actor, "block.create", request))["block_id"])

    async def ask(self, content: str, actor: Actor | None = None, **params: Any) -> str:
        return await self.create(actor or self.person, "user", "text", content, **params)

    async def layout(self, **params: Any) -> dict[str, Any]:
        return await self.kernel.call(self.person, "context.layout", params)

    async def texts(self, **params: Any) -> list[str]:
        return [item["text"] for item in (await self.layout(**params))["items"]]

    async def path(self, kind: str, **params: Any) -> str:
        """Return the path of the first item of a type."""
        items = (await self.layout(**params))["items"]
        return str(next(item["path"] for item in items if item["type"] == kind))


@pytest.fixture
def talk(kernel: Kernel) -> Conversation:
    return Conversation(kernel)


@pytest.fixture
async def numbered(data: Path) -> AsyncIterator[Kernel]:
    """A kernel whose ids and times are the same in every run."""
    clock = ManualClock(1_770_603_271_112)
    kernel = await Kernel.open(
        data,
        data.parent,
        registry=Registry(KERNEL_TOOLS),
        owner="amy",
        clock=clock,
        ids=CountingIds(clock),
    )
    yield kernel
    await kernel.close()


async def search_for_restaurants(talk: Conversation) -> None:
    """Write a turn with an attachment, a note, a call with two results, and an answer."""
    aria = await talk.actor("aria", PrincipalKind.MODEL)
    prompt = await talk.ask("Could you find top 3 places to eat here in Wuppertal?")
    menu = PDF.ljust(137_956, b"%")
    file = sent("menu.pdf", menu, summary="2‑page menu, prices & address (Wuppertal)")
    await talk.kernel.call(talk.person, "block.attach", {"block_id": prompt, "files": [file]})
    await talk.create(aria, "model", "thinking", "They are in Wuppertal.", parent_id=prompt)
    note = "Searching for top‑rated restaurants in Wuppertal"
    await talk.create(aria, "model", "text", note, parent_id=prompt)
    tool = {"tool_name": "web_tools.web_search", "input": {"query": "restaurants", "limit": 3}}
    call = await talk.create(
        aria, "model", "tool_call", "restaurants", parent_id=prompt, metadata=tool
    )
    found = '[{"sid": 1, "title": "Zum Alten Zollhaus"}, {"sid": 2, "title": "Köhlerliesel"}]'
    more = {"more": True}
    await talk.create(aria, "tool", "tool_result", found, parent_id=call, metadata=more)
    shown = {"path": "so:sources_pool[1-2]"}
    listed = "1. Zum Alten Zollhaus\n2. Köhlerliesel\n"
    await talk.create(aria, "tool", "tool_result", listed, parent_id=call, metadata=shown)
    await talk.create(aria, "model", "text", "These two are open.", parent_id=prompt)
    await talk.ask("Thanks!")


async def test_layout_of_real_blocks_is_the_golden_stream(numbered: Kernel) -> None:
    talk = Conversation(numbered)
    await search_for_restaurants(talk)
    assert "\n\n".join(await talk.texts()) + "\n" == GOLDEN.read_text("utf-8")


# Since a version


async def test_layout_since_names_the_block_and_who_changed_it(talk: Conversation) -> None:
    first, bo = await talk.ask("Hello"), await talk.actor("bo")
    await talk.ask("More")
    for tool, params, reason in (
        ("block.splice", {"offset": 0, "delete_count": 1, "insert": "h"}, "edited"),
        ("block.exclude", {}, "left_out"),
        ("block.exclude", {"excluded": False}, "inserted"),
        ("block.move", {"after": "default.amy.2"}, "moved"),
    ):
        since = (await talk.layout())["context_version"]
        assert "changed" not in await talk.layout(since=since)
        made = await talk.kernel.call(bo, tool, {"block_id": first, **params})
        changed = (await talk.layout(since=since))["changed"]
        assert changed["reason"] == reason
        assert (changed["block_id"], changed["username"]) == (first, "bo")
        assert changed["context_version"] == made["context_version"]


async def test_layout_since_names_a_second_model_where_none_is_named(
    talk: Conversation, aria: Actor
) -> None:
    prompt = await talk.ask("Hello")
    await talk.create(aria, "model", "text", "Hi", parent_id=prompt)
    since = (await talk.layout())["context_version"]
    lyra = await talk.actor("lyra", PrincipalKind.MODEL)
    block = await talk.create(lyra, "model", "text", "Hi too", parent_id=prompt)
    changed = (await talk.layout(since=since))["changed"]
    assert (changed["reason"], changed["block_id"]) == ("named", block)
    assert "changed" not in await talk.layout(since=since, model="aria")


# Requests


async def test_request_of_a_model_is_what_it_would_be_given(
    talk: Conversation, aria: Actor
) -> None:
    await search_for_restaurants(talk)
    made = await talk.kernel.call(talk.person, "context.request", {})
    assert [one["role"] for one in made["messages"]] == [
        *("user", "assistant", "tool", "assistant", "user")
    ]
    call = made["messages"][1]["content"][-1]
    assert call["parameters"] == {"query": "restaurants", "limit": 3}
    assert made["messages"][2]["tool_call_id"] == call["id"]
    assert made["cache_marks"][-1] == {"message": 4, "block": 1}


async def test_request_among_several_models_takes_the_one_that_is_named(
    talk: Conversation, aria: Actor
) -> None:
    prompt = await talk.ask("Hello")
    await talk.create(aria, "model", "text", "Hi", parent_id=prompt)
    lyra = await talk.actor("lyra", PrincipalKind.MODEL)
    await talk.create(lyra, "model", "text", "Hi too", parent_id=prompt)
    error = await refused(talk.kernel, talk.person, "context.request", {})
    assert error.details["allowed"] == ["aria", "lyra"]
    made = await talk.kernel.call(talk.person, "context.request", {"model": "aria"})
    assert [one["role"] for one in made["messages"]] == ["user", "assistant", "user"]
    assert made["messages"][-1]["content"][0]["text"] == "[lyra say]: Hi too"


# Hiding


async def test_block_exclude_by_a_model_before_the_pre_tail_point_is_refused(
    talk: Conversation, aria: Actor
) -> None:
    prompt = await talk.ask("Hello")
    calls = []
    for _ in range(6):
        calls.append(await talk.create(aria, "model", "tool_call", "ls", parent_id=prompt))
        await talk.create(aria, "tool", "tool_result", "a", parent_id=calls[-1])
    error = await refused(talk.kernel, aria, "block.exclude", {"block_id": calls[1]})
    assert error.code == "permission_denied" and "pre-tail cache point" in error.message
    await talk.kernel.call(aria, "block.exclude", {"block_id": calls[2]})
    assert (await talk.layout())["count"] == 12
    await talk.kernel.call(talk.person, "block.exclude", {"block_id": calls[1]})
    assert (await talk.layout())["count"] == 10


# Paths


async def test_block_read_of_a_path_reads_its_block(talk: Conversation) -> None:
    await search_for_restaurants(talk)
    for item in (await talk.layout())["items"]:
        if "path" in item:
            read = await talk.kernel.call(talk.person, "block.read", {"block_id": item["path"]})
            assert read["block_id"] == item["block_id"]


async def test_path_of_another_context_is_found_with_its_label(
    talk: Conversation, open_kernel: OpenKernel
) -> None:
    await talk.kernel.call(talk.person, "context.create", {"label": "work"})
    block = await talk.ask("There", context="work")
    path = await talk.path("user.prompt", context="work")
    for reference in (f"work/{path}", path):
        read = await talk.kernel.call(talk.person, "block.read", {"block_id": reference})
        assert read["block_id"] == block


async def test_layout_follows_edits_leaves_drafts_out_and_renders_structured_contents(
    talk: Conversation,
) -> None:
    prompt = await talk.ask("Hello")
    await talk.ask("More")
    await talk.kernel.call(talk.person, "block.create", {"role": "user", "kind": "text"})
    assert len(await talk.texts()) == 4, "drafts are not read"
    edit = {"block_id": prompt, "offset": 0, "insert": "!"}
    await talk.kernel.call(talk.person, "block.splice", edit)
    assert (await talk.texts())[1].endswith("\n!Hello")
    schema = {"type": "list", "item_schema": {"type": "text"}}
    listed = {"kind": "text", "schema": schema, "content": ["a", "b"], "parent_id": prompt}
    before = await talk.kernel.call(talk.person, "context.usage", {})
    aria = await talk.actor("aria", PrincipalKind.MODEL)
    await talk.kernel.call(aria, "block.create", listed)
    assert (await talk.texts())[2].endswith("- a\n- b"), "a structured content is its rendering"
    await talk.ask("word " * 1_000)
    after = await talk.kernel.call(talk.person, "context.usage", {})
    assert after["estimated_tokens"] > before["estimated_tokens"] + 500
    assert after["types"][0]["type"] == "user.prompt" and after["types"][0]["items"] == 3
