"""Attribution of a change: one string from its author and its operation."""

from __future__ import annotations

from antiphon_kernel.types.enums import PrincipalKind


def attribution(principal: str, kind: PrincipalKind | str, operation: str) -> str:
    """`agent:{id}:{operation}`, `source:{id}:update` or `system:{operation}`.

    People, models and the shell are agents. What a source does is always an update.

    Args:
        principal: id of whoever made the change.
        kind: its kind; one that is unknown to this version counts as an agent.
        operation: as the journal names it.
    """
    if kind == PrincipalKind.SYSTEM:
        return f"system:{operation}"
    if kind == PrincipalKind.SOURCE:
        return f"source:{principal}:update"
    return f"agent:{principal}:{operation}"
