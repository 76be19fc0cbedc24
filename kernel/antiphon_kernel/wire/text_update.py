"""Writing an update that puts text exactly where it belongs among items that have been removed.

A shared text is indexed by what is visible: between two visible characters its own operations
cannot say on which side of the removed ones new text goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon_kernel.wire.id_set import IdSet, encode_id_set
from antiphon_kernel.wire.update import ContentKind, ItemId
from antiphon_kernel.wire.varint import write_var_uint

_HAS_ORIGIN = 0x80
_HAS_RIGHT_ORIGIN = 0x40
_PARENT_IS_AN_ID = 0


@dataclass(frozen=True, slots=True)
class PlacedText:
    """Text between two neighbouring items of a shared text; None for its beginning or end."""

    parent: ItemId
    """The item that made the shared text."""
    origin: ItemId | None
    right_origin: ItemId | None
    text: str


def encode_text_update(
    client: int, clock: int, texts: Sequence[PlacedText], deletions: IdSet
) -> bytes:
    """An update in which `client` writes `texts`, its ids beginning with `clock`."""
    out = bytearray()
    if not texts:
        out += write_var_uint(0)
    else:
        for number in (1, len(texts), client, clock):
            out += write_var_uint(number)
    for one in texts:
        out.append(
            ContentKind.STRING
            | (_HAS_ORIGIN if one.origin is not None else 0)
            | (_HAS_RIGHT_ORIGIN if one.right_origin is not None else 0)
        )
        beside = [item for item in (one.origin, one.right_origin) if item is not None]
        if not beside:
            out += write_var_uint(_PARENT_IS_AN_ID)
            beside = [one.parent]
        for item in beside:
            out += write_var_uint(item.client) + write_var_uint(item.clock)
        encoded = one.text.encode()
        out += write_var_uint(len(encoded)) + encoded
    return bytes(out) + encode_id_set(deletions)
