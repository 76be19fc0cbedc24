"""A raw update writes inside what was made with a block, and nowhere beside it."""

from __future__ import annotations

from typing import Any

import pytest
from pycrdt import Doc, Map

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.yjs.update import ContentKind, ItemId, Struct
from antiphon_kernel.yjs.update_writer import encode_update
from tests.kernel.kernel.calls import Make, OpenKernel
from tests.kernel.validation.peers import Layout, Peer, refused


async def test_text_or_a_list_has_no_keys_and_a_map_has_nothing_else(
    context: Context, bo: Actor, block: str
) -> None:
    containers = Layout(context, block).containers
    for path in ("state/title", "log", "things", "state/few", "sealed"):
        kind, content = ContentKind.ANY, (1.0,)
        if path in ("state/title", "sealed"):
            kind, content = ContentKind.STRING, "x"  # type: ignore[assignment]
        item = Struct(77, 0, 1, kind, parent=containers[path], key="k", content=content)
        await refused(context, bo, encode_update([item], ()))
    item = Struct(77, 0, 1, ContentKind.ANY, parent=containers["state"], content=(1.0,))
    await refused(context, bo, encode_update([item], ()))


@pytest.mark.parametrize("path", ["sealed", "title", "header", "log"])
async def test_raw_item_beside_collected_item_is_rejected(
    context: Context, amy: Actor, bo: Actor, block: str, path: str
) -> None:
    """The engine takes the place of such an item from its other neighbour."""
    document = context.document
    await context.write(
        amy, "test", lambda: document.append(block, "open", "state/title"), blocks=[block]
    ).saved()
    layout = Layout(context, block)
    if path == "header":
        after = layout.containers[""]
        after = ItemId(after.client, after.clock - 1)
    else:
        after = layout.items["state/title" if path == "title" else path][0]
    kind, content = ContentKind.STRING, "forged"
    if path in ("log", "header"):
        kind, content = ContentKind.ANY, ("forged",)  # type: ignore[assignment]
    collected = Struct(77, 0, 1, ContentKind.GC)
    for one in (
        Struct(77, 1, 6, kind, ItemId(77, 0), after, content=content),
        Struct(77, 1, 6, kind, after, ItemId(77, 0), content=content),
    ):
        length = 6 if kind is ContentKind.STRING else 1
        update = encode_update([collected, one._replace(length=length)], ())
        await refused(context, bo, update)
    apart: Doc[Any] = Doc()
    apart.apply_update(document.update_since())
    forged = Struct(77, 1, 6, ContentKind.STRING, ItemId(77, 0), layout.items["sealed"][0])
    forged = forged._replace(content="forged")
    apart.apply_update(encode_update([collected, forged], ()))
    assert str(apart.get("blocks", type=Map)[block]["content"]["sealed"]) == "forgedclosed"


async def test_mark_that_the_engine_cannot_read_is_no_update(
    context: Context, bo: Actor, make: Make
) -> None:
    first = Layout(context, await make("text")).items[""][0]
    for mark in ("{", "NaN", "1e999", '"\\ud800"', "", "[" * 200 + "]" * 200):
        item = Struct(77, 0, 1, ContentKind.FORMAT, first, content=("bold", mark))
        await refused(context, bo, encode_update([item], ()), ErrorCode.INVALID_PARAMS)


async def test_text_takes_characters_and_marks_only(
    context: Context, bo: Actor, block: str
) -> None:
    parent = Layout(context, block).containers["state/title"]
    contents = {ContentKind.EMBED: ("1",), ContentKind.BINARY: b"x", ContentKind.ANY: (1.0,)}
    for kind, content in contents.items():
        item = Struct(77, 0, 1, kind, parent=parent, content=content)
        await refused(context, bo, encode_update([item], ()), ErrorCode.PERMISSION_DENIED)


@pytest.mark.parametrize("whose", ["now", "before the restart", "genesis"])
async def test_id_that_the_kernel_wrote_with_stays_its_own(
    kernel: Kernel, bo: Actor, context: Context, make: Make, open_kernel: OpenKernel, whose: str
) -> None:
    block = await make("hello")
    client = context.document.client_id
    if whose == "genesis":
        client = context.document.genesis_client or 0
    if whose == "before the restart":
        await kernel.close()
        kernel = await open_kernel()
        context = await kernel.context()
        assert context.document.client_id != client
    peer = Peer(context, client)
    assert peer.doc.get_state() != b"\x00"
    peer.content(block).insert(0, "forged ")
    await refused(context, bo, peer.update(), ErrorCode.PERMISSION_DENIED)
