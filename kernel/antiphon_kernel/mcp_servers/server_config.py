"""Configuration of one MCP server: a command or an address, with the variables it names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

SECONDS: Final = 60.0
"""Time that a tool has for its answer, and between two pieces of news of it."""

_NAME: Final = re.compile(r"(?=.{1,40}\Z)[A-Za-z0-9]+([_-][A-Za-z0-9]+)*")

VARIABLE_IN_TEXT: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
"""`${NAME}` or `${NAME:-value}`, as other programs write it too."""


@dataclass(frozen=True, slots=True)
class McpServerConfig:
    """One MCP server: run as a process, or reached at an address."""

    name: str
    """Name before `__` in those of its tools."""
    command: tuple[str, ...] = ()
    """Program and arguments; it speaks MCP on its standard input and output."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables that its process gets beside the kernel's own."""
    url: str | None = None
    """Address of its Streamable HTTP endpoint, where there is no command."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers of every request to the address; they may hold keys."""
    seconds: float = SECONDS

    def __post_init__(self) -> None:
        """Raises ValueError, saying what is wrong."""
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                "its name takes at most 40 letters and digits, and - or _ between them"
            )
        if bool(self.command) == bool(self.url):
            raise ValueError("expected either a command or a url")

    def expanded(self, variables: Mapping[str, str]) -> McpServerConfig:
        """Return it with the values of the environment variables that its texts name.

        Raises:
            ValueError: naming a variable that is not set.
        """

        def value(found: re.Match[str]) -> str:
            name, default = found.groups()
            if (given := variables.get(name) or default) is None:
                raise ValueError(f"${name} is not set where the kernel was started")
            return given

        expand = partial(VARIABLE_IN_TEXT.sub, value)
        return replace(
            self,
            command=tuple(map(expand, self.command)),
            env={key: expand(value) for key, value in self.env.items()},
            url=expand(self.url) if self.url is not None else None,
            headers={key: expand(value) for key, value in self.headers.items()},
        )
