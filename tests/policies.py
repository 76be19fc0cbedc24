"""Policies for the calls of models, written as a configuration states them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from antiphon_kernel.providers import PermissionPolicy, ToolPermit
from antiphon_kernel.text.simple_command import CommandPattern


def policy_of(
    permits: Mapping[str, str],
    shell_allow: Iterable[str] = (),
    *,
    files_allow: Iterable[str] = (),
    files_deny: Iterable[str] | None = None,
) -> PermissionPolicy:
    tools = {tool: ToolPermit(permit) for tool, permit in permits.items()}
    denied = None if files_deny is None else tuple(files_deny)
    return PermissionPolicy(
        tools, tuple(map(CommandPattern.parse, shell_allow)), tuple(files_allow), denied
    )
