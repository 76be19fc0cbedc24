"""Where a block goes among its neighbours."""

from __future__ import annotations

from antiphon_kernel.document.document import Document
from antiphon_kernel.text.order import key_between


def order_at_end(document: Document, without: str | None = None) -> str:
    """The order key for a block that comes last, not counting the block `without`."""
    for block in reversed(document.block_ids()):
        if block != without:
            return key_between(document.header(block).order, None)
    return key_between(None, None)


def order_after(document: Document, block: str) -> str:
    """The order key for a block that comes right after `block`.

    Call it inside a transaction: neighbours that concurrency has given the same key are re-keyed.
    """
    ids = document.block_ids()
    at = ids.index(block)
    low = document.header(block).order
    rest = ids[at + 1 :]
    crowd = 0
    while crowd < len(rest) and document.header(rest[crowd]).order <= low:
        crowd += 1
    high = document.header(rest[crowd]).order if crowd < len(rest) else None
    own = low = key_between(low, high)
    for neighbour in rest[:crowd]:
        low = key_between(low, high)
        document.set_fields(neighbour, order=low)
    return own
