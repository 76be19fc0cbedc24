"""The closed sets of the document: kinds, roles, statuses.

A value that is stored but unknown to this version is kept and shown as it is; a value that is
unknown in a request is an error that names the allowed ones.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class ContextKind(StrEnum):
    """Kind of a context: of what its document is."""

    CONVERSATION = "conversation"
    FILE = "file"
    """One file of the project, in one block."""


class BlockKind(StrEnum):
    """Kind of a block."""

    TEXT = "text"
    THINKING = "thinking"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    DRIFT = "drift"
    FILE = "file"
    ERROR = "error"


class Role(StrEnum):
    """Role of a block in the conversation."""

    USER = "user"
    MODEL = "model"
    SYSTEM = "system"
    TOOL = "tool"


class Status(StrEnum):
    """Lifecycle status of a block; `done` and `error` are terminal."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    ERROR = "error"

    @property
    def terminal(self) -> bool:
        return self in (Status.DONE, Status.ERROR)

    def may_become(self, target: Status) -> bool:
        """The status machine: forward only; to the same status always (a no-op)."""
        may_end = self is Status.RUNNING and target.terminal
        return may_end or self is target or self is Status.PENDING


class ToolKind(StrEnum):
    """Engine that executes a tool call."""

    SHELL = "shell"
    MCP = "mcp"
    BUILTIN = "builtin"


class DriftKind(StrEnum):
    """Transfer mode of content from another context."""

    PUSH = "push"
    PULL = "pull"
    MERGE = "merge"
    DISTILL = "distill"
    COMMIT = "commit"


class DriftState(StrEnum):
    """State of a drift."""

    STAGED = "staged"
    """Stored, and to be delivered."""
    DELIVERED = "delivered"
    UNDONE = "undone"
    """Delivered, and taken back at the target."""
    REFUSED = "refused"
    """Not delivered, and never will be; its outcome says why."""
    CANCELLED = "cancelled"
    """Taken back before it was delivered."""


class PrincipalKind(StrEnum):
    """Kind of actor that a principal is."""

    HUMAN = "human"
    MODEL = "model"
    AGENT = "agent"
    """A program with a model of its own, which takes part over a protocol."""
    SHELL = "shell"
    SOURCE = "source"
    """Feeds the read-only parts of structured blocks."""
    SYSTEM = "system"


ANSWERING_KINDS: Final = (PrincipalKind.MODEL, PrincipalKind.AGENT)
"""Kinds of principals that answer messages and run tools by themselves."""


class Activity(StrEnum):
    """Activity of a present session, as awareness says it."""

    IDLE = "idle"
    TYPING = "typing"
    STREAMING = "streaming"
    WAITING = "waiting"
    """A turn of a model that is queued behind another one of its turns."""


class CallPermission(StrEnum):
    """Permission of a model's tool call that people were asked about."""

    ASKED = "asked"
    """Nobody has decided yet."""
    ONCE = "once"
    """Allowed."""
    ALWAYS = "always"
    """Allowed, as every call of the same tool with the same arguments in this context."""
    DENIED = "denied"
    WITHDRAWN = "withdrawn"
    """Nobody can decide any more: the turn has ended, or the call is not what it was."""
    REVOKED = "revoked"
    """The call ran; the rule that its `always` made holds no longer."""
