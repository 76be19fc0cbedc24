"""State that a screen passes on to the one that shows its context after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from antiphon.actions import Mode
from antiphon.screens.cell_arranger import ArrangerState
from antiphon.screens.submitter import PendingMessage
from antiphon.widgets.block_list import HitPlace


@dataclass(frozen=True, slots=True)
class ScreenState:
    """The place of the person, and what they have begun."""

    mode: Mode
    block: str | None
    cursor: int | None
    """Code points into the block's `text`, while it is edited."""
    text: str = ""
    folds: Mapping[str, bool] = field(default_factory=dict)
    """Cells that the person has folded (True) and opened."""
    arranger: ArrangerState = field(default_factory=ArrangerState)
    message_cursor: int = 0
    """Code points into the message."""
    query: str | None = None
    """The text that is looked for, while a search is open; its mode is FIND while it is typed."""
    hit: HitPlace | None = None
    finds_from_message: bool = False
    """The message had the focus before the search."""
    goes_first: bool = False
    """The person has asked for the first cell, which was not here."""
    followed: str | None = None
    """Principal id of who is followed."""
    pending: PendingMessage | None = None
