"""Yjs clients that know nothing of our rules, and a schema with every kind of part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pycrdt import Doc, Map, Text

from antiphon_kernel.contexts import Context, apply_update
from antiphon_kernel.document.content import read_content
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import DRAFT_SEQ_MIN
from antiphon_kernel.types.records import Actor
from antiphon_kernel.yjs.update import ContentKind, ItemId, Struct, decode_update

ITEM = {
    "type": "map",
    "fields": [
        {"name": "n", "field_type": "number", "required": True},
        {"name": "words", "field_type": "text"},
    ],
}
FIELDS: list[dict[str, Any]] = [
    {"name": "fixed", "field_type": "number", "read_only": True, "default": 1},
    {"name": "must", "field_type": "number", "required": True, "default": 2},
    {"name": "flag", "field_type": "boolean"},
    {"name": "due", "field_type": "timestamp"},
    {"name": "title", "field_type": "text"},
    {"name": "stamp", "field_type": "text", "read_only": True},
    {"name": "few", "field_type": "list", "max_items": 3, "item_schema": {"type": "number"}},
    {"name": "count", "field_type": "counter"},
    # Its name is that of a client, so that its sum could be taken for the field.
    {"name": "77", "field_type": "counter"},
]
SCHEMA = {
    "type": "composite",
    "sections": [
        {"name": "state", "schema": {"type": "map", "fields": FIELDS}},
        {"name": "sealed", "schema": {"type": "text"}, "read_only": True},
        {"name": "notes", "schema": {"type": "text"}},
        {"name": "log", "schema": {"type": "log"}},
        {"name": "things", "schema": {"type": "list", "max_items": 4, "item_schema": ITEM}},
    ],
}


class Peer:
    """A client with a document of its own."""

    def __init__(self, context: Context, client_id: int = 77, *, keeps: bool = False) -> None:
        """`keeps`: whether it remembers what was deleted."""
        self.context = context
        self.doc: Doc[Any] = Doc(client_id=client_id, skip_gc=keeps)
        self.hear()

    def hear(self) -> None:
        self.doc.apply_update(self.context.document.update_since())

    @property
    def blocks(self) -> Map[Any]:
        return self.doc.get("blocks", type=Map)

    def content(self, block: str) -> Any:
        return self.blocks[block]["content"]

    def text(self, block: str, path: str) -> Text:
        content = self.content(block)
        for name in path.split("/"):
            content = content[name]
        assert isinstance(content, Text)
        return content

    def draft(self, actor: Actor, text: str = "", number: int = 0, **fields: str) -> str:
        block = f"{self.context.id}.{actor.principal.id}.{DRAFT_SEQ_MIN + number}"
        usual = {"kind": "text", "role": "user", "status": "pending", "order": "a5"}
        with self.doc.transaction():
            self.blocks[block] = Map({**usual, **fields, "content": Text(text)})
        return block

    def update(self) -> bytes:
        """Return what the kernel lacks, as the protocol sends it."""
        return self.doc.get_update(self.context.document.state_vector())

    async def send(self, actor: Actor) -> None:
        await apply_update(self.context, actor, self.update(), self)


class Layout:
    """Parts of a block, so that updates can be made up that no client would write."""

    def __init__(self, context: Context, block: str) -> None:
        self.containers: dict[str, ItemId] = {}
        """The shared types of the block by their path; the content itself is ""."""
        self.items: dict[str, list[ItemId]] = {}
        """Items written into each, gone or not, in the order of client and clock."""
        structs = decode_update(context.document.update_since()).structs
        made = {ItemId(one.client, one.clock): one for one in structs}
        item_index = context.structure.item_index
        for item, one in made.items():
            container = item_index.place(item).container
            if container.block == block and container.path is not None:
                ids = [ItemId(one.client, one.clock + at) for at in range(one.length)]
                self.items.setdefault("/".join(container.path), []).extend(ids)
            if one.kind is ContentKind.TYPE:
                names = _names(one, made)
                if names[:2] == [block, "content"]:
                    self.containers["/".join(names[2:])] = item


def _names(item: Struct, made: dict[ItemId, Struct]) -> list[str]:
    names = [str(item.key)]
    at = item
    while isinstance(at.parent, ItemId):
        at = made[at.parent]
        names.insert(0, str(at.key))
    return names


def value(context: Context, block: str, path: str) -> Any:
    return read_content(context.document, block, path).value


async def refused(
    context: Context, actor: Actor, update: bytes, code: ErrorCode | None = None
) -> AntiphonError:
    """Hand an update in, which must change nothing; return the error, of this code if one is given."""
    before = context.document.update_since()
    with pytest.raises(AntiphonError) as caught:
        await apply_update(context, actor, update, "client")
    assert context.document.update_since() == before
    assert caught.value.code is (code or caught.value.code)
    return caught.value


def changed(
    context: Context, block: str, change: Callable[[Any], None], client_id: int = 77
) -> bytes:
    """The update of a client that knows everything."""
    peer = Peer(context, client_id)
    with peer.doc.transaction():
        change(peer.content(block))
    return peer.update()
