"""The agents that can be asked in a context: what they offer there, and what they have used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from antiphon.render.display import displayable_in_a_row


class AgentChoice(NamedTuple):
    """A mode or a value of an option that an agent does not have now."""

    title: str
    params: Mapping[str, Any]
    """Parameters of `agent.set`."""


@dataclass(frozen=True, slots=True)
class AgentHere:
    """One agent, as it has said last what it is and does in the context."""

    name: str
    """Name in messages, after `@`."""
    username: str
    mode: str
    """Name of its mode; empty if it has none."""
    tokens: int
    window: int
    cost: str
    choices: tuple[AgentChoice, ...]
    commands: Mapping[str, str]
    """By name, what its own commands do."""

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> AgentHere:
        """Return what the kernel tells of an agent."""
        usage = told.get("usage") or {}
        cost = f"{usage['cost']:.2f} {usage['currency']}" if usage.get("cost") else ""
        modes = [
            choice["name"]
            for option in told["options"]
            for choice in option["choices"]
            if option.get("category") == "mode" and choice["value"] == option["value"]
        ]
        return cls(
            told["name"],
            told["username"],
            displayable_in_a_row(next(iter(modes), "")),
            usage.get("used", 0),
            usage.get("size", 0),
            f"${cost.removesuffix(' USD')}" if cost.endswith(" USD") else cost,
            tuple(_choices(told)),
            {one["name"]: displayable_in_a_row(one["description"]) for one in told["commands"]},
        )


def _choices(told: Mapping[str, Any]) -> Iterator[AgentChoice]:
    for option in told["options"]:
        about = {"agent": told["name"], "option": option["id"]}
        for one in option["choices"]:
            if one["value"] != option["value"]:
                title = f"{told['name']}: {option['name']} {one['name']}"
                yield AgentChoice(title, {**about, "value": one["value"]})
