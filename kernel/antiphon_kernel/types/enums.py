"""The closed sets of the document: kinds, roles, statuses.

A value that is stored but unknown to this version is kept and shown as it is; a value that is
unknown in a request is an error that names the allowed ones.
"""

from __future__ import annotations

from enum import StrEnum


class BlockKind(StrEnum):
    """What a block is."""

    TEXT = "text"
    THINKING = "thinking"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    DRIFT = "drift"
    FILE = "file"
    ERROR = "error"


class Role(StrEnum):
    """Whose part in the conversation a block plays."""

    USER = "user"
    MODEL = "model"
    SYSTEM = "system"
    TOOL = "tool"


class Status(StrEnum):
    """Where a block is in its life; `done` and `error` are terminal."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    ERROR = "error"

    @property
    def terminal(self) -> bool:
        return self in (Status.DONE, Status.ERROR)

    def may_become(self, target: Status) -> bool:
        """The status machine: forward only; to the same status always (a no-op)."""
        if self is target:
            return True
        if self is Status.PENDING:
            return True
        return self is Status.RUNNING and target.terminal


class ToolKind(StrEnum):
    """Which engine executes a tool call."""

    SHELL = "shell"
    MCP = "mcp"
    BUILTIN = "builtin"


class DriftKind(StrEnum):
    """How content came over from another context."""

    PUSH = "push"
    PULL = "pull"
    MERGE = "merge"
    DISTILL = "distill"
    COMMIT = "commit"


class PrincipalKind(StrEnum):
    """What sort of actor a principal is."""

    HUMAN = "human"
    MODEL = "model"
    SHELL = "shell"
    SOURCE = "source"
    """Feeds the read-only parts of structured blocks."""
    SYSTEM = "system"


class Activity(StrEnum):
    """What a present session is doing, as awareness says it."""

    IDLE = "idle"
    TYPING = "typing"
    STREAMING = "streaming"
    WAITING = "waiting"
    """A turn of a model that is queued behind another one of its turns."""
