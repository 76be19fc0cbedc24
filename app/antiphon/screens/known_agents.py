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
        usage, modes = told.get("usage") or {}, told["modes"]
        cost = f"{usage['cost']:.2f} {usage['currency']}" if usage.get("cost") else ""
        named = [one["name"] for one in modes if one["id"] == told.get("mode")]
        for option in told["options"]:  # some agents have their modes there
            if option.get("category") == "mode":
                chosen = (one for one in option["choices"] if one["value"] == option["value"])
                named += [one["name"] for one in chosen]
        return cls(
            told["name"],
            told["username"],
            displayable_in_a_row(next(iter(named), "")),
            usage.get("used", 0),
            usage.get("size", 0),
            f"${cost.removesuffix(' USD')}" if cost.endswith(" USD") else cost,
            tuple(_choices(told)),
            {one["name"]: displayable_in_a_row(one["description"]) for one in told["commands"]},
        )


def _choices(told: Mapping[str, Any]) -> Iterator[AgentChoice]:
    agent = {"agent": told["name"]}
    for mode in told["modes"]:
        if mode["id"] != told.get("mode"):
            yield AgentChoice(f"{told['name']}: mode {mode['name']}", {**agent, "mode": mode["id"]})
    for option in told["options"]:
        for one in option["choices"]:
            if one["value"] != option["value"]:
                title = f"{told['name']}: {option['name']} {one['name']}"
                yield AgentChoice(title, {**agent, "option": option["id"], "value": one["value"]})
