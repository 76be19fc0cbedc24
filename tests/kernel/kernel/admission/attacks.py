"""Updates at random: some that a client would write, some that only an attacker makes up."""

from __future__ import annotations

import math
import random
from typing import Any

from pycrdt import Array, Map, Text

from antiphon_kernel.kernel.context.context import Context
from antiphon_kernel.wire.any_value import UNDEFINED
from antiphon_kernel.wire.id_set import IdRange, normalise
from antiphon_kernel.wire.update import ContentKind, ItemId, SharedType, Struct
from antiphon_kernel.wire.update_writer import encode_update
from tests.kernel.kernel.admission.peers import FIELDS, Layout, Peer

CLIENTS = (3, 77, 5_000, 2**40)
FITTING: dict[str, Any] = {
    "number": 4.5,
    "boolean": True,
    "timestamp": "2026-01-31T09:30:00Z",
    "text": "words",
    "list": [1.0],
    "counter": "12",
}
VALUES: tuple[Any, ...] = (
    *FITTING.values(),
    None,
    math.nan,
    math.inf,
    b"bytes",
    2**60,
    "9" * 300,
    {"n": 1.0},
    {"n": "one"},
    {"words": "w", "n": 2.0},
    {"deep": [math.nan]},
)


class Attacker:
    """Somebody who may edit, and edits whatever an update can name."""

    def __init__(self, context: Context, block: str, seed: int) -> None:
        self._context = context
        self._block = block
        self._rng = random.Random(seed)
        self._peers: dict[int, Peer] = {}
        self.knew_all = False
        """Whether the last update is of a client that had heard of everything before."""

    def update(self) -> bytes:
        """The next attempt."""
        return self._written() if self._rng.random() < 0.6 else self._made_up()

    # What a client with the CRDT's own interface can do

    def _written(self) -> bytes:
        rng = self._rng
        client = rng.choice(CLIENTS)
        peer = self._peers.get(client)
        self.knew_all = peer is None or rng.random() < 0.5
        if peer is None or self.knew_all:
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
        match rng.randrange(4):
            case 0:
                self._list(content["log"])
            case 1:
                self._list(rng.choice((content["things"], content["state"].get("few"))))
            case 2:
                self._field(content["state"], client)
            case _:
                text = content["state"].get("title") if rng.random() < 0.8 else content["sealed"]
                self._text(text)

    def _list(self, array: Any) -> None:
        rng = self._rng
        if not isinstance(array, Array):
            return  # It has replaced the list itself, in its own document.
        if len(array) and rng.random() < 0.3:
            at = rng.randrange(len(array))
            del array[at : min(len(array), at + rng.randint(1, 3))]
        elif rng.random() < 0.5:
            array.append(self._value())
        else:
            array.insert(rng.randint(0, len(array)), self._value())

    def _field(self, state: Map[Any], client: int) -> None:
        rng = self._rng
        field = rng.choice(FIELDS)
        name = str(field["name"])
        if isinstance(state.get(name), Map):
            count, key = state[name], str(rng.choice((client, client, 78)))
            if key in count and rng.random() < 0.3:
                del count[key]
            else:
                count[key] = rng.choice(("1", "25.5", self._value()))
        elif name in state and rng.random() < 0.25:
            del state[name]
        elif rng.random() < 0.6:
            state[name] = FITTING[str(field["field_type"])]
        else:
            state[rng.choice((name, "unknown"))] = self._value()

    def _text(self, text: Any) -> None:
        if not isinstance(text, Text):
            return
        if len(text) and self._rng.random() < 0.4:
            del text[0:1]
        else:
            text.insert(0, "x")

    def _value(self) -> Any:
        rng = self._rng
        return rng.choice((1.0, {"n": 1.0})) if rng.random() < 0.6 else rng.choice(VALUES)

    # What no client does

    def _made_up(self) -> bytes:
        self.knew_all = False
        rng, layout = self._rng, Layout(self._context, self._block)
        placement = self._context.structure.placement
        everything = [item for items in layout.items.values() for item in items]
        structs: list[Struct] = []
        client = rng.choice((*CLIENTS, rng.randrange(1, 2**53)))
        clock = placement.end(client)
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
        content, length = (("x",), 1) if kind is ContentKind.ANY else ("abc", 3)
        item = Struct(client, clock + 1, length, kind, beside[0], beside[1], content=content)
        return encode_update([collected, item], ())

    def _struct(self, client: int, clock: int, layout: Layout, known: list[ItemId]) -> Struct:
        rng = self._rng
        path = rng.choice((*layout.containers, "log", "things", "state/few"))
        beside = layout.items.get(path) or known
        kind = rng.choice((ContentKind.ANY,) * 5 + tuple(CONTENTS))
        if kind is ContentKind.GC:
            return Struct(client, clock, rng.randint(1, 3), kind)
        content, length = CONTENTS.get(kind, (None, 1))
        if kind is ContentKind.ANY:
            values = (self._value(), self._value())[: rng.choice((1, 1, 2))]
            if rng.random() < 0.1:
                values = (UNDEFINED,)
            content, length = values, len(values)
        origin = right = parent = key = None
        if rng.random() < 0.6:
            origin = rng.choice(beside if rng.random() < 0.8 else known)
        if rng.random() < 0.3:
            right = rng.choice(beside if rng.random() < 0.8 else known)
        if origin is None and right is None:
            parent = layout.containers[path]
            if rng.random() < 0.6:
                names = [str(one["name"]) for one in FIELDS]
                key = rng.choice((*names, str(client), "log", "sealed", "unknown"))
        return Struct(client, clock, length, kind, origin, right, parent, key, content)


CONTENTS: dict[ContentKind, tuple[Any, int]] = {
    ContentKind.GC: (None, 1),
    ContentKind.DELETED: (None, 2),
    ContentKind.STRING: ("abc", 3),
    ContentKind.FORMAT: (("s", "1"), 1),
    ContentKind.EMBED: (("1",), 1),
    ContentKind.BINARY: (b"x", 1),
    ContentKind.TYPE: (SharedType.TEXT, 1),
}
