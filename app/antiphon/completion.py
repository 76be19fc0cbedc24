"""Completion of commands that are typed in the composer, and of commands of agents."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

_COMMAND: Final = re.compile(r"/([a-z][a-z0-9-]*)(?:[ \t]+(.*?))?[ \t]*", re.DOTALL)
_BEGUN_COMMAND: Final = re.compile(r"/([a-z0-9-]*)\Z")
_BEGUN_AGENT_COMMAND: Final = re.compile(r"@([a-z0-9_-]+)[ \t]+(/\S*)\Z")
_BEGUN_ARGUMENT: Final = re.compile(r"/([a-z][a-z0-9-]*)[ \t]+([^\n]*)\Z")


class CompletionChoice(NamedTuple):
    """One line of the list."""

    text: str
    """Stands in the place of what has been typed."""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """The choices for the end of a text."""

    begun: str
    """The end of the text that a choice replaces."""
    choices: tuple[CompletionChoice, ...]
    is_command: bool = False

    @property
    def common(self) -> str:
        """The beginning that all choices have; what stands there if that is no longer."""
        shared = os.path.commonprefix([one.text for one in self.choices])
        return shared if len(shared) > len(self.begun) else self.begun


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A command that is typed as a message: `/name argument`."""

    name: str
    help: str
    run: Callable[[str], Coroutine[Any, Any, bool] | None]
    """A coroutine returns whether the kernel has accepted it."""
    argument: str = ""
    """Name of the argument, as in `a theme`; empty if it takes none."""
    choices: Sequence[str] = ()
    """Arguments that are offered."""


def parse_command(text: str) -> tuple[str, str] | None:
    """Return name and argument of a message that is a command; None if it is none."""
    found = _COMMAND.fullmatch(text)
    return None if found is None else (found[1], found[2] or "")


def complete_command(before: str, commands: Mapping[str, SlashCommand]) -> Completion | None:
    """Return the commands, or arguments of one, that the beginning of a message can stand for."""
    if (begun := _BEGUN_COMMAND.match(before)) is not None:
        found = [
            CompletionChoice(f"/{one.name} " if one.argument else f"/{one.name}", one.help)
            for one in commands.values()
            if one.name.startswith(begun[1])
        ]
        return Completion(begun[0], tuple(found), is_command=True)
    begun = _BEGUN_ARGUMENT.match(before)
    command = None if begun is None else commands.get(begun[1])
    if begun is None or command is None:
        return None
    offered = tuple(CompletionChoice(one) for one in command.choices if one.startswith(begun[2]))
    return Completion(begun[2], offered, is_command=True)


def complete_agent_command(
    before: str, agents: Mapping[str, Mapping[str, str]]
) -> Completion | None:
    """Return the commands of its own that an agent has, behind its name and a `/`.

    Args:
        agents: by name, what the commands of each do.
    """
    begun = _BEGUN_AGENT_COMMAND.match(before)
    if begun is None or begun[1] not in agents:
        return None
    offered = ((f"/{name}", does) for name, does in agents[begun[1]].items())
    found = (
        CompletionChoice(f"{name} ", does) for name, does in offered if name.startswith(begun[2])
    )
    return Completion(begun[2], tuple(found))
