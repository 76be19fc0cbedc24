"""Copying a block into another document, its content container by container."""

from __future__ import annotations

from typing import Any

from pycrdt import Array, Map, Text

from antiphon_kernel.document.containers import Container
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
    target.create_block(header, schema=source.schema(block), container=container)


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
            return Array([_copied_value(one) for one in value])
        case _:
            return value
