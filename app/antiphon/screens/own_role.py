"""What the person here may do, and what they are told when that is not enough."""

from __future__ import annotations

from typing import Final

from antiphon_kernel.types.access import AccessRole, Right

VIEWER_WORDS: Final = "You are a viewer: you can read and copy, not write. Ask the owner."


class OwnRole:
    """The role as the kernel said it last."""

    def __init__(self) -> None:
        self.role: str | None = None

    @property
    def refusal(self) -> str | None:
        """What an attempt to write is answered with; None if writing is allowed, or unknown."""
        known = self.role is not None and self.role in list(AccessRole)
        if known and not AccessRole(str(self.role)).may(Right.WRITE):
            return VIEWER_WORDS
        return None

    def hear(self, role: str | None) -> str | None:
        """The kernel says a role; what the person is told about it, if it is a change."""
        if role is None or role == self.role:
            return None
        before, self.role = self.role, role
        if self.refusal is not None:
            return self.refusal
        if before is None:
            return None
        article = "an" if role[:1] in "aeo" else "a"
        return f"You are {article} {role} now: you can write."
