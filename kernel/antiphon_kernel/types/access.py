"""What a principal may do in a kernel: a role, and the right that an operation needs."""

from __future__ import annotations

from enum import StrEnum


class Right(StrEnum):
    """What an operation takes, from least to most."""

    READ = "read"
    WRITE = "write"
    OWN = "own"


class AccessRole(StrEnum):
    """How far a principal is trusted."""

    OWNER = "owner"
    EDITOR = "editor"
    AGENT = "agent"
    """A model or a program: writes like an editor, decides about nobody else's blocks."""
    VIEWER = "viewer"

    def may(self, right: Right) -> bool:
        """Whether the role as such has the right; a tool may ask for more in a given case."""
        if self is AccessRole.OWNER:
            return True
        if self is AccessRole.VIEWER:
            return right is Right.READ
        return right is not Right.OWN
