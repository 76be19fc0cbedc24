"""Models of a kernel: opened when asked, closed at its end, listed, and what their policies say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest

from antiphon_kernel.config import ConfigProblem, ContextTable, Discovery, KernelConfig
from antiphon_kernel.messages import ModelWindow
from antiphon_kernel.providers import (
    ApiKey,
    End,
    ErrorKind,
    ModelConfig,
    ModelKind,
    ModelPrice,
    PermissionPolicy,
    ProviderError,
    RoundRequest,
    TextDelta,
    ToolPermit,
)
from antiphon_kernel.providers.events import TurnEvent
from antiphon_kernel.providers.model_config import ALLOW_EVERYTHING
from antiphon_kernel.turns.models import Models
from tests.kernel.config.test_model_discovery import listed, server
from tests.kernel.turns.stage import OpenStage
from tests.policies import policy_of
from tests.waiting import PATIENCE

CLAUDE = ModelConfig(
    "claude",
    ModelKind.ANTHROPIC,
    "claude-x",
    key=ApiKey("sk-1", "$ANTHROPIC_API_KEY"),
    window=ModelWindow(1000, 100),
    price=ModelPrice(1, 2),
)
LOCAL = ModelConfig("mine", ModelKind.LOCAL, "/home/ada/m.gguf")
PROBLEM = ConfigProblem("/home/ada/config.toml", "[models.x]: no.", 3)


class Opened:
    """A provider that answers with these events, and knows whether it was closed."""

    def __init__(self, *events: TurnEvent, fails: bool = False) -> None:
        self._events = events
        self._fails = fails
        self.is_closed = False
        self.asked: list[RoundRequest] = []

    async def stream(self, request: RoundRequest) -> AsyncGenerator[TurnEvent, None]:
        self.asked.append(request)
        for event in self._events:
            yield event

    async def close(self) -> None:
        self.is_closed = True
        if self._fails:
            raise OSError("it does not end")


def models(config: KernelConfig) -> Models:
    return Models(config=config)


async def test_providers_are_opened_once_when_asked_and_all_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[str] = []
    providers = {"claude": Opened(fails=True), "mine": Opened(), "unused": Opened()}

    def open_provider(config: ModelConfig) -> Opened:
        opened.append(config.name)
        return providers[config.name]

    unused = ModelConfig("unused", ModelKind.GOOGLE, "g")
    monkeypatch.setattr("antiphon_kernel.turns.models.open_provider", open_provider)
    some = models(KernelConfig(models=(CLAUDE, LOCAL, unused)))
    assert opened == []
    claude = await some.open("claude")
    assert claude is await some.open("claude") and claude.provider is providers["claude"]
    assert (await some.open("mine")).provider is providers["mine"]
    await some.close()
    assert opened == ["claude", "mine"]
    assert [one.is_closed for one in providers.values()] == [True, True, False]


def test_default_model_is_the_chosen_one_or_the_first() -> None:
    assert models(KernelConfig()).default is None
    assert models(KernelConfig(models=(CLAUDE, LOCAL))).default == "claude"
    chosen = models(
        KernelConfig(models=(CLAUDE, LOCAL), context=ContextTable(default_model="mine"))
    )
    assert chosen.default == "mine"
    assert (
        models(KernelConfig(models=(CLAUDE,), context=ContextTable(default_model="gone"))).default
        == "claude"
    )


def test_recordings_may_do_what_is_in_them_and_models_what_is_configured() -> None:
    played = ModelConfig("played", ModelKind.SCRIPTED, "x.jsonl")
    mine = replace(LOCAL, permissions=policy_of({"shell": "allow"}))
    shared = policy_of({"shell": "deny", "file_write": "deny"})
    some = models(KernelConfig(models=(CLAUDE, mine, played), permissions=shared))
    assert some.permissions("played") == ALLOW_EVERYTHING
    assert some.permissions("claude").permit("shell") is ToolPermit.DENY
    assert some.permissions("mine").permit("shell") is ToolPermit.ALLOW
    assert some.permissions("mine").permit("file_write") is ToolPermit.DENY


async def test_models_of_local_servers_come_after_those_that_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("antiphon_kernel.config.model_discovery.ANSWER_SECONDS", PATIENCE)
    async with server(listed({"id": "claude"}, {"id": "llama"})) as port:
        some = models(KernelConfig(models=(CLAUDE,), discovery=Discovery(local_ports=[port])))
        waiting = asyncio.ensure_future(some.looked.wait())
        await some.look()
        await waiting
    assert list(some) == ["claude", "llama"]
    assert some.configured("claude") == CLAUDE


async def test_list_says_to_the_owner_where_keys_are_and_to_others_not(
    open_stage: OpenStage,
) -> None:
    config = KernelConfig(models=(CLAUDE, LOCAL), problems=(PROBLEM,))
    stage = await open_stage(models(config))
    found = await stage.call("model.list")
    assert found["models"] == [
        {
            "name": "claude",
            "kind": "anthropic",
            "model": "claude-x",
            "default": True,
            "key": "$ANTHROPIC_API_KEY",
            "window": {"input": 1000, "output": 100, "separate": False},
            "price": {"input": 1.0, "output": 2.0},
            "tools": [],
        },
        {"name": "mine", "kind": "local", "model": "/home/ada/m.gguf", "default": False},
    ]
    (problem,) = found["problems"]
    assert problem == {"file": PROBLEM.file, "line": 3, "message": PROBLEM.message}
    others = await stage.kernel.call(await stage.actor("bo"), "model.list", {})
    assert "ada" not in repr(others) and "API_KEY" not in repr(others)
    assert [one["name"] for one in others["models"]] == ["claude", "mine"]


async def test_check_asks_for_little_and_says_who_does_not_answer(
    open_stage: OpenStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = ProviderError("Your key is wrong.", ErrorKind.UNAUTHORISED)
    good, bad = Opened(TextDelta("OK"), End("end_turn")), Opened(failed)
    monkeypatch.setattr(
        "antiphon_kernel.turns.models.open_provider",
        lambda one: {"claude": good, "mine": bad}[one.name],
    )
    stage = await open_stage(models(KernelConfig(models=(CLAUDE, LOCAL))))
    assert (await stage.call("model.check"))["models"] == [
        {"name": "claude", "ok": True},
        {
            "name": "mine",
            "ok": False,
            "error": "Your key is wrong.",
            "error_kind": "unauthorised",
        },
    ]
    prompt = good.asked[0].prompt
    assert prompt.max_tokens <= 16 and prompt.tools == ()
    assert stage.headers() == []
    await stage.call("model.check", model="claude")
    assert (len(good.asked), len(bad.asked)) == (2, 1)


def test_permit_is_that_of_the_tool_then_of_every_tool_then_none() -> None:
    policy = policy_of({"shell": "deny", "*": "ask"})
    assert policy.permit("shell") is ToolPermit.DENY
    assert policy.permit("block_read") is ToolPermit.ASK
    assert PermissionPolicy().permit("shell") is None
    assert ALLOW_EVERYTHING.permit("shell") is ToolPermit.ALLOW


def test_policy_over_another_keeps_what_it_does_not_say() -> None:
    base = policy_of({"shell": "deny", "block_edit": "ask"}, ["git log *"])
    policy = policy_of({"shell": "ask"}, ["git status"]).over(base)
    assert policy.denies_file("a/.ENV") and not policy.denies_file(".env.example")
    assert policy.permit("shell") is ToolPermit.ASK
    assert policy.permit("block_edit") is ToolPermit.ASK
    assert policy.allows_command("git log -n 1")
    assert policy.allows_command("git status")
    assert not policy.allows_command("git push")


def test_patterns_of_files_of_both_policies_count_in_place_of_the_usual_secrets() -> None:
    base = policy_of({}, files_allow=["src/**"], files_deny=["*.key"])
    policy = policy_of({}, files_allow=["a.txt"], files_deny=["b.txt"]).over(base)
    assert [one for one in ("src/x", "a.txt", "b.txt") if policy.allows_file(one)] == [
        "src/x",
        "a.txt",
    ]
    assert [one for one in ("x.KEY", "b.txt", ".env") if policy.denies_file(one)] == [
        "x.KEY",
        "b.txt",
    ]
