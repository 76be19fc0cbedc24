"""Permissions of the local user, and the messages shown when they are not sufficient."""

from __future__ import annotations

from typing import Final, NamedTuple

from antiphon.session import SessionStatus
from antiphon_kernel.types.roles import AccessRole, Permission


class Denial(NamedTuple):
    """Why nothing can be written."""

    words: str
    """What an attempt is answered with."""
    instead: str
    """What stands where a message would be written."""


VIEWER: Final = Denial(
    "You are a viewer: you can read and copy, not write. Ask the owner.",
    "You read along as a viewer; only the owner can let you write.",
)

SHUT_OUT: Final = Denial(
    "The kernel has sent you away: nothing can be written. Ctrl+P, Join again.",
    "Sent away; what is here can be read and copied. Ctrl+P, Join again.",
)


class LocalRole:
    """The role as the kernel said it last, and whether it lets the person in at all."""

    def __init__(self) -> None:
        self.role: str | None = None
        self._shut_out = False

    @property
    def refusal(self) -> Denial | None:
        """Why the person may not write; None if they may, or it is unknown."""
        if self._shut_out:
            return SHUT_OUT
        known = self.role is not None and self.role in list(AccessRole)
        if known and not AccessRole(str(self.role)).may(Permission.WRITE):
            return VIEWER
        return None

    def is_denied(self, standing: SessionStatus) -> bool:
        """Update from the app's connection status; return whether that changes anything."""
        before, self._shut_out = self._shut_out, standing.is_rejected
        return before != self._shut_out

    def update(self, role: str | None) -> str | None:
        """The kernel says a role; what the person is told about it, if it is a change."""
        if role is None or role == self.role:
            return None
        before, self.role = self.role, role
        if before is None:
            return None
        if self.refusal is not None:
            return self.refusal.words
        article = "an" if role[:1] in "aeo" else "a"
        return f"You are {article} {role} now: you can write."
