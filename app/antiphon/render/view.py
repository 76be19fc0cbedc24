"""Block data that is passed to a renderer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from antiphon_kernel.types.enums import BlockKind, Role, Status, ToolKind

OWN_NAME: Final = "you"
"""The name of a person on their own screen."""


@dataclass(frozen=True, slots=True)
class CellView:
    """A block as it is to be shown: everything a picture of it depends on, but width and theme.

    `kind`, `role`, `status` and `tool_kind` are plain strings when this version does not know the
    stored value.
    """

    id: str
    kind: BlockKind | str
    role: Role | str
    status: Status | str
    text: str
    """The block's exact content."""
    version: int = 0
    """Grows whenever anything here changes; together with the id it names this view."""
    author: str = ""
    """Username of whoever created the block."""
    colour: int = 0
    """The author's colour slot, 0 to 11."""
    tool_kind: ToolKind | str | None = None
    tool_name: str | None = None
    input: str | None = None
    """Input of a tool call, a JSON document; shown when the call has no text."""
    exit_code: int | None = None
    duration_ms: int | None = None
    """How long a tool call ran."""
    ticks: int = 0
    """Counts on while a tool call runs."""
    is_error: bool = False
    truncated: bool = False
    stop_reason: str | None = None
    stopped_by: str | None = None
    """Username of whoever interrupted the block."""
    question: str = ""
    """Words below a call that waits for a person's decision; empty if none does."""
    is_denied: bool = False
    """A call that a person has not allowed."""
    is_sending: bool = False
    """A message of the person here that the kernel has not accepted yet."""
    collapsed: bool = False
    """Folded on this screen now."""
    edited_after_done: bool = False
    edited_by: str = ""
    """Names of those who have edited an output; empty while they are not known."""
    path: str | None = None
    """Of a file block."""
    language: str | None = None
    """Of a file block; overrules what the path suggests."""
    drift_kind: str | None = None
    is_excluded: bool = False
    """Models do not read it."""
    is_read_from: bool = False
    """Models read from here on: it stands for everything above it."""
    siblings: str = ""
    """The position among the messages in its place: `‹ 2/3 ›`; empty if it is the only one."""
    source_context: str | None = None
    """The context that a drift block came from."""
