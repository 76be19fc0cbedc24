"""Policy for the tool calls of a model, as its configuration says it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from antiphon_kernel.text.simple_command import CommandPattern

EVERY_TOOL: Final = "*"
"""The name in a policy that stands for all tools without an entry of their own."""


class ToolPermit(StrEnum):
    """Whether a model's call may run."""

    ALLOW = "allow"
    ASK = "ask"
    """A person decides about each call."""
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class PermissionPolicy:
    """Permits of one model by tool, and commands that it may run without being asked about."""

    tools: Mapping[str, ToolPermit] = field(default_factory=dict)
    """By name of the tool for models, or `EVERY_TOOL`."""
    shell_allow: tuple[CommandPattern, ...] = ()
    """Commands that the tool `shell` may run where it is to ask."""

    @classmethod
    def parse(cls, permits: Mapping[str, str], shell_allow: Iterable[str] = ()) -> PermissionPolicy:
        """Return the policy that a configuration states.

        Raises:
            ValueError: naming the tool or the pattern that is wrong, and what it may be.
        """
        tools: dict[str, ToolPermit] = {}
        for tool, permit in permits.items():
            if permit not in tuple(ToolPermit):
                raise ValueError(f"{tool} is {' or '.join(ToolPermit)}, not {permit!r}")
            tools[tool] = ToolPermit(permit)
        patterns = []
        for text in shell_allow:
            try:
                patterns.append(CommandPattern.parse(text))
            except ValueError as error:
                raise ValueError(f"shell_allow has {text!r}: {error}") from error
        return cls(tools, tuple(patterns))

    def over(self, base: PermissionPolicy) -> PermissionPolicy:
        """Return this policy where it says something, and `base` elsewhere; patterns of both."""
        return PermissionPolicy({**base.tools, **self.tools}, base.shell_allow + self.shell_allow)

    def permit(self, tool: str) -> ToolPermit | None:
        """Return what it says of a tool; None if it says nothing."""
        return self.tools.get(tool, self.tools.get(EVERY_TOOL))

    def allows_command(self, line: str) -> bool:
        """Return whether a shell command may run where `shell` is to ask."""
        return any(pattern.matches(line) for pattern in self.shell_allow)


ALLOW_EVERYTHING: Final = PermissionPolicy({EVERY_TOOL: ToolPermit.ALLOW})
"""Policy of models that play recordings, which are the owner's own."""
