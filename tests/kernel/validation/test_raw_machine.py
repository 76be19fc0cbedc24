"""A structured block under random raw updates: only writable texts change.

Some of these are updates that a client would write, some only an attacker makes up.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from pycrdt import Array, Map, Text

from antiphon_kernel.contexts import Context, apply_update
from antiphon_kernel.document.content import read_content
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.records import Actor
from antiphon_kernel.validation import ItemIndex, client_rules, update_validator
from antiphon_kernel.yjs.id_set import IdRange, normalise
from antiphon_kernel.yjs.update import ContentKind, ItemId, SharedType, Struct, decode_update
from antiphon_kernel.yjs.update_writer import encode_update
from tests.kernel.validation.peers import FIELDS, Layout, Peer

CLIENTS = (3, 77, 5_000, 2**40)
NAMES = tuple(str(one["name"]) for one in FIELDS)
VALUES: tuple[Any, ...] = (1.0, True, "words", "12", [1.0], {"n": 1.0}, None, b"bytes")


class Attacker:
    """Somebody who may edit, and edits whatever an update can name."""

    def __init__(self, context: Context, block: str, seed: int) -> None:
        self._context = context
        self._block = block
        self._rng = random.Random(seed)
        self._peers: dict[int, Peer] = {}

    def update(self) -> bytes:
        return self._written() if self._rng.random() < 0.6 else self._made_up()

    # What a client with the CRDT's own interface can do

    def _written(self) -> bytes:
        rng = self._rng
        client = rng.choice(CLIENTS)
        peer = self._peers.get(client)
        if peer is None or rng.random() < 0.5:
            peer = self._peers[client] = Peer(self._context, client, keeps=rng.random() < 0.5)
        content = peer.content(self._block)
        count = rng.choice((1, 1, 1, 2, 4))
        if rng.random() < 0.5:
            with peer.doc.transaction():
                for _ in range(count):
                    self._change(content, client)
        else:
            for _ in range(count):
                self._change(content, client)
        update = peer.update()
        if rng.random() < 0.8:
            # It may be refused: then this document is of no use any more.
            del self._peers[client]
        return update

    def _change(self, content: Any, client: int) -> None:
        rng = self._rng
        match rng.randrange(8):
            case 0:
                self._list(rng.choice((content["log"], content["things"], content["state"]["few"])))
            case 1:
                self._map(content["state"], (*NAMES, "unknown"))
            case 2:
                self._map(content["state"]["count"], (str(client), "78", *NAMES))
            case 3:
                self._text(content["sealed"])
            case _:
                self._text(rng.choice((content["state"]["title"], content["notes"])))

    def _list(self, array: Any) -> None:
        rng = self._rng
        if not isinstance(array, Array):
            return  # It has replaced the list itself, in its own document.
        if len(array) and rng.random() < 0.3:
            at = rng.randrange(len(array))
            del array[at : min(len(array), at + rng.randint(1, 3))]
        else:
            array.insert(rng.randint(0, len(array)), rng.choice(VALUES))

    def _map(self, fields: Any, names: tuple[str, ...]) -> None:
        rng = self._rng
        name = rng.choice(names)
        if not isinstance(fields, Map):
            return
        if name in fields and name not in ("few", "count", "title") and rng.random() < 0.4:
            del fields[name]
        elif name not in ("few", "count", "title"):
            fields[name] = rng.choice(VALUES)

    def _text(self, text: Any) -> None:
        if not isinstance(text, Text):
            return
        if len(text) and self._rng.random() < 0.4:
            del text[0:1]
        else:
            text.insert(0, "x")

    # What no client does

    def _made_up(self) -> bytes:
        rng, layout = self._rng, Layout(self._context, self._block)
        item_index = self._context.structure.item_index
        everything = [item for items in layout.items.values() for item in items]
        structs: list[Struct] = []
        client = rng.choice((*CLIENTS, rng.randrange(1, 2**53)))
        clock = item_index.end(client)
        if clock and rng.random() < 0.1:
            clock -= 1
        if rng.random() < 0.1:
            return self._beside_collected(client, clock, rng.choice(everything))
        for _ in range(rng.randint(0, 3)):
            known = [*everything, *(ItemId(one.client, one.clock) for one in structs)]
            structs.append(self._struct(client, clock, layout, known))
            clock += structs[-1].length
        deleted = []
        for item in rng.sample(everything, rng.randint(0, min(3, len(everything)))):
            deleted.append(IdRange(item.client, item.clock, item.clock + rng.randint(1, 2)))
        if structs and rng.random() < 0.3:
            one = rng.choice(structs)
            deleted.append(IdRange(client, one.clock, one.clock + one.length))
        return encode_update(structs, normalise(deleted))

    def _beside_collected(self, client: int, clock: int, other: ItemId) -> bytes:
        """The engine places such an item by its other neighbour."""
        collected = Struct(client, clock, 1, ContentKind.GC)
        beside = [ItemId(client, clock), other]
        self._rng.shuffle(beside)
        kind = self._rng.choice((ContentKind.ANY, ContentKind.STRING))
        content, length = CONTENTS[kind]
        item = Struct(client, clock + 1, length, kind, beside[0], beside[1], content=content)
        return encode_update([collected, item], ())

    def _struct(self, client: int, clock: int, layout: Layout, known: list[ItemId]) -> Struct:
        rng = self._rng
        path = rng.choice((*layout.containers, *("state/title",) * 8))
        beside = layout.items.get(path) or known
        kind = rng.choice((ContentKind.STRING,) * 5 + tuple(CONTENTS))
        if kind is ContentKind.GC:
            return Struct(client, clock, rng.randint(1, 3), kind)
        content, length = CONTENTS[kind]
        origin = right = parent = key = None
        if rng.random() < 0.6:
            origin = rng.choice(beside if rng.random() < 0.8 else known)
        if rng.random() < 0.3:
            right = rng.choice(beside if rng.random() < 0.8 else known)
        if origin is None and right is None:
            parent = layout.containers[path]
            if rng.random() < 0.3:
                key = rng.choice((*NAMES, str(client), "log", "sealed", "unknown"))
        return Struct(client, clock, length, kind, origin, right, parent, key, content)


CONTENTS: dict[ContentKind, tuple[Any, int]] = {
    ContentKind.GC: (None, 1),
    ContentKind.DELETED: (None, 2),
    ContentKind.ANY: (("x",), 1),
    ContentKind.STRING: ("abc", 3),
    ContentKind.FORMAT: (("s", "1"), 1),
    ContentKind.EMBED: (("1",), 1),
    ContentKind.BINARY: (b"x", 1),
    ContentKind.TYPE: (SharedType.TEXT, 1),
}


SEEDS = int(os.environ.get("ANTIPHON_CASES", "100")) // 100
ATTEMPTS = 250
WRITABLE = ("state/title", "notes")


class Oracle:
    """Conditions of the block after every update that was accepted."""

    def __init__(self, context: Context, block: str) -> None:
        self._context = context
        self._block = block
        self._header = context.document.header(block)
        self._before = self._fixed(context.document)

    def _fixed(self, document: Document) -> Any:
        """Return what no raw update may change: the content without its writable texts."""
        found = read_content(document, self._block)
        assert not found.violations, [str(one) for one in found.violations]
        state = {name: one for name, one in found.value["state"].items() if name != "title"}
        return {**found.value, "notes": None, "state": state}

    def check(self) -> None:
        assert self._context.document.header(self._block) == self._header
        assert self._fixed(self._context.document) == self._before

    def check_at_the_end(self) -> None:
        """Check that the kernel's places are right and the state can be loaded."""
        document, item_index = self._context.document, self._context.structure.item_index
        state = document.update_since()
        again, kept = ItemIndex(), item_index.encode()
        assert kept is not None
        for _ in again.decode_in_parts(kept):
            pass
        assert again.encode() == kept
        again = ItemIndex()
        again.follow(state)
        loaded = Document(1)
        loaded.apply_update(state)
        assert self._fixed(loaded) == self._before
        for path in WRITABLE:
            assert document.text(self._block, path) == loaded.text(self._block, path)
        for one in decode_update(state).structs:
            for clock in range(one.clock, one.clock + one.length):
                item = ItemId(one.client, clock)
                place, other = item_index.place(item), again.place(item)
                assert place.nature is other.nature
                assert place.container.path == other.container.path


async def attack(context: Context, actor: Actor, block: str, seed: int) -> tuple[int, int]:
    """How many updates were accepted, and how many refused."""
    attacker, oracle = Attacker(context, block, seed), Oracle(context, block)
    accepted = refused = 0
    for _ in range(ATTEMPTS):
        update = attacker.update()
        before = context.document.update_since()
        try:
            await apply_update(context, actor, update, "client")
        except AntiphonError:
            refused += 1
            assert context.document.update_since() == before
        else:
            accepted += 1
            oracle.check()
    oracle.check_at_the_end()
    return accepted, refused


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_random_updates_change_writable_texts_only(
    context: Context, bo: Actor, block: str, seed: int
) -> None:
    accepted, refused = await attack(context, bo, block, seed)
    assert accepted > ATTEMPTS // 10
    assert refused > ATTEMPTS // 10


def nothing(*_: Any, **__: Any) -> None:
    """Stand for a rule that has been switched off."""


SWITCHED_OFF: tuple[tuple[Any, str], ...] = (
    (client_rules.ContentRules, "check_item"),
    (client_rules.ContentRules, "check_deletion"),
    (client_rules, "reject_read_only"),
    (update_validator.UpdateValidator, "_reject_split_surrogates"),
)


@pytest.mark.parametrize(
    ("of", "rule"), SWITCHED_OFF, ids=lambda one: getattr(one, "__name__", one)
)
async def test_random_updates_without_one_of_the_rules_change_more(
    context: Context, bo: Actor, block: str, monkeypatch: pytest.MonkeyPatch, of: Any, rule: str
) -> None:
    monkeypatch.setattr(of, rule, nothing)

    async def attack_in_turn() -> None:
        for seed in range(5):
            await attack(context, bo, block, seed)

    with pytest.raises((AssertionError, ExceptionGroup)):
        await attack_in_turn()
