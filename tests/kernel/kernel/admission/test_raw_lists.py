"""A raw update may do to logs and lists what a tool could do, and no more."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from pycrdt import Array

from antiphon_kernel.document.content import read_content
from antiphon_kernel.kernel.context.context import Context
from antiphon_kernel.kernel.kernel import Kernel
from antiphon_kernel.types.records import Actor
from antiphon_kernel.wire.update import ContentKind, ItemId, Struct, decode_update
from antiphon_kernel.wire.update_writer import encode_update
from tests.kernel.kernel.admission.peers import (
    Peer,
    append_to_log,
    changed,
    refused_by_schema,
    value,
)


@pytest.mark.parametrize("index", [0, 1])
async def test_nothing_is_put_before_an_entry_of_a_log(
    context: Context, bo: Actor, block: str, index: int
) -> None:
    update = changed(context, block, lambda content: content["log"].insert(index, "forged"))
    error = await refused_by_schema(context, bo, update)
    assert error.as_json()["rule"] == "append_only"


@pytest.mark.parametrize("index", [0, 1])
async def test_no_entry_of_a_log_goes(context: Context, bo: Actor, block: str, index: int) -> None:
    def delete(content: Any) -> None:
        del content["log"][index]

    await refused_by_schema(context, bo, changed(context, block, delete))


async def test_appends_that_cross_are_all_taken_whoever_comes_first(
    context: Context, bo: Actor, block: str
) -> None:
    peers = [Peer(context, client) for client in (9, 5, 7)]
    for round_ in range(3):
        for peer in peers:
            peer.content(block)["log"].append(f"{peer.doc.client_id} {round_}")
        for peer in peers[round_:]:
            await context.remote.apply(bo, peer.update(), "client")
            peer.hear()
    for peer in peers:
        await context.remote.apply(bo, peer.update(), "client")
    for peer in peers:
        peer.hear()
    entries = value(context, block, "log")
    assert entries[:2] == ["first", "second"]
    assert sorted(entries[2:]) == sorted(f"{one} {at}" for one in (9, 5, 7) for at in range(3))
    for peer in peers:
        assert peer.content(block)["log"].to_py() == entries
        own = [one for one in entries[2:] if one.startswith(f"{peer.doc.client_id} ")]
        assert own == sorted(own)


async def test_who_says_to_have_missed_the_last_entries_stands_as_one_who_did(
    context: Context, bo: Actor, block: str
) -> None:
    offline = Peer(context, 3)
    for word in ("third", "fourth"):
        update = changed(context, block, partial(append_to_log, word), 9)
        await context.remote.apply(bo, update, "client")
    offline.content(block)["log"].append("from afar")
    await context.remote.apply(bo, offline.update(), "client")
    entries = value(context, block, "log")
    assert [one for one in entries if one != "from afar"] == ["first", "second", "third", "fourth"]
    assert entries.index("from afar") >= 2


async def test_an_entry_taken_back_before_anybody_saw_it_has_never_been_there(
    context: Context, bo: Actor, block: str
) -> None:
    for keeps in (False, True):
        peer = Peer(context, 77 + keeps, keeps=keeps)
        log = peer.content(block)["log"]
        log.append("thought better of")
        del log[len(log) - 1]
        log.append("said")
        await context.remote.apply(bo, peer.update(), "client")
    assert value(context, block, "log") == ["first", "second", "said", "said"]


async def test_an_append_in_front_of_what_is_gone_is_an_append(
    kernel: Kernel, amy: Actor, context: Context, bo: Actor, block: str
) -> None:
    """A JavaScript client that inserts at the end names the removed entry it stands before."""
    await kernel.call(amy, "block.append_log", {"block_id": block, "section": "log", "entry": "x"})
    await kernel.call(amy, "block.undo", {"block_id": block})
    assert value(context, block, "log") == ["first", "second"]
    structs = decode_update(context.document.update_since()).structs
    gone = next(one for one in structs if one.content == ("x",))
    before = ItemId(gone.client, gone.clock)
    item = Struct(77, 0, 1, ContentKind.ANY, gone.origin, before, content=("third",))
    await context.remote.apply(bo, encode_update([item], ()), "client")
    assert value(context, block, "log") == ["first", "second", "third"]


# Lists


@pytest.mark.parametrize(("path", "item"), [("state/few", 7.0), ("things", {"n": 7.0})])
async def test_a_list_is_not_overfilled_in_one_update(
    context: Context, bo: Actor, block: str, path: str, item: object
) -> None:
    limit = 3 if path == "state/few" else 4

    def array(content: Any) -> Any:
        for name in path.split("/"):
            content = content[name]
        return content

    def fill(content: Any, count: int) -> None:
        array(content).extend([item] * count)

    error = await refused_by_schema(
        context, bo, changed(context, block, lambda content: fill(content, limit - 1))
    )
    assert error.as_json()["rule"] == "max_items"
    update = changed(context, block, lambda content: fill(content, limit - 2), 78)
    await context.remote.apply(bo, update, "client")
    assert len(value(context, block, path)) == limit
    await refused_by_schema(
        context, bo, changed(context, block, lambda content: fill(content, 1), 79)
    )

    def replace(content: Any) -> None:
        del array(content)[0:limit]
        fill(content, limit)

    await context.remote.apply(bo, changed(context, block, replace, 80), "client")

    def replace_by_more(content: Any) -> None:
        del array(content)[0:limit]
        fill(content, limit + 1)

    await refused_by_schema(context, bo, changed(context, block, replace_by_more, 81))


async def test_of_two_who_fill_the_last_place_the_second_is_refused(
    context: Context, bo: Actor, block: str
) -> None:
    rivals = [Peer(context, 77), Peer(context, 78)]
    for rival in rivals:
        rival.content(block)["state"]["few"].append(3.0)
    await context.remote.apply(bo, rivals[0].update(), "client")
    await refused_by_schema(context, bo, rivals[1].update())


async def test_a_list_that_is_too_long_takes_deletions(
    context: Context, amy: Actor, bo: Actor, block: str
) -> None:
    def overfill() -> None:
        container = context.document.container(block, "state/few")
        assert isinstance(container, Array)
        container.extend([3.0, 4.0, 5.0])

    await context.write(amy, "test", overfill, blocks=[block]).saved()
    assert read_content(context.document, block, "state/few").violations

    def delete(content: Any, count: int) -> None:
        del content["state"]["few"][0:count]

    await context.remote.apply(
        bo, changed(context, block, lambda content: delete(content, 1)), "client"
    )

    def delete_and_insert(content: Any) -> None:
        delete(content, 1)
        content["state"]["few"].append(1.0)

    await refused_by_schema(context, bo, changed(context, block, delete_and_insert, 78))


async def test_items_that_were_gone_before_they_came_take_no_place(
    context: Context, bo: Actor, block: str
) -> None:
    for keeps in (False, True):
        peer = Peer(context, 77 + keeps, keeps=keeps)
        few = peer.content(block)["state"]["few"]
        for _ in range(4):
            few.append(9.0)
            del few[2]
        await context.remote.apply(bo, peer.update(), "client")
    assert value(context, block, "state/few") == [1, 2]
