"""Copying a block into another document, its content container by container."""

from __future__ import annotations

from typing import Any

from pycrdt import Array, Map, Text

from antiphon_kernel.document.containers import Container, insert_items, items_of
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.records import BlockHeader


def copy_block(source: Document, block: str, target: Document, header: BlockHeader) -> None:
    """Add a block under `header` whose content reads as that of `block`.

    Raises:
        KeyError: if there is no such block.
        ValueError: if the target has a block of this id.
    """
    content = source.container(block)
    container = _copied(content) if content is not None else None
    with target.transaction("copy"):
        target.create_block(header, schema=source.schema(block), container=container)
        if content is not None and container is not None:
            _copy_items(content, container)


def _copied(container: Container) -> Container:
    copied: Container = _copied_value(container)
    return copied


def _copied_value(value: Any) -> Any:
    match value:
        case Text():
            return Text(str(value))
        case Map():
            keys = value.keys()
            return Map({key: _copied_value(value[key]) for key in keys})
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
