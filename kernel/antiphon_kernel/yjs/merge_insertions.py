"""Updates that only go on typing where the one before stopped, as one update.

A fast writer sends many such updates at once. Each costs the same to check, to apply and to store,
whether it brings a character or a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from antiphon_kernel.yjs.reader import Reader
from antiphon_kernel.yjs.update import (
    MAX_CLOCK,
    ContentKind,
    DecodedUpdate,
    Struct,
    decode_update,
)
from antiphon_kernel.yjs.update_writer import encode_update
from antiphon_kernel.yjs.utf16 import utf16_length
from antiphon_kernel.yjs.varint import write_var_uint

_ONE: Final = b"\x01"
_NONE: Final = b"\x00"


def merge_insertions(updates: Sequence[bytes]) -> tuple[bytes, int]:
    """An update that says what the first of `updates` says, and those behind it that continue it.

    Returns:
        the update, and for how many of `updates` it stands: one at least.
    """
    first = _typed(updates[0])
    if first is None:
        return updates[0], 1
    texts, end = [str(first.content)], first.clock + first.length
    for update in updates[1:]:
        text = _continuation(update, first, end)
        if text is None:
            break
        texts.append(text)
        end += utf16_length(text)
    if len(texts) == 1 or end > MAX_CLOCK:
        return updates[0], 1
    joined = first._replace(length=end - first.clock, content="".join(texts))
    return encode_update([joined], ()), len(texts)


def _typed(update: bytes) -> Struct | None:
    """The one piece of text that an update brings; None if it brings anything else."""
    try:
        decoded = decode_update(update)
    except ValueError:
        decoded = DecodedUpdate((), ())
    if len(decoded.structs) != 1 or decoded.deletions:
        return None
    [struct] = decoded.structs
    return struct if struct.kind is ContentKind.STRING else None


def _continuation(update: bytes, first: Struct, end: int) -> str | None:
    """The text of an update that types on at clock `end`; None if it does anything else."""
    client = write_var_uint(first.client)
    start = b"".join((_ONE, _ONE, client, write_var_uint(end)))
    last = client + write_var_uint(end - 1)
    if first.right_origin is None:
        start += bytes((ContentKind.STRING | 0x80,)) + last
    else:
        after = write_var_uint(first.right_origin.client), write_var_uint(first.right_origin.clock)
        start += b"".join((bytes((ContentKind.STRING | 0xC0,)), last, *after))
    if not update.startswith(start) or not update.endswith(_NONE):
        return None
    reader = Reader(update[len(start) : -1])
    try:
        text = reader.text()
        reader.end()
    except ValueError:
        return None
    return text or None
