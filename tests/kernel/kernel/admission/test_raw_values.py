"""A raw update brings the values that a tool could set, and takes none away that must stay."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest

from antiphon_kernel.kernel.context.context import Context
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.wire.any_value import UNDEFINED
from antiphon_kernel.wire.id_set import IdRange
from antiphon_kernel.wire.update import ContentKind, Struct
from antiphon_kernel.wire.update_writer import encode_update
from tests.kernel.kernel.admission.peers import (
    Change,
    Layout,
    Peer,
    append_to_log,
    changed,
    refused,
    refused_by_schema,
    value,
)
from tests.kernel.kernel.calls import Make

# Values

NO_JSON = (
    math.inf,
    -math.inf,
    math.nan,
    b"bytes",
    2**53,
    -(2**60),
    UNDEFINED,
)


@pytest.mark.parametrize("wrong", NO_JSON, ids=repr)
@pytest.mark.parametrize("where", ["number", "list of numbers", "list", "log"])
@pytest.mark.parametrize("nested", [False, True])
async def test_what_json_cannot_hold_comes_in_nowhere(
    context: Context, bo: Actor, block: str, make: Make, wrong: object, where: str, nested: bool
) -> None:
    free = await make(schema={"type": "list"}, content=[1])
    paths = {"number": "state", "list of numbers": "state/few", "list": "", "log": "log"}
    of = free if where == "list" else block
    parent = Layout(context, of).containers[paths[where]]
    key = "must" if where == "number" else None
    items = Layout(context, of).items
    origin = items[paths[where]][-1] if key is None else None
    content = ({"a": [wrong]},) if nested else (wrong,)
    place: dict[str, Any] = {"origin": origin} if origin else {"parent": parent, "key": key}
    item = Struct(77, 0, 1, ContentKind.ANY, **place, content=content)
    await refused_by_schema(context, bo, encode_update([item], ()))


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("must", "three"),
        ("must", True),
        ("must", None),
        ("must", [1.0]),
        ("flag", 1.0),
        ("flag", "true"),
        ("flag", None),
        ("due", "tomorrow"),
        ("due", "2026-01-31T09:30:00"),
        ("due", 5.0),
        ("title", "a text that replaces the shared one"),
        ("few", [1.0]),
        ("count", "5"),
        ("count", 5.0),
        ("77", "5"),
        ("unknown", 1.0),
        ("must/unknown", 1.0),
    ],
)
async def test_a_field_takes_what_its_type_asks_for(
    context: Context, bo: Actor, block: str, path: str, wrong: object
) -> None:
    state = Layout(context, block).containers["state"]
    item = Struct(77, 0, 1, ContentKind.ANY, parent=state, key=path, content=(wrong,))
    await refused_by_schema(context, bo, encode_update([item], ()))


@pytest.mark.parametrize(
    "wrong", [{"n": "one"}, {"words": 5.0, "n": 1.0}, {"n": None}, {"n": 1.0, "m": 1.0}, [1.0], 1.0]
)
async def test_an_item_is_what_the_schema_of_the_items_asks_for(
    context: Context, bo: Actor, block: str, wrong: Any
) -> None:
    update = changed(context, block, lambda content: content["things"].append(wrong))
    await refused_by_schema(context, bo, update)


async def test_values_may_be_as_large_as_those_of_tools(
    context: Context, bo: Actor, make: Make, block: str
) -> None:
    limit = context.limits.value_code_points
    for size, fits in ((limit - 2, True), (limit - 1, False)):
        update = changed(context, block, partial(append_to_log, "x" * size))
        if fits:
            await context.remote.apply(bo, update, "client")
            continue
        assert (await refused(context, bo, update)).code is ErrorCode.TOO_LARGE


@pytest.mark.parametrize("content", ["list", "log", "text"])
async def test_a_part_may_become_as_long_as_with_tools(
    context: Context, bo: Actor, make: Make, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    limit = {"block_code_points": 5} if content == "text" else {"list_items": 5}
    limits = context.limits.model_copy(update=limit)
    monkeypatch.setattr(context.remote, "limits", limits)
    held = "漢字a" if content == "text" else [1, 2, 3]
    block = await make(schema={"type": content}, content=held)

    def grow(peer: Any, by: int) -> None:
        if content == "text":
            peer.insert(0, "x" * by)
        else:
            peer.extend([4.0] * by)

    update = changed(context, block, lambda peer: grow(peer, 3))
    assert (await refused(context, bo, update)).code is ErrorCode.TOO_LARGE
    update = changed(context, block, lambda peer: grow(peer, 2), 78)
    await context.remote.apply(bo, update, "client")


# Required values and sums


def overwrite_and_delete(content: Any) -> None:
    content["state"]["must"] = 3.0
    del content["state"]["must"]


def delete_required(content: Any) -> None:
    del content["state"]["must"]


@pytest.mark.parametrize("change", [delete_required, overwrite_and_delete])
@pytest.mark.parametrize("keeps", [False, True])
async def test_a_required_value_does_not_go(
    context: Context, bo: Actor, block: str, change: Change, keeps: bool
) -> None:
    peer = Peer(context, keeps=keeps)
    with peer.doc.transaction():
        change(peer.content(block))
    error = await refused_by_schema(context, bo, peer.update())
    assert error.as_json()["rule"] == "required"


@pytest.mark.parametrize("keeps", [False, True])
async def test_a_required_value_is_overwritten_any_number_of_times(
    context: Context, bo: Actor, block: str, keeps: bool
) -> None:
    peer = Peer(context, keeps=keeps)
    for number in range(1, 30):
        peer.content(block)["state"]["must"] = float(number)
    await context.remote.apply(bo, peer.update(), "client")
    assert value(context, block, "state/must") == 29
    peer.hear()
    peer.content(block)["state"]["must"] = 30.0
    await context.remote.apply(bo, peer.update(), "client")
    assert value(context, block, "state/must") == 30


async def test_a_required_value_is_not_taken_away_by_one_that_comes_deleted(
    context: Context, bo: Actor, block: str
) -> None:
    layout = Layout(context, block)
    held = [
        item
        for item in layout.items["state"]
        if context.structure.placement.place(item).key == "must"
    ][-1]
    gone = Struct(77, 0, 1, ContentKind.DELETED, held)
    beside = Struct(77, 0, 1, ContentKind.ANY, parent=layout.containers["state"], key="must")
    beside = beside._replace(content=(4.0,))
    deleted = IdRange(held.client, held.clock, held.clock + 1)
    for structs, deletions in (
        ([gone], ()),
        ([gone], (IdRange(77, 0, 1),)),
        ([beside], (deleted,)),
        ([beside], (deleted, IdRange(77, 0, 1))),
    ):
        await refused_by_schema(context, bo, encode_update(structs, tuple(sorted(deletions))))
    assert value(context, block, "state/must") == 2


async def test_a_counter_takes_from_each_client_its_own_sum(
    context: Context, bo: Actor, block: str
) -> None:
    theirs = next(iter(Peer(context).content(block)["state"]["count"].keys()))

    def set_sum(key: str, sum_: Any, content: Any) -> None:
        content["state"]["count"][key] = sum_

    wrong: list[tuple[str, Any]] = [
        ("78", "2"),
        (theirs, "0"),
        ("77", "two"),
        ("77", 2.0),
        ("77", None),
        ("77", "9" * 301),
        ("77", "1e400"),
        ("77", ["2"]),
    ]
    for key, sum_ in wrong:
        update = changed(context, block, partial(set_sum, key, sum_))
        await refused_by_schema(context, bo, update)

    def delete(content: Any) -> None:
        del content["state"]["count"][theirs]

    def write_and_delete(content: Any) -> None:
        set_sum("77", "4", content)
        del content["state"]["count"]["77"]

    await refused_by_schema(context, bo, changed(context, block, delete))
    peer = Peer(context)
    for number in range(1, 9):
        peer.content(block)["state"]["count"]["77"] = str(number)
    await context.remote.apply(bo, peer.update(), "client")
    assert value(context, block, "state/count") == 13
    peer.hear()
    write_and_delete(peer.content(block))
    await refused_by_schema(context, bo, peer.update())


async def test_two_sums_that_come_together_make_no_counter_that_is_too_long(
    context: Context, bo: Actor, block: str
) -> None:
    count, nearly = Layout(context, block).containers["state/count"], "9" * 299 + "0"
    structs = [
        Struct(client, 0, 1, ContentKind.ANY, parent=count, key=str(client), content=(nearly,))
        for client in (70, 71)
    ]
    await refused_by_schema(context, bo, encode_update(structs, ()))
    await context.remote.apply(bo, encode_update(structs[:1], ()), "client")
