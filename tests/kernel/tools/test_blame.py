"""Blame covers the text exactly, names the first author, and survives a restart."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Caller, Make


async def blamed(kernel: Kernel, actor: Actor, block: str) -> list[tuple[str, str]]:
    """Return the author of each piece, neighbours of one author joined."""
    text = (await kernel.call(actor, "block.read", {"block_id": block}))["content"]
    runs = (await kernel.call(actor, "block.blame", {"block_id": block}))["runs"]
    assert [run["start"] for run in runs] == [0, *(run["end"] for run in runs[:-1])][: len(runs)]
    assert (runs[-1]["end"] if runs else 0) == len(text)
    joined: list[tuple[str, str]] = []
    for run in runs:
        piece = text[run["start"] : run["end"]]
        if joined and joined[-1][0] == run["username"]:
            piece = joined.pop()[1] + piece
        joined.append((run["username"], piece))
    return joined


@pytest.fixture
async def shared(kernel: Kernel, aria: Actor, amy: Actor, bo: Actor, make: Make) -> str:
    """A text that a model streams into while bo writes inside it."""
    made = await kernel.call(aria, "block.create", {"parent_id": await make(), "kind": "text"})
    block = str(made["block_id"])
    for word in ("one ", "twö ", "three\n"):
        await kernel.call(aria, "block.append", {"block_id": block, "text": word, "stream": True})
    await kernel.call(bo, "block.splice", {"block_id": block, "offset": 4, "insert": "BO 😀 "})
    await kernel.call(aria, "block.append", {"block_id": block, "text": "four"})
    return block


async def test_every_character_has_its_author(kernel: Kernel, amy: Actor, shared: str) -> None:
    assert await blamed(kernel, amy, shared) == [
        ("aria", "one "),
        ("bo", "BO 😀 "),
        ("aria", "twö three\nfour"),
    ]


async def test_later_changes_are_in_the_next_answer(
    kernel: Kernel, amy: Actor, bo: Actor, shared: str
) -> None:
    await blamed(kernel, amy, shared)
    await kernel.call(amy, "block.splice", {"block_id": shared, "offset": 0, "insert": "Amy: "})
    assert (await blamed(kernel, amy, shared))[0] == ("amy", "Amy: ")
    await kernel.call(bo, "block.undo", {"block_id": shared})
    assert await blamed(kernel, amy, shared) == [
        ("amy", "Amy: "),
        ("aria", "one twö three\nfour"),
    ]


async def test_restored_text_stays_with_its_first_author(
    kernel: Kernel, amy: Actor, shared: str
) -> None:
    before = await blamed(kernel, amy, shared)
    await kernel.call(amy, "block.splice", {"block_id": shared, "offset": 2, "delete_count": 9})
    await kernel.call(amy, "block.undo", {"block_id": shared})
    assert await blamed(kernel, amy, shared) == before


async def test_blame_is_the_same_after_a_restart(
    kernel: Kernel, call: Caller, shared: str, open_kernel: Any
) -> None:
    before = await call("block.blame", block_id=shared)
    await kernel.close()
    again = await open_kernel()
    reader = again.open_session(again.owner, "test")
    after = await again.call(reader, "block.blame", {"block_id": shared})
    assert after["runs"] == before["runs"]
