"""Reading a Yjs update (encoding version 1) without touching a document.

What comes from a client is looked at here first: an update of five bytes can announce 2^28
elements, which costs the CRDT engine seconds and half a gigabyte to find out that they are absent.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from antiphon_kernel.types.json_validation import read_json
from antiphon_kernel.yjs.id_set import IdRange, IdSet, normalise
from antiphon_kernel.yjs.primitives import Reader, write_var_uint

MAX_CLOCK: Final = 2**32 - 1
"""The engine's clocks have 32 bits."""

EMPTY_UPDATE: Final = b"\x00\x00"
"""The update that says nothing."""


class ContentKind(IntEnum):
    """Content kind of a struct, by its number on the wire."""

    GC = 0
    DELETED = 1
    JSON = 2
    BINARY = 3
    STRING = 4
    EMBED = 5
    FORMAT = 6
    TYPE = 7
    ANY = 8
    DOC = 9
    SKIP = 10


class SharedType(IntEnum):
    """Shared type that a struct of kind TYPE creates."""

    ARRAY = 0
    MAP = 1
    TEXT = 2
    XML_ELEMENT = 3
    XML_FRAGMENT = 4
    XML_TEXT = 6


class ItemId(NamedTuple):
    """The id of one CRDT item. Clocks count UTF-16 units."""

    client: int
    clock: int


class Struct(NamedTuple):
    """A run of items that one client wrote.

    An item has a parent (the name of a root, or the id of the item that made the shared type)
    unless it has an origin, from which its parent follows. `content` is

    - STRING: the text; BINARY: the bytes; DOC: its guid
    - ANY: a tuple of values; EMBED: a tuple of one JSON text; FORMAT: (key, JSON text)
    - TYPE: a `SharedType`
    - GC, DELETED, SKIP: None
    """

    client: int
    clock: int
    length: int
    kind: ContentKind
    origin: ItemId | None = None
    right_origin: ItemId | None = None
    parent: str | ItemId | None = None
    key: str | None = None
    content: object = None


class DecodedUpdate(NamedTuple):
    """Everything an update says: structs in wire order, and the ids it deletes."""

    structs: tuple[Struct, ...]
    deletions: tuple[IdRange, ...]

    def inserted(self) -> IdSet:
        """The ids the update brings."""
        return normalise(
            IdRange(item.client, item.clock, item.clock + item.length)
            for item in self.structs
            if item.kind is not ContentKind.SKIP
        )


def utf16_length(text: str) -> int:
    """UTF-16 units of a text: the ids that its characters take."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def decode_update(update: bytes) -> DecodedUpdate:
    """Read an update.

    Raises:
        ValueError: if the bytes are not exactly one update that the CRDT engine understands.
    """
    single = decode_single(update)
    if single is not None:
        return DecodedUpdate((single,), ())
    return next(decode_in_parts(update, len(update) + 1))


def first_clocks(update: bytes) -> dict[int, int]:
    """Return the first clock of each client whose structs an update brings.

    Raises:
        ValueError: if it is not an update that the CRDT engine understands.
    """
    clocks: dict[int, int] = {}
    reader = Reader(update)
    clients = reader.count()
    if clients == 1:
        reader.count()
        client = reader.uint()
        return {client: reader.uint()}
    for struct in decode_update(update).structs:
        clocks.setdefault(struct.client, struct.clock)
    return clocks


def decode_single(update: bytes) -> Struct | None:
    """Return the struct of an update that brings one and nothing else.

    None if the update brings more, or is none.

    Raises:
        ValueError: as `decode_update`.
    """
    if not update.startswith(_ONE_STRUCT):
        return None
    reader = Reader(update)
    reader.at = len(_ONE_STRUCT)
    client, own = _read_client(reader, update)
    clock = reader.uint()
    struct = _read_struct(reader, client, own, clock)
    if update[reader.at :] != _NO_DELETIONS or clock + struct.length > MAX_CLOCK:
        return None
    return struct


def decode_in_parts(update: bytes, size: int) -> Iterator[DecodedUpdate]:
    """Read an update in parts of so many structs and deletions at most: first all the structs.

    Raises:
        ValueError: as `decode_update`, when the part that is no update is reached.
    """
    structs: list[Struct] = []
    deletions: list[IdRange] = []
    for work, one in enumerate(_read_all(update), 1):
        if isinstance(one, Struct):
            structs.append(one)
        elif one is not None:
            deletions.append(one)
        if not work % size:
            yield DecodedUpdate(tuple(structs), tuple(deletions))
            structs, deletions = [], []
    yield DecodedUpdate(tuple(structs), tuple(deletions))


def _read_all(update: bytes) -> Iterator[Struct | IdRange | None]:
    """Yield the structs and then the deletions of an update; None where a client begins."""
    reader = Reader(update)
    seen: set[int] = set()
    for _ in range(reader.count()):
        yield None
        count = reader.count()
        client, own = _read_client(reader, update)
        clock = reader.uint()
        if client in seen:
            raise ValueError(f"client {client} is named twice")
        seen.add(client)
        for _ in range(count):
            struct = _read_struct(reader, client, own, clock)
            clock += struct.length
            if clock > MAX_CLOCK:
                raise ValueError(f"a clock of client {client} is larger than {MAX_CLOCK}")
            yield struct
    for _ in range(reader.count()):
        yield None
        client = reader.uint()
        for _ in range(reader.count()):
            start = reader.uint()
            length = reader.uint()
            if start + length > MAX_CLOCK:
                raise ValueError(f"a deleted clock of client {client} is larger than {MAX_CLOCK}")
            yield IdRange(client, start, start + length)
    reader.end()


def split_update(update: bytes, size: int) -> Iterator[bytes]:
    """Yield updates of so many bytes that bring together what an update brings, and delete nothing.

    Each has a little more, as a struct is in one of them.

    Raises:
        ValueError: as `decode_update`, when the part that is no update is reached.
    """
    reader, sections, held = Reader(update), list[bytes](), 0
    for _ in range(reader.count()):
        left = reader.count()
        client, own = _read_client(reader, update)
        clock = reader.uint()
        while left:
            start, first, count = reader.at, clock, 0
            while count < left and held + reader.at - start < size:
                clock += _read_struct(reader, client, own, clock).length
                count += 1
            left -= count
            head = map(write_var_uint, (count, client, first))
            sections.append(b"".join((*head, update[start : reader.at])))
            held += len(sections[-1])
            if held >= size:
                yield b"".join((write_var_uint(len(sections)), *sections, _NO_DELETIONS))
                sections, held = [], 0
    if sections:
        yield b"".join((write_var_uint(len(sections)), *sections, _NO_DELETIONS))


def _read_client(reader: Reader, update: bytes) -> tuple[int, bytes]:
    """Return the id of the client whose structs follow, and how it is written."""
    start = reader.at
    return reader.uint(), update[start : reader.at]


def _read_id(reader: Reader, client: int, own: bytes) -> ItemId:
    """Read an id, most likely one of the client whose item names it."""
    return ItemId(client if reader.skip(own) else reader.uint(), reader.uint())


def _read_struct(reader: Reader, client: int, own: bytes, clock: int) -> Struct:
    """Read a struct of a client, whose id is written as `own`."""
    info = reader.byte()
    kind = _ITEM_KINDS.get(info & 0x1F)
    if kind is None:
        if info not in _BARE_KINDS:
            raise ValueError(f"{info} is not the tag of a struct")
        return Struct(client, clock, _length(reader.uint()), _BARE_KINDS[info])
    origin = _read_id(reader, client, own) if info & 0x80 else None
    right_origin = _read_id(reader, client, own) if info & 0x40 else None
    parent: str | ItemId | None = None
    key = None
    if not info & 0xC0:
        by_name = reader.uint()
        if by_name == 1:
            parent = reader.text()
        elif by_name == 0:
            parent = ItemId(reader.uint(), reader.uint())
        else:
            raise ValueError(f"{by_name} does not say whether a parent is a name or an id")
        if info & 0x20:
            key = reader.text()
    length, content = _read_content(reader, kind)
    return Struct(client, clock, _length(length), kind, origin, right_origin, parent, key, content)


def _read_content(reader: Reader, kind: ContentKind) -> tuple[int, object]:
    if kind is ContentKind.STRING:
        text = reader.text()
        return utf16_length(text), text
    if kind is ContentKind.ANY:
        size = reader.count()
        return size, tuple(reader.any() for _ in range(size))
    if kind is ContentKind.DELETED:
        return reader.uint(), None
    if kind is ContentKind.TYPE:
        number = reader.uint()
        if number not in _SHARED_TYPES:
            raise ValueError(f"{number} is not the number of a shared type")
        if number == SharedType.XML_ELEMENT:
            reader.text()
        return 1, _SHARED_TYPES[number]
    if kind is ContentKind.FORMAT:
        return 1, (reader.text(), _read_json(reader))
    if kind is ContentKind.BINARY:
        return 1, reader.block()
    if kind is ContentKind.EMBED:
        return 1, (_read_json(reader),)
    if kind is ContentKind.JSON:
        raise ValueError("items of kind JSON, which Yjs has given up, are not read by the engine")
    guid = reader.text()
    reader.any()
    return 1, guid


def _read_json(reader: Reader) -> str:
    text = reader.text()
    read_json(text)  # the engine would find out in the middle of an update
    return text


def _length(value: int) -> int:
    if value == 0:
        raise ValueError("a struct has no length")
    return value


_ONE_STRUCT: Final = b"\x01\x01"
"""The beginning of an update of one struct."""
_NO_DELETIONS: Final = b"\x00"
_BARE_KINDS: Final = {kind.value: kind for kind in (ContentKind.GC, ContentKind.SKIP)}
_ITEM_KINDS: Final = {kind.value: kind for kind in ContentKind if kind not in _BARE_KINDS}
_SHARED_TYPES: Final = {shared.value: shared for shared in SharedType}
