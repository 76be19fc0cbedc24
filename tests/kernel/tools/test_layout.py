"""`context.layout`, `context.request` and `context.usage`, and paths in the place of block ids."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.conversation import layout_of
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
EXAMPLE = Path(__file__).with_name("layout_example.txt")


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
async def aria(talk: Conversation) -> Actor:
    return await talk.actor("aria", PrincipalKind.MODEL)


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


async def test_layout_of_real_blocks_has_the_forms_of_the_example_it_was_made_after(
    numbered: Kernel,
) -> None:
    """Compare, to the character, with the example of the stream that the text forms come from.

    It is written by hand, and what differs from what is rendered here is put in its place below:

    - the ids: ours are derived from the ids of blocks, so that they are the same after a restart
      and others in a fork, and a turn's ends with hexadecimal digits;
    - the time: ours has milliseconds, and is the one in the turn's id;
    - the parameters and the result, which the example leaves out as `{ ... }` and
      `[ ... truncated ... ]`: ours are written in full, in lines.
    """
    talk = Conversation(numbered)
    aria = await talk.actor("aria", PrincipalKind.MODEL)
    prompt = await talk.ask("Could you find top 3 places to eat here in Wuppertal?")
    summary = "2‑page menu, prices & address (Wuppertal)"
    file = sent("menu.pdf", PDF.ljust(137_956, b"%"), summary=summary)
    await talk.kernel.call(talk.person, "block.attach", {"block_id": prompt, "files": [file]})
    note = "Searching for top‑rated restaurants in Wuppertal"
    await talk.create(aria, "model", "text", note, parent_id=prompt)
    tool = {"tool_name": "web_tools.web_search", "input": {"query": "restaurants"}}
    call = await talk.create(aria, "model", "tool_call", "", parent_id=prompt, metadata=tool)
    found = '[{"sid": 1}]'
    await talk.create(aria, "tool", "tool_result", found, parent_id=call, metadata={"more": True})
    shown = {"path": "so:sources_pool[1-5]"}
    await talk.create(aria, "tool", "tool_result", "...", parent_id=call, metadata=shown)
    items = (await talk.layout())["items"]
    (turn,) = {item["turn_id"] for item in items}
    round_ = next(item["round"] for item in items if item["type"] == "react.tool.call")
    expected = EXAMPLE.read_text("utf-8")
    for theirs, ours in (
        ("turn_1770603271112_2yz1lp", turn),
        ("tc_18f62649fb3b", round_),
        ("ts=2026-02-09T02:14:32.676425Z", "ts=2026-02-09T02:14:31.112Z"),
        ("{ ... }", '{\n    "query": "restaurants"\n  }'),
        ("[ ... truncated ... ]", '[\n    {\n      "sid": 1\n    }\n  ]'),
    ):
        assert theirs in expected
        expected = expected.replace(theirs, ours)
    assert "\n\n".join(item["text"] for item in items) + "\n" == expected


async def test_layout_after_a_restart_is_the_same(open_kernel: OpenKernel) -> None:
    kernel = await open_kernel()
    talk = Conversation(kernel)
    await search_for_restaurants(talk)
    before = await talk.layout()
    await kernel.close()
    assert await Conversation(await open_kernel()).layout() == before


async def test_layout_of_a_fork_has_turns_of_its_own(talk: Conversation) -> None:
    await search_for_restaurants(talk)
    await talk.kernel.call(talk.person, "context.fork", {"context": "default", "label": "other"})
    there, here = await talk.layout(context="other"), await talk.layout()
    assert [item["type"] for item in there["items"]] == [item["type"] for item in here["items"]]
    turns = [{item["turn_id"] for item in one["items"]} for one in (here, there)]
    assert turns[0].isdisjoint(turns[1])


async def test_layout_leaves_drafts_out_and_follows_edits(talk: Conversation) -> None:
    prompt = await talk.ask("Hello")
    assert len(await talk.texts()) == 2
    await talk.kernel.call(talk.person, "block.create", {"role": "user", "kind": "text"})
    assert len(await talk.texts()) == 2
    splice = {"block_id": prompt, "offset": 5, "insert": "!"}
    await talk.kernel.call(talk.person, "block.splice", splice)
    assert (await talk.texts())[1].endswith("\nHello!")


async def test_layout_of_structured_content_is_its_rendering(
    talk: Conversation, aria: Actor
) -> None:
    schema = {"type": "list", "item_schema": {"type": "text"}}
    listed = {"kind": "text", "schema": schema, "content": ["a", "b"]}
    await talk.kernel.call(aria, "block.create", listed | {"parent_id": await talk.ask("Hello")})
    assert (await talk.texts())[2].endswith("- a\n- b")


async def test_layout_with_last_shows_the_end_and_counts_all(talk: Conversation) -> None:
    await search_for_restaurants(talk)
    shown = await talk.layout(last=2)
    assert shown["count"] == 11
    assert [item["index"] for item in shown["items"]] == [9, 10]


async def test_layout_of_an_unknown_model_is_refused(talk: Conversation) -> None:
    for name, said in (("nobody", "no principal"), ("amy", "is no model")):
        error = await refused(talk.kernel, talk.person, "context.layout", {"model": name})
        assert said in error.message


async def test_layout_since_a_later_version_is_refused(talk: Conversation) -> None:
    error = await refused(talk.kernel, talk.person, "context.layout", {"since": 99})
    assert error.details["field"] == "since"


# Since a version


@pytest.mark.parametrize(
    ("tool", "params", "reason"),
    [
        ("block.splice", {"offset": 0, "delete_count": 1, "insert": "h"}, "edited"),
        ("block.exclude", {}, "left_out"),
        ("block.move", {"after": "default.amy.2"}, "moved"),
    ],
)
async def test_layout_since_names_the_block_and_who_changed_it(
    talk: Conversation, tool: str, params: dict[str, Any], reason: str
) -> None:
    first = await talk.ask("Hello")
    await talk.ask("More")
    since = (await talk.layout())["context_version"]
    assert "changed" not in await talk.layout(since=since)
    bo = await talk.actor("bo")
    made = await talk.kernel.call(bo, tool, {"block_id": first, **params})
    changed = (await talk.layout(since=since))["changed"]
    assert changed["reason"] == reason
    assert (changed["block_id"], changed["username"]) == (first, "bo")
    assert changed["context_version"] == made["context_version"]


async def test_layout_since_names_a_block_that_was_inserted(
    talk: Conversation, aria: Actor
) -> None:
    first = await talk.ask("Hello")
    await talk.ask("More")
    since = (await talk.layout())["context_version"]
    inserted = await talk.create(aria, "model", "text", "By the way", after=first, parent_id=first)
    changed = (await talk.layout(since=since))["changed"]
    assert (changed["reason"], changed["block_id"]) == ("inserted", inserted)


async def test_layout_since_names_a_second_person_who_wrote(talk: Conversation) -> None:
    await talk.ask("Hello")
    since = (await talk.layout())["context_version"]
    second = await talk.ask("Hello from me", await talk.actor("bo"))
    changed = (await talk.layout(since=since))["changed"]
    assert (changed["reason"], changed["block_id"]) == ("named", second)
    assert changed["username"] == "bo"


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


async def test_layout_since_an_excluded_result_names_it(talk: Conversation, aria: Actor) -> None:
    prompt = await talk.ask("Hello")
    call = await talk.create(aria, "model", "tool_call", "ls", parent_id=prompt)
    result = await talk.create(aria, "tool", "tool_result", "a", parent_id=call)
    since = (await talk.layout())["context_version"]
    await talk.kernel.call(talk.person, "block.exclude", {"block_id": result})
    changed = (await talk.layout(since=since))["changed"]
    assert (changed["reason"], changed["block_id"]) == ("left_out", result)


async def test_layout_since_the_appended_is_no_change(talk: Conversation, aria: Actor) -> None:
    prompt = await talk.ask("Hello")
    since = (await talk.layout())["context_version"]
    await talk.create(aria, "model", "text", "Hi", parent_id=prompt)
    assert "changed" not in await talk.layout(since=since)


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


async def test_request_clamps_to_the_room_that_the_estimate_leaves(talk: Conversation) -> None:
    await talk.ask("Hello")
    ask = {"max_tokens": 1_000_000, "window": {"input": 1_000, "output": 5_000}}
    made = await talk.kernel.call(talk.person, "context.request", ask)
    assert made["max_tokens"] == 1_000 - made["estimated_tokens"]


async def test_usage_grows_with_the_text_and_names_its_type(talk: Conversation) -> None:
    await talk.ask("Hello")
    before = await talk.kernel.call(talk.person, "context.usage", {})
    await talk.ask("word " * 1_000)
    after = await talk.kernel.call(talk.person, "context.usage", {})
    assert after["estimated_tokens"] > before["estimated_tokens"] + 500
    assert after["types"][0]["type"] == "user.prompt" and after["types"][0]["items"] == 2


async def test_request_of_an_empty_context_has_no_messages(talk: Conversation) -> None:
    made = await talk.kernel.call(talk.person, "context.request", {})
    assert (made["messages"], made["cache_marks"], made["estimated_tokens"]) == ([], [], 0)


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


async def test_block_edit_of_a_path_with_its_version_edits_its_block(talk: Conversation) -> None:
    await talk.ask("Hello")
    path = await talk.path("user.prompt")
    operation = {"op": "replace", "start_line": 0, "end_line": 1, "content": "Bye"}
    edit = {"block_id": path, "base_version": 1, "operations": [operation]}
    await talk.kernel.call(talk.person, "block.edit", edit)
    assert (await talk.texts())[1].endswith("\nBye")


async def test_path_of_another_context_is_found_with_its_label(
    talk: Conversation, open_kernel: OpenKernel
) -> None:
    await talk.kernel.call(talk.person, "context.create", {"label": "work"})
    block = await talk.ask("There", context="work")
    path = await talk.path("user.prompt", context="work")
    for reference in (f"work/{path}", path):
        read = await talk.kernel.call(talk.person, "block.read", {"block_id": reference})
        assert read["block_id"] == block


@pytest.mark.parametrize(
    "reference",
    [
        "ar:turn_1_abcdef.user.prompt",
        "default/ar:turn_1_abcdef.user.prompt",
        "ar:current_turn.user.prompt",
        "so:sources_pool[1-999999999]",
        "tc:" + "9" * 100_000,
    ],
)
async def test_path_of_no_block_is_refused(talk: Conversation, reference: str) -> None:
    error = await refused(talk.kernel, talk.person, "block.read", {"block_id": reference})
    assert error.code == "block_not_found" and len(error.message) < 500


async def test_layout_after_an_edit_reads_that_block_anew_and_no_other(talk: Conversation) -> None:
    prompt = await talk.ask("Hello")
    await talk.ask("More")
    layout = layout_of(await talk.kernel.context())
    before = [item.block for item in layout.arranged().items]
    edit = {"block_id": prompt, "offset": 0, "insert": "!"}
    await talk.kernel.call(talk.person, "block.splice", edit)
    after = [item.block for item in layout.arranged().items]
    kept = [one is other for one, other in zip(before, after, strict=True)]
    assert kept == [False, False, True, True]
