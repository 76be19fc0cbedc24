"""Updates that a client makes in a replica of its own."""

from __future__ import annotations

from typing import Any

from pycrdt import Doc, Map

from antiphon_kernel.document.document import Document


def inserting(document: Document, block: str, *pieces: str) -> bytes:
    """A client's update that writes at the start of a block, one item a piece."""
    return _edit(document, block, pieces or ("!",), 0)


def deleting(document: Document, block: str) -> bytes:
    """A client's update that takes text away and brings nothing."""
    return _edit(document, block, (), 1)


def _edit(document: Document, block: str, pieces: tuple[str, ...], deleted: int) -> bytes:
    replica: Doc[Any] = Doc()
    replica.apply_update(document.update_since())
    before = replica.get_state()
    content = replica.get("blocks", type=Map)[block]["content"]
    for piece in pieces:
        content.insert(0, piece)
    if deleted:
        del content[0:deleted]
    return replica.get_update(before)
