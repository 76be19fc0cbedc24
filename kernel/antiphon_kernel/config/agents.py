"""Agents that take part over ACP: configured ones, and known ones that are found on PATH."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from antiphon_kernel.providers import PermissionPolicy


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """One agent that people can ask."""

    name: str
    """Name in messages, after `@`."""
    command: tuple[str, ...]
    """Program and arguments; it speaks ACP on its standard input and output."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables that its process gets beside the kernel's own; they may hold keys."""
    cwd: str | None = None
    """Absolute path of the folder that it is started in; the project if None."""
    permissions: PermissionPolicy | None = None
    """Rules that come before those for every model."""


KNOWN_AGENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "claude-code": ("claude-agent-acp",),
    "codex": ("codex-acp",),
    "gemini-cli": ("gemini", "--acp"),
    "opencode": ("opencode", "acp"),
    "goose": ("goose", "acp"),
}
"""By name, the commands of agents that are offered where their program is on PATH."""


def find_agents(project: Path, variables: Mapping[str, str]) -> Iterator[AgentConfig]:
    """Yield the known agents whose programs are on PATH, outside of the project.

    What lies in the project came with it, and so did a folder of PATH that is relative.
    """

    def is_outside(path: str) -> bool:
        return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(project))

    folders = variables.get("PATH", "").split(os.pathsep)
    searched = [one for one in folders if Path(one).is_absolute() and is_outside(one)]
    for name, (program, *arguments) in KNOWN_AGENTS.items():
        found = shutil.which(program, path=os.pathsep.join(searched))
        if found is not None and is_outside(found):
            yield AgentConfig(name, (found, *arguments))
