"""Writing a Yjs update (encoding version 1) from structs; `decode_update` is the inverse."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from antiphon_kernel.yjs.id_set import IdSet, encode_id_set
from antiphon_kernel.yjs.primitives import (
    Reader,
    Undefined,
    write_bytes,
    write_text,
    write_var_uint,
)
from antiphon_kernel.yjs.update import (
    ContentKind,
    ItemId,
    SharedType,
    Struct,
    decode_update,
    utf16_length,
)

_INTEGER_LIMIT: Final = 2**31
"""Larger whole numbers are written as floats, as a JavaScript peer would."""

_KEYED: Final = 0x20
"""Marks an item that says under which key of its parent it stands."""
_BY_ID: Final = b"\x00"
_BY_NAME: Final = b"\x01"
_NO_DELETIONS: Final = b"\x00"
_ONE: Final = write_var_uint(1)
_TYPE: Final = bytes([_KEYED | ContentKind.TYPE])
_IS_MAP: Final = bytes([SharedType.MAP])
_IS_TEXT: Final = bytes([SharedType.TEXT])
_STRING: Final = bytes([ContentKind.STRING])
_ANY: Final = bytes([_KEYED | ContentKind.ANY])


def encode_update(structs: Iterable[Struct], deletions: IdSet) -> bytes:
    """An update that brings `structs` (each client's in the order of its clocks).

    Raises:
        ValueError: if a struct makes an XML element or a subdocument: they are not ours.
    """
    by_client: dict[int, list[Struct]] = {}
    for one in structs:
        by_client.setdefault(one.client, []).append(one)
    out = bytearray(write_var_uint(len(by_client)))
    for client in sorted(by_client, reverse=True):
        own = by_client[client]
        for number in (len(own), client, own[0].clock):
            out += write_var_uint(number)
        for one in own:
            out += encode_struct(one)
    return bytes(out) + encode_id_set(deletions)


def encode_struct(one: Struct) -> bytes:
    """Return a struct as it stands in an update.

    Raises:
        ValueError: as `encode_update`.
    """
    if one.kind in (ContentKind.GC, ContentKind.SKIP):
        return bytes([one.kind]) + write_var_uint(one.length)
    out = bytearray([one.kind])
    if one.origin is not None:
        out[0] |= 0x80
        out += _id(one.origin)
    if one.right_origin is not None:
        out[0] |= 0x40
        out += _id(one.right_origin)
    if one.origin is None and one.right_origin is None:
        if isinstance(one.parent, str):
            out += b"\x01" + write_text(one.parent)
        elif one.parent is not None:
            out += b"\x00" + _id(one.parent)
        else:
            raise ValueError("an item needs a parent or a neighbour")
        if one.key is not None:
            out[0] |= 0x20
            out += write_text(one.key)
    return bytes(out) + _content(one)


def _content(one: Struct) -> bytes:
    content = one.content
    match one.kind, content:
        case ContentKind.STRING, str():
            return write_text(content)
        case ContentKind.DELETED, _:
            return write_var_uint(one.length)
        case ContentKind.ANY, tuple():
            return write_var_uint(len(content)) + b"".join(map(encode_any, content))
        case ((ContentKind.FORMAT | ContentKind.EMBED), tuple()):
            return b"".join(write_text(str(text)) for text in content)
        case ContentKind.BINARY, bytes():
            return write_bytes(content)
        case ContentKind.TYPE, int() if content in (0, 1, 2, 4, 6):
            return write_var_uint(content)
    raise ValueError(f"an item of kind {one.kind.name.lower()} cannot be written")


def _id(item: ItemId) -> bytes:
    return write_var_uint(item.client) + write_var_uint(item.clock)


def encode_any(value: object) -> bytes:
    """The bytes of null, a boolean, number, string, byte string, list, map or `UNDEFINED`.

    `Reader.any` is the inverse.

    Raises:
        TypeError: if the value is something else.
    """
    if isinstance(value, str):
        return b"\x77" + write_text(value)
    match value:
        case None:
            return b"\x7e"
        case Undefined.UNDEFINED:
            return b"\x7f"
        case True:
            return b"\x78"
        case False:
            return b"\x79"
        case int() if -_INTEGER_LIMIT < value < _INTEGER_LIMIT:
            return b"\x7d" + _signed(value)
        case int():
            return b"\x7a" + struct.pack(">q", value)
        case float():
            return b"\x7b" + struct.pack(">d", value)
        case bytes():
            return b"\x74" + write_bytes(value)
        case list():
            return b"\x75" + write_var_uint(len(value)) + b"".join(map(encode_any, value))
        case dict():
            pairs = (write_text(str(key)) + encode_any(one) for key, one in value.items())
            return b"\x76" + write_var_uint(len(value)) + b"".join(pairs)
    raise TypeError(f"{type(value).__name__} is not a JSON-like value")


def _signed(value: int) -> bytes:
    left = abs(value)
    out = bytearray([(0x80 if left > 0x3F else 0) | (0x40 if value < 0 else 0) | (left & 0x3F)])
    left >>= 6
    while left:
        out.append((0x80 if left > 0x7F else 0) | (left & 0x7F))
        left >>= 7
    return bytes(out)


class MapWriter:
    """The one CRDT client of a new document, which puts maps into its roots.

    Without a document: many times as quick.
    """

    def __init__(self, client: int) -> None:
        self._client = write_var_uint(client)
        self.clock = 0
        """The clock where the next update begins."""
        self._count = 0
        self._written: list[bytes] = []

    def write(
        self, place: tuple[str, str], values: Sequence[tuple[str, bytes]], text: tuple[str, str]
    ) -> bytes:
        """Return the update that puts a map under a key of a root map.

        Args:
            place: the name of the root, and the key there.
            values: what stands in the map: keys, and values as `encode_any` writes them.
            text: the key of a text in the map, and what it says.

        Raises:
            ValueError: if a text has half a surrogate pair.
        """
        root, key = place
        text_key, content = text
        parent = _BY_ID + self._client + write_var_uint(self.clock)
        structs = [_TYPE, _BY_NAME, _name(root), write_text(key), _IS_MAP]
        for name, value in values:
            structs += (_ANY, parent, _name(name), _ONE, value)
        structs += (_TYPE, parent, _name(text_key), _IS_TEXT)
        count = 1 + len(values) + 1
        length = count + utf16_length(content)
        if content:
            beside = _BY_ID + self._client + write_var_uint(self.clock + count - 1)
            structs += (_STRING, beside, write_text(content))
            count += 1
        return self._add(count, b"".join(structs), length)

    def take(self, update: bytes) -> None:
        """Take in an update that this client has written elsewhere, at the clock reached here.

        Raises:
            ValueError: if it is another client's, does not begin there, or deletes something.
        """
        reader = Reader(update)
        clients, count, client, clock = (reader.uint() for _ in range(4))
        if (clients, write_var_uint(client), clock) != (1, self._client, self.clock):
            raise ValueError("not an update that goes on here")
        if update[-1:] != _NO_DELETIONS:
            raise ValueError("an update that deletes")
        length = sum(one.length for one in decode_update(update).structs)
        self._add(count, update[reader.at : -1], length)

    def everything(self, beside: Sequence[Struct] = ()) -> bytes:
        """Return all updates as one, with items of other clients that nothing is deleted of."""
        own = self._update(self._count, 0, b"".join(self._written))
        others = encode_update(beside, ())
        reader = Reader(others)
        clients = reader.uint()
        if self._count:
            clients += 1
        else:
            own = _ONE + _NO_DELETIONS
        return write_var_uint(clients) + own[1:-1] + others[reader.at :]

    def _add(self, count: int, structs: bytes, length: int) -> bytes:
        update = self._update(count, self.clock, structs)
        self._written.append(structs)
        self._count += count
        self.clock += length
        return update

    def _update(self, count: int, clock: int, structs: bytes) -> bytes:
        head = _ONE + write_var_uint(count) + self._client + write_var_uint(clock)
        return head + structs + _NO_DELETIONS


_name: Final = lru_cache(maxsize=256)(write_text)
