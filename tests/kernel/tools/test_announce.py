"""Announcement to a model: who is here, and what they changed since it last looked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.enums import Activity
from antiphon_kernel.types.presence import PresenceState
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Make

TEXT = "zero\none\ntwo\nthree\nfour\n"


@pytest.fixture
async def prompt(make: Make) -> str:
    return await make(TEXT, role="user", status="done")


@pytest.fixture
async def answer(kernel: Kernel, aria: Actor, prompt: str) -> str:
    request = {"role": "model", "kind": "text", "content": TEXT, "parent_id": prompt}
    return str((await kernel.call(aria, "block.create", {**request, "status": "done"}))["block_id"])


async def version(kernel: Kernel) -> int:
    return (await kernel.context()).seq


async def announced(kernel: Kernel, actor: Actor, since: int) -> list[str]:
    """Return the lines of changes that aria is told of."""
    params = {"model": "aria", "announce_since": since}
    *_, text = (await kernel.call(actor, "context.layout", params))["tail"]
    said = text.partition("(lines count from 0):\n")[2].splitlines()
    return [line.rpartition(".")[2] if line.startswith("- ar:") else line for line in said]


async def edit(kernel: Kernel, actor: Actor, block: str, *operations: dict[str, Any]) -> None:
    await kernel.call(actor, "block.edit", {"block_id": block, "operations": [*operations]})


def replaced(line: int, content: str) -> dict[str, Any]:
    return {"op": "replace", "start_line": line, "end_line": line + 1, "content": content}


async def test_announce_names_the_lines_and_the_author_of_each_change(
    kernel: Kernel, amy: Actor, bo: Actor, aria: Actor, answer: str
) -> None:
    since = await version(kernel)
    await edit(kernel, bo, answer, replaced(1, "uno"), replaced(3, "tres"))
    await edit(kernel, amy, answer, {"op": "insert", "line": 5, "content": "five\nsix"})
    lines = await announced(kernel, aria, since)
    assert lines == [
        "completion by bo: lines 1, 3, 7 characters removed",
        "completion by amy: lines 5-6",
    ]


async def test_announce_names_what_others_have_changed_and_not_undone(
    kernel: Kernel, amy: Actor, bo: Actor, aria: Actor, answer: str
) -> None:
    since = await version(kernel)
    await edit(kernel, bo, answer, {"op": "delete", "start_line": 2, "end_line": 4})
    deleted = ["completion by bo: line 2, 10 characters removed"]
    assert await announced(kernel, aria, since) == deleted
    await kernel.call(bo, "block.undo", {"block_id": answer})
    assert await announced(kernel, aria, since) == []
    await kernel.call(amy, "block.exclude", {"block_id": answer})
    await kernel.call(amy, "block.exclude", {"block_id": answer, "excluded": False})
    await edit(kernel, aria, answer, replaced(0, "mine"))
    assert await announced(kernel, aria, since) == []
    await edit(kernel, bo, answer, replaced(2, "theirs"))
    await edit(kernel, aria, answer, replaced(4, "mine too"))
    changed = ["completion by bo: line 2, 2 characters removed"]
    assert await announced(kernel, aria, since) == changed


async def test_announce_leaves_out_what_was_seen_and_what_is_new(
    kernel: Kernel, bo: Actor, aria: Actor, answer: str, make: Make
) -> None:
    await edit(kernel, bo, answer, replaced(1, "seen"))
    since = await version(kernel)
    await make("a new message", role="user", status="done")
    assert await announced(kernel, aria, since) == []


async def test_announce_of_a_structured_content_says_so(
    kernel: Kernel, bo: Actor, aria: Actor, answer: str, make: Make
) -> None:
    block = await make(schema={"type": "list"}, content=["a"], parent_id=answer)
    since = await version(kernel)
    await kernel.call(bo, "block.push_item", {"block_id": block, "value": "b"})
    (line,) = await announced(kernel, aria, since)
    assert line.endswith("by bo: its content")


async def test_announce_of_many_blocks_lists_the_latest(
    kernel: Kernel, bo: Actor, aria: Actor, answer: str, make: Make
) -> None:
    blocks = [await make("text\n", role="user", status="done") for _ in range(23)]
    since = await version(kernel)
    for block in blocks:
        await edit(kernel, bo, block, replaced(0, "other"))
    lines = await announced(kernel, aria, since)
    assert (len(lines), lines[-1]) == (21, "- and 3 more blocks")


async def test_announce_says_who_is_here_and_where(
    kernel: Kernel, amy: Actor, bo: Actor, aria: Actor, prompt: str, answer: str, make: Make
) -> None:
    context = await kernel.context()
    draft = await make("not sent", role="user")
    places = ((amy, prompt, Activity.TYPING), (bo, draft, Activity.TYPING), (aria, answer, "idle"))
    for client, (actor, block, activity) in enumerate(places):
        who = actor.principal
        state = PresenceState(who.id, who.username, who.kind, 0, actor.session, block)
        context.presence.put(client, replace(state, activity=activity))
    params = {"model": "aria", "announce_since": context.seq}
    (text,) = (await kernel.call(aria, "context.layout", params))["tail"]
    here = text.splitlines()[2]
    assert here.startswith("here: amy (typing in ar:turn_")
    assert here.endswith(".user.prompt), bo (in a message that is not sent yet)")
    assert "not sent\n" not in text


async def test_announce_is_not_stored_and_not_cached(
    kernel: Kernel, amy: Actor, aria: Actor, answer: str
) -> None:
    before = await version(kernel)
    quiet = await kernel.call(amy, "context.request", {"model": "aria"})
    params = {"model": "aria", "announce_since": before}
    told = await kernel.call(amy, "context.request", params)
    assert told["cache_marks"] == quiet["cache_marks"]
    assert told["messages"][:-1] == quiet["messages"]
    assert told["messages"][-1]["content"][0]["text"].startswith("[ANNOUNCE]\n")
    assert await version(kernel) == before
