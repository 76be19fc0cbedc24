"""What a raw update touches is known before it is applied: containers, characters, deletions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pycrdt
import pytest
from pycrdt import Array, Doc, Map, Text

from antiphon_kernel.document.schema import decode_schema
from antiphon_kernel.kernel.context.context import Context
from antiphon_kernel.kernel.kernel import Kernel
from antiphon_kernel.types.access import AccessRole
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.wire.id_set import IdRange
from antiphon_kernel.wire.update import ContentKind, ItemId, Struct, decode_update
from antiphon_kernel.wire.update_writer import encode_update
from tests.kernel.kernel.calls import Make

FIELDS = [
    {"name": "fixed", "field_type": "number", "read_only": True},
    {"name": "free", "field_type": "number", "required": True},
    {"name": "title", "field_type": "text"},
    {"name": "items", "field_type": "list"},
    {"name": "count", "field_type": "counter"},
]
SCHEMA = {
    "type": "composite",
    "sections": [
        {"name": "state", "schema": {"type": "map", "fields": FIELDS}},
        {"name": "sealed", "schema": {"type": "text"}, "read_only": True},
        {"name": "log", "schema": {"type": "log"}},
    ],
}


@pytest.fixture
async def context(kernel: Kernel) -> Context:
    return await kernel.context()


@pytest.fixture
async def block(context: Context, amy: Actor, make: Make) -> str:
    """A structured block with something in each part."""
    header = context.document.header(await make("plain"))
    header = replace(header, id=str(context.next_block_id(amy.principal.id)))
    schema = decode_schema(json.dumps(SCHEMA))
    assert schema is not None
    document = context.document
    await context.write(
        amy, "create", lambda: document.create_block(header, schema=schema), blocks=()
    ).saved()
    return header.id


class Peer:
    """A Yjs client that knows nothing of our rules."""

    def __init__(self, context: Context, client_id: int = 77) -> None:
        self.doc: Doc[Any] = Doc(client_id=client_id)
        self.doc.apply_update(context.document.update_since())
        self._before = self.doc.get_state()

    def content(self, block: str) -> Any:
        return self.doc.get("blocks", type=Map)[block]["content"]

    def update(self) -> bytes:
        update = self.doc.get_update(self._before)
        self._before = self.doc.get_state()
        return update


Change = Callable[[Any], None]


def set_free(content: Any) -> None:
    content["state"]["free"] = 3.0


def count(content: Any) -> None:
    content["state"]["count"]["77"] = "2"


ALLOWED: dict[str, Change] = {
    "field": set_free,
    "text field": lambda content: content["state"]["title"].insert(0, "a title"),
    "list": lambda content: content["state"]["items"].append({"a": 1.5}),
    "counter": count,
    "log": lambda content: content["log"].append("entry"),
}


def set_fixed(content: Any) -> None:
    content["state"]["fixed"] = 1.0


def set_wrong_type(content: Any) -> None:
    content["state"]["free"] = "three"


def set_unknown(content: Any) -> None:
    content["state"]["other"] = 1.0


def replace_text(content: Any) -> None:
    content["state"]["title"] = Text("another")


def anothers_sum(content: Any) -> None:
    content["state"]["count"]["78"] = "2"


def new_section(content: Any) -> None:
    content["more"] = Text()


def nested(content: Any) -> None:
    content["state"]["items"].append(Array([1.0]))


REFUSED: dict[str, tuple[Change, ErrorCode]] = {
    "read-only field": (set_fixed, ErrorCode.READ_ONLY_FIELD),
    "read-only section": (
        lambda content: content["sealed"].insert(0, "x"),
        ErrorCode.READ_ONLY_SECTION,
    ),
    "wrong type": (set_wrong_type, ErrorCode.SCHEMA_VIOLATION),
    "unknown field": (set_unknown, ErrorCode.SCHEMA_VIOLATION),
    "replaced text": (replace_text, ErrorCode.PERMISSION_DENIED),
    "another's sum": (anothers_sum, ErrorCode.SCHEMA_VIOLATION),
    "new section": (new_section, ErrorCode.PERMISSION_DENIED),
    "shared type in a list": (nested, ErrorCode.PERMISSION_DENIED),
}


@pytest.mark.parametrize("name", ALLOWED)
async def test_what_is_not_read_only_may_be_written(
    context: Context, bo: Actor, block: str, name: str
) -> None:
    peer = Peer(context)
    for _ in range(2):
        ALLOWED[name](peer.content(block))
        await context.remote.apply(bo, peer.update(), "client")
    again: Doc[Any] = Doc()
    again.apply_update(context.document.update_since())
    mine = again.get("blocks", type=Map)[block]["content"].to_py()
    assert mine == peer.content(block).to_py()


@pytest.mark.parametrize("name", REFUSED)
async def test_what_may_not_be_written_is_refused_whole(
    context: Context, bo: Actor, block: str, name: str
) -> None:
    change, code = REFUSED[name]
    await refused(context, bo, block, change, code)


async def test_a_log_keeps_its_entries_and_takes_new_ones_at_the_end_only(
    context: Context, bo: Actor, block: str
) -> None:
    peer = Peer(context)
    peer.content(block)["log"].append("first")
    await context.remote.apply(bo, peer.update(), "client")

    def delete(content: Any) -> None:
        del content["log"][0]

    for change in (lambda content: content["log"].insert(0, "before"), delete):
        await refused(context, bo, block, change, ErrorCode.SCHEMA_VIOLATION)


async def refused(
    context: Context, actor: Actor, block: str, change: Change, code: ErrorCode
) -> None:
    peer, before = Peer(context, 78 if code is ErrorCode.PERMISSION_DENIED else 79), None
    before = context.document.state_vector()
    change(peer.content(block))
    with pytest.raises(AntiphonError) as caught:
        await context.remote.apply(actor, peer.update(), "client")
    assert caught.value.code is code
    assert context.document.state_vector() == before


# Characters


def place_of(context: Context, text: str) -> ItemId:
    """The id of the first unit of a text."""
    for one in decode_update(context.document.update_since()).structs:
        content = one.content
        if one.kind is ContentKind.STRING and isinstance(content, str) and text in content:
            units = len(content[: content.index(text)].encode("utf-16-le")) // 2
            return ItemId(one.client, one.clock + units)
    raise AssertionError(text)


@pytest.mark.parametrize("how", ["origin", "right origin", "delete from", "delete to"])
async def test_no_character_is_torn_apart(
    context: Context, bo: Actor, make: Make, how: str
) -> None:
    block = await make("a😀b")
    first = place_of(context, "😀")
    half = ItemId(first.client, first.clock + 1)
    struct: Struct | None = None
    deletions: tuple[IdRange, ...] = ()
    match how:
        case "origin":
            struct = Struct(5, 0, 1, ContentKind.STRING, first, content="x")
        case "right origin":
            struct = Struct(5, 0, 1, ContentKind.STRING, None, half, content="x")
        case "delete from":
            deletions = (IdRange(half.client, half.clock, half.clock + 2),)
        case _:
            deletions = (IdRange(first.client, first.clock - 1, first.clock + 1),)
    update = encode_update([struct] if struct else [], deletions)
    with pytest.raises(AntiphonError) as caught:
        await context.remote.apply(bo, update, "client")
    assert caught.value.code is ErrorCode.INVALID_PARAMS
    assert context.document.text(block) == "a😀b"


async def test_items_that_wait_for_each_other_are_a_gap(
    context: Context, bo: Actor, make: Make
) -> None:
    await make("text")
    update = encode_update(
        [
            Struct(5, 0, 1, ContentKind.STRING, ItemId(6, 0), content="x"),
            Struct(6, 0, 1, ContentKind.STRING, ItemId(5, 0), content="y"),
        ],
        (),
    )
    with pytest.raises(AntiphonError) as caught:
        await context.remote.apply(bo, update, "client")
    assert caught.value.code is ErrorCode.GAP


# Readers


async def test_a_viewer_writes_nothing_and_may_repeat_what_is_known(
    kernel: Kernel, context: Context, bo: Actor, make: Make
) -> None:
    block = await make("x" * 40_000)
    peer = Peer(context)
    del peer.content(block)[0:3]
    await context.remote.apply(bo, peer.update(), "client")
    viewer = replace(bo, role=AccessRole.VIEWER)
    version = context.version(block)
    await context.remote.apply(viewer, context.document.update_since(), "viewer")
    marks = [
        IdRange(one.client, one.clock, one.clock + 1)
        for one in decode_update(context.document.update_since()).structs
        if one.kind is ContentKind.FORMAT
    ]
    assert marks
    await context.remote.apply(viewer, encode_update([], tuple(marks[:1])), "viewer")
    assert context.version(block) == version
    reading = Peer(context, 80)
    del reading.content(block)[0:1]
    with pytest.raises(AntiphonError) as caught:
        await context.remote.apply(viewer, reading.update(), "viewer")
    assert caught.value.code is ErrorCode.PERMISSION_DENIED


async def test_reading_the_places_off_a_document_gives_others_their_turn(
    context: Context, amy: Actor, bo: Actor, make: Make
) -> None:
    block = await make("first")
    for number in range(30):
        await make(f"block {number}")
    reading = asyncio.create_task(context.structure.read())
    await asyncio.sleep(0)
    document = context.document
    await context.write(
        amy, "splice", lambda: document.append(block, " and more"), blocks=[block]
    ).saved()
    await reading
    peer = Peer(context)
    peer.content(block).insert(0, "> ")
    await context.remote.apply(bo, peer.update(), "client")
    assert document.text(block) == "> first and more"


async def test_typing_in_crumbs_is_applied_and_kept_as_one_item(
    context: Context, bo: Actor, make: Make
) -> None:
    block = await make("")
    peer = Peer(context)
    updates: list[bytes] = []
    subscription = peer.doc.observe(lambda event: updates.append(event.update))
    for number in range(3_000):
        peer.content(block).insert(number, "x")
    peer.doc.unobserve(subscription)
    merged = updates[0]
    for at in range(1, len(updates), 100):
        merged = pycrdt.merge_updates(merged, *updates[at : at + 100])
    assert len(decode_update(merged).structs) == 3_000
    heard: list[bytes] = []
    context.commits.subscribe(lambda one: heard.append(one.update))
    await context.remote.apply(bo, merged, "client")
    assert context.document.text(block) == "x" * 3_000
    assert len(decode_update(heard[0]).structs) < 20


async def test_what_lost_against_another_value_is_known_to_be_gone(
    kernel: Kernel, context: Context, bo: Actor, block: str
) -> None:
    rivals = [Peer(context, 77), Peer(context, 78)]
    for number, rival in enumerate(rivals):
        rival.content(block)["state"]["free"] = float(number)
    for rival in rivals:
        await context.remote.apply(bo, rival.update(), "client")
    await kernel.members.give_role(bo.principal, AccessRole.VIEWER)
    viewer = kernel.open_session(bo.principal, "test")
    before = context.document.state_vector()
    await context.remote.apply(viewer, Peer(context, 79).doc.get_update(), "client")
    assert context.document.state_vector() == before
