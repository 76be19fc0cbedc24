"""Access rights of principals in a kernel: a role, and the right that an operation needs."""

from __future__ import annotations

from enum import StrEnum

from antiphon_kernel.types.enums import PrincipalKind


class Permission(StrEnum):
    """Right that an operation needs, from least to most."""

    READ = "read"
    WRITE = "write"
    ARRANGE = "arrange"
    """Decide about others' blocks, and about contexts."""
    OWN = "own"


class AccessRole(StrEnum):
    """Trust level of a principal."""

    OWNER = "owner"
    EDITOR = "editor"
    AGENT = "agent"
    """A model or a program: writes and folds like an editor, decides about nothing of others."""
    VIEWER = "viewer"
    AUTHOR = "author"
    """Known from an import as who wrote something: does not come in without an invitation."""

    @classmethod
    def of_kind(cls, kind: PrincipalKind) -> AccessRole:
        """The role of a principal that nobody has given one."""
        if kind is PrincipalKind.SYSTEM:
            return cls.OWNER
        return cls.EDITOR if kind is PrincipalKind.HUMAN else cls.AGENT

    def may(self, right: Permission) -> bool:
        """Return whether the role itself has the right; a tool may ask for more in a given case."""
        if self is AccessRole.OWNER:
            return True
        if self is AccessRole.AUTHOR:
            return False
        if self is AccessRole.VIEWER:
            return right is Permission.READ
        if self is AccessRole.AGENT:
            return right in (Permission.READ, Permission.WRITE)
        return right is not Permission.OWN

    def described(self) -> str:
        """With its article: `an owner`, `a viewer`."""
        return f"{'a' if self is AccessRole.VIEWER else 'an'} {self}"


class CredentialKind(StrEnum):
    """Kind of credential for admission."""

    TOKEN = "token"
    """Known by its SHA-256; the token itself is never stored."""
    SSH_KEY = "ssh_key"
    """Known by its fingerprint."""
