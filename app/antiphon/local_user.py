"""Role of the local user, and the messages shown when it is not sufficient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from antiphon_kernel.types.roles import AccessRole, Permission


class Denial(NamedTuple):
    """Why nothing can be written."""

    words: str
    """The answer to an attempt."""
    instead: tuple[str, ...]
    """The text in the place where a message would be written; where it is narrow, the first part.
    """


VIEWER: Final = Denial(
    "You are a viewer: you can read and copy, not write. Ask the owner.",
    ("You read along as a viewer", "only the owner can let you write"),
)

SHUT_OUT: Final = Denial(
    "The kernel has sent you away: nothing can be written. <key:palette>, Join again.",
    ("Sent away: <key:palette>, Join again", "what is here can be read and copied"),
)

REPLAY: Final = Denial(
    "This is a replay: it can be read and copied, <key:fork_replay> forks it, <key:quit> leaves.",
    ("This is a replay",),
)


class LocalUser:
    """The role as the kernel reported it last; every widget asks here whether one may write.

    It outlives the document: who may not write is not asked again when that is replaced.
    """

    def __init__(self, find_denial: Callable[[], Denial | None] = lambda: None) -> None:
        """`find_denial` returns why nobody may write here, whatever their role."""
        self.role: str | None = None
        self._find_denial = find_denial

    @property
    def denial(self) -> Denial | None:
        """Why the person may not write; None if they may, or it is unknown."""
        if (denial := self._find_denial()) is not None:
            return denial
        known = self.role is not None and self.role in list(AccessRole)
        if known and not AccessRole(str(self.role)).may(Permission.WRITE):
            return VIEWER
        return None

    @property
    def refusal(self) -> str | None:
        """The answer to an attempt to write; None if the person may write."""
        denial = self.denial
        return None if denial is None else denial.words

    @property
    def is_owner(self) -> bool:
        return self.role == AccessRole.OWNER

    @property
    def works_on_host(self) -> bool:
        """Return whether the person runs commands there, and opens any file, as far as known."""
        return self.role in (None, AccessRole.OWNER)

    def may_decide(self, *, is_asker: bool) -> bool:
        """Return whether the person may decide about a call; `is_asker`: it has their rights."""
        if self.refusal is not None:
            return False
        return self.is_owner or (is_asker and self.role == AccessRole.EDITOR)

    def update(self, role: str) -> str | None:
        """Take the role from the kernel; return what the person is told of a change."""
        before, self.role = self.role, role
        if before is None or before == role:
            return None
        if self.refusal is not None:
            return self.refusal
        article = "an" if role[:1] in "aeo" else "a"
        return f"You are {article} {role} now: you can write."
