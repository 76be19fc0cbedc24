"""Writing maps with a text as updates, without a document: many times as quick."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from antiphon_kernel.yjs.primitives import Reader, write_text, write_var_uint
from antiphon_kernel.yjs.update import ContentKind, SharedType, Struct, decode_update, utf16_length
from antiphon_kernel.yjs.update_writer import encode_update

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


class MapWriter:
    """The one CRDT client of a new document, from a clock on, that puts maps into its roots."""

    def __init__(self, client: int, clock: int) -> None:
        self._client = write_var_uint(client)
        self.clock = clock
        """The clock where the next update begins."""
        self._begun = clock
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
        own = self._update(self._count, self._begun, b"".join(self._written))
        if not beside:
            return own
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
