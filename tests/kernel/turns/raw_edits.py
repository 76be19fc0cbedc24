"""Edits of a connected client, as raw updates."""

from __future__ import annotations

from typing import Any

from pycrdt import Doc, Map

from antiphon_kernel.contexts import Context, apply_update
from antiphon_kernel.types.records import Actor


async def insert_raw(context: Context, actor: Actor, block: str, text: str) -> None:
    """Insert at the beginning of a block's text, as a stock client does."""
    replica: Doc[Any] = Doc()
    replica.apply_update(context.document.update_since())
    before = replica.get_state()
    replica.get("blocks", type=Map)[block]["content"].insert(0, text)
    await apply_update(context, actor, replica.get_update(before), object())


async def set_raw(context: Context, actor: Actor, block: str, **fields: Any) -> None:
    """Write header fields of a block, as a client does that was changed for that."""
    replica: Doc[Any] = Doc()
    replica.apply_update(context.document.update_since())
    before = replica.get_state()
    for name, value in fields.items():
        replica.get("blocks", type=Map)[block][name] = value
    await apply_update(context, actor, replica.get_update(before), object())
