"""Block data that is passed to a renderer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from antiphon_kernel.types.records import BlockHeader

OWN_NAME: Final = "you"
"""The name of a person on their own screen."""


@dataclass(frozen=True, slots=True)
class CellView:
    """A block as it is to be shown: everything a picture of it depends on, but width and theme."""

    header: BlockHeader
    text: str
    """The block's exact content."""
    version: int = 0
    """Grows whenever anything here changes; together with the block's id it names this view."""
    author: str = ""
    """Username of whoever created the block."""
    ticks: int = 0
    """Counts on while a tool call runs."""
    stopped_by: str | None = None
    """Name of whoever interrupted the block, as the person here reads it."""
    question: str = ""
    """Words below a call that waits for a person's decision; empty if none does."""
    is_sending: bool = False
    """A message of the person here that the kernel has not accepted yet."""
    collapsed: bool = False
    """Folded on this screen now."""
    edited_by: str = ""
    """Names of those who have edited an output; empty while they are not known."""
    is_read_from: bool = False
    """Models read from here on: it stands for everything above it."""
    siblings: str = ""
    """The position among the messages in its place: `‹ 2/3 ›`; empty if it is the only one."""
    source_context: str | None = None
    """The context that a drift block came from."""
