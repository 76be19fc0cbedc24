"""Copying blocks into a new document, each as one update."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pycrdt import Array, Map, Text

from antiphon_kernel.document.containers import Container, insert_items, items_of
from antiphon_kernel.document.document import BLOCKS, Document
from antiphon_kernel.document.header import CONTENT, encoded_header
from antiphon_kernel.types.records import BlockHeader, Member
from antiphon_kernel.yjs.id_set import encode_state_vector
from antiphon_kernel.yjs.update import decode_update
from antiphon_kernel.yjs.update_writer import MapWriter


class BlockCopier:
    """Writer of copies of blocks into a new document, which itself is not needed."""

    def __init__(self, source: Document, client_id: int) -> None:
        self._source = source
        self._client = client_id
        self._writer = MapWriter(client_id)

    def add_members(self, members: Iterable[Member]) -> bytes | None:
        """Return the update that introduces principals; None if there are none."""
        target = self._target()
        with target.transaction("copy") as transaction:
            for member in members:
                target.set_member(member)
        target.close()
        if transaction.update is not None:
            self._writer.take(transaction.update)
        return transaction.update

    def copy(self, block: str, header: BlockHeader, text: str | None) -> bytes:
        """Return the update that adds a block under `header` with the content of `block`.

        Args:
            text: what `plain_texts` of the source says of the block.

        Raises:
            KeyError: if there is no such block.
        """
        if text is not None:
            place = (BLOCKS, header.id)
            return self._writer.write(place, encoded_header(header), (CONTENT, text))
        target = self._target()
        with target.transaction("copy") as transaction:
            copy_block(self._source, block, target, header, text)
        target.close()
        assert transaction.update is not None, "a block is new"
        self._writer.take(transaction.update)
        return transaction.update

    def state(self, founded: bytes) -> tuple[bytes, bytes]:
        """Return the whole document as one update, and its state vector.

        Args:
            founded: the first transaction of the document, by another CRDT client.
        """
        structs = decode_update(founded).structs
        clocks = {one.client: one.clock + one.length for one in structs}
        vector = encode_state_vector({**clocks, self._client: self._writer.clock})
        return self._writer.everything(beside=structs), vector

    def _target(self) -> Document:
        return Document.continued(self._client, self._writer.clock)


def copy_block(
    source: Document, block: str, target: Document, header: BlockHeader, text: str | None
) -> None:
    """Add a block under `header` with the content of `block`, within a transaction.

    Args:
        text: as `BlockCopier.copy` takes it.
    """
    if text is not None:
        target.create_block(header, text)
        return
    content = source.container(block)
    container: Container | None = _copied(content)
    target.create_block(header, schema=source.schema(block), container=container)
    if content is not None and container is not None:
        _copy_items(content, container)


def _copied(value: Any) -> Any:
    match value:
        case Text():
            return Text(str(value))
        case Map():
            keys = value.keys()
            return Map({key: _copied(value[key]) for key in keys})
        case Array():
            return Array()
        case _:
            return value


def _copy_items(source: Container, target: Container) -> None:
    """Fill the lists of a copy that is in its document."""
    if isinstance(source, Array) and isinstance(target, Array):
        insert_items(target, 0, items_of(source))
    elif isinstance(source, Map) and isinstance(target, Map):
        keys = source.keys()
        for key in keys:
            if isinstance(source[key], Array | Map):
                _copy_items(source[key], target[key])
