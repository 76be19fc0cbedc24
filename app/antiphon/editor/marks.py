"""Cursors, selections and names of others, laid over lines of text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RemoteCursor:
    """Somebody else's cursor in a text; `anchor` is the other end of their selection."""

    client: int
    principal: str
    username: str
    colour: int
    offset: int
    anchor: int | None = None
    streaming: bool = False
    """A model's append point: it goes along with the text."""
