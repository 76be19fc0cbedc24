"""Depth of a block in its chain of replies."""

from __future__ import annotations

from antiphon_kernel.document.document import Document


def reply_depth(document: Document, block: str, limit: int) -> int:
    """The number of blocks from this one up through its parents; no more than `limit`.

    Parents that run in a circle, or that are not there, do no harm.
    """
    length, at = 0, document.header(block).id
    while length < limit:
        length += 1
        parent = document.header(at).parent
        if parent is None or parent not in document:
            break
        at = parent
    return length
