"""The models and agents that answer in a context, and what they use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from antiphon.render.display import displayable_in_a_row
from antiphon.session import KernelCalls
from antiphon.widgets.block_list import MessageLocation
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.signal import Signal

NOBODY: Final = "No model here to answer: `antiphon demo` shows one; !command runs in the shell."
NOBODY_FOR_GUESTS: Final = (
    "No model is here to answer: whoever shares this sets one up, on their machine."
)


@dataclass(frozen=True, slots=True)
class ModelsHere:
    """The models that answer in a context."""

    names: tuple[str, ...] = ()
    default: str | None = None
    """The model that answers messages which name none."""
    use: str = ""
    """For the header, what that one reads and what all have cost; empty if no window is known."""


def use_of(tokens: int, window: int, cost: float) -> str:
    """Return the tokens that a model reads and takes, and US dollars: `12k/200k tokens · $0.03`."""
    share = f"{_count(tokens)}/{_count(window)} tokens"
    return f"{share} · ${cost:.2f}" if cost else share


def _count(tokens: int) -> str:
    """Return a number of tokens in few characters; one below 10,000 as it is."""
    if tokens < 10_000:
        return f"{tokens:,}"
    return f"{tokens / 1e3:.0f}k" if tokens < 999_500 else f"{tokens / 1e6:.1f}M"


class AgentHere(NamedTuple):
    """An agent, as it has said last what it offers in a context and has used."""

    name: str
    """Name in messages, after `@`."""
    username: str
    use: str
    """Its mode, the share of its window and the cost, for the header."""
    choices: Mapping[str, Mapping[str, Any]]
    """Parameters of `agent.set` for each value that an option does not have, by a title."""
    commands: Mapping[str, str]
    """By name, what its own commands do."""

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> AgentHere:
        """Return what the kernel tells of an agent."""
        mode, choices = "", {}
        for option in told["options"]:
            for value, name in _values(option):
                title = displayable_in_a_row(f"{told['name']}: set {option['name']} to {name}")
                if value != option["currentValue"]:
                    choices[title] = {"agent": told["name"], "option": option["id"], "value": value}
                elif option.get("category") == "mode":
                    mode = displayable_in_a_row(name)
        usage = told.get("usage") or {}
        share = f"{_count(usage['used'])}/{_count(usage['size'])}" if usage.get("size") else ""
        cost = usage.get("cost") or {"amount": 0.0, "currency": ""}
        paid = f"{cost['amount']:.2f} {cost['currency']}" if cost["amount"] else ""
        paid = f"${paid.removesuffix(' USD')}" if paid.endswith(" USD") else paid
        use = " · ".join(filter(None, (mode, share, paid)))
        does = {one["name"]: displayable_in_a_row(one["description"]) for one in told["commands"]}
        return cls(told["name"], told["username"], use, choices, does)


def _values(option: Mapping[str, Any]) -> Iterator[tuple[str | bool, str]]:
    """Yield the values that an option of an agent may have, with their names."""
    if option["type"] == "boolean":
        yield from ((True, "on"), (False, "off"))
    for one in option.get("options", ()):
        yield from ((each["value"], each["name"]) for each in one.get("options", [one]))


class KnownModels:
    """The models here as the kernel named them last, and what it is asked about them."""

    def __init__(self, kernel: KernelCalls) -> None:
        self._kernel = kernel
        self.here = ModelsHere()
        self.agents: tuple[AgentHere, ...] = ()
        self.latest = ""
        """Username of the model or agent that is at work, or was last."""
        self.is_known = False
        """The kernel has said which there are."""
        self.nobody = NOBODY_FOR_GUESTS if kernel.session.options.is_guest else NOBODY
        """One line for who has written a message that no model answers."""
        self.changed = Signal[()]()

    @property
    def use(self) -> str:
        """Return for a header the mode and use of an agent that was at work last, or has worked
        where no model answers; else the use of the default model."""
        is_alone = not self.latest and self.here.default not in self.here.names
        agents = (one.use for one in self.agents if one.username == self.latest or is_alone)
        return next(filter(None, agents), self.here.use)

    async def fetch(self) -> None:
        """Ask who answers here and what they use; say what to do if there is nobody."""
        found = await self._asked() if self._kernel.session.is_live else None
        if found is not None:
            self.here, self.is_known = found, True
            await self.fetch_agents()
            self.changed.notify()

    async def fetch_agents(self) -> None:
        """Ask what the agents have said last of what they offer and use."""
        context = {"context": self._kernel.session.document.context}
        told = await self._kernel.call("agent.list", context, "The agents cannot be listed")
        if told is not None:
            self.agents = tuple(map(AgentHere.of, told["agents"]))
            self.changed.notify()

    async def set_agent(self, params: Mapping[str, Any]) -> None:
        """Let an agent work in another mode, or with another value of an option of its own."""
        context = {"context": self._kernel.session.document.context}
        if await self._kernel.call("agent.set", {**context, **params}, "Not changed") is not None:
            await self.fetch_agents()

    async def _asked(self) -> ModelsHere | None:
        """Return the models that answer here; None if the kernel does not say."""
        context = {"context": self._kernel.session.document.context}
        try:
            here = await self._kernel.session.call("context.model", context)
            listed = await self._kernel.session.call("model.list", {})
        except AntiphonError as error:
            if error.code not in (ErrorCode.PERMISSION_DENIED, ErrorCode.NO_KERNEL):
                self._kernel.hint(f"The models cannot be listed: {error.message}")
            return None
        if not self._kernel.session.options.is_guest:
            self.nobody = listed.get("advice") or NOBODY
        names, default = tuple(here["models"]), here.get("model")
        known = {one["name"]: one.get("window") for one in listed["models"]}
        window = known.get(default)
        if default is None or window is None:
            return ModelsHere(names, default)
        try:
            usage = await self._kernel.session.call("context.usage", {**context, "model": default})
        except AntiphonError as error:
            if error.code is ErrorCode.NO_KERNEL:
                return None
            self._kernel.hint(f"Not known how full the model's window is: {error.message}")
            return ModelsHere(names, default)
        tokens = here["instruction_tokens"] + usage["estimated_tokens"]
        taken = window.get("total") or window["input"]
        return ModelsHere(names, default, use_of(tokens, taken, usage["used"]["cost"]))

    async def choose(self, name: str) -> bool:
        """Let a model answer the messages in this context that name none; whether it does."""
        params = {"context": self._kernel.session.document.context, "model": name}
        is_chosen = await self._kernel.call("context.model", params, "Not chosen") is not None
        if is_chosen:
            self._kernel.hint(f"{name} answers here now, unless a message names another.")
        await self.fetch()
        return is_chosen

    async def answer(self, block: str) -> MessageLocation | None:
        """Have a message, or what an answer answers, answered again; None if nobody answers."""
        result = await self._kernel.call("turn.start", {"message": block}, "Not answered")
        if result is not None and not result["models"]:
            self._kernel.hint(self.nobody)
            return None
        return None if result is None else MessageLocation.of(result)

    async def go_on(self, block: str) -> bool:
        """Let a turn go on that has ended with an error; whether it does."""
        result = await self._kernel.call("turn.retry", {"message": block}, "Not asked again")
        if result is not None and result.get("model") is None:
            self._kernel.hint(self.nobody)
        return result is not None and result.get("model") is not None
