"""Configuration of one model: address, key, limits, price, what its calls may do; what it used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Final

from antiphon_kernel.messages import ModelWindow
from antiphon_kernel.text.path_patterns import matches_path
from antiphon_kernel.text.simple_command import CommandPattern

EVERY_TOOL: Final = "*"
"""The name in a policy that stands for all tools without an entry of their own."""

SECRET_FILES: Final = (
    *(".env", ".env.local", ".env.*.local", ".env.{dev,development,prod,production,staging,test}"),
    *(".envrc", ".netrc", ".npmrc", ".pypirc", ".htpasswd", ".git-credentials"),
    *(".pgpass", ".my.cnf", ".vault-token", "credentials.json", "secrets.{json,toml,yaml,yml}"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.tfstate"),
    *("id_{rsa,dsa,ecdsa,ed25519}*", ".ssh", ".aws", ".gnupg", ".kube"),
)
"""Files that no model sees where a configuration says nothing about it."""


class ToolPermit(StrEnum):
    """Whether a model's call may run."""

    ALLOW = "allow"
    ASK = "ask"
    """A person decides about each call."""
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class PermissionPolicy:
    """Permits of one model by tool, and the commands and files that it may always use, or never."""

    tools: Mapping[str, ToolPermit] = field(default_factory=dict)
    """By name of the tool for models, by that of its MCP server (`NAME__*`), or `EVERY_TOOL`."""
    shell_allow: tuple[CommandPattern, ...] = ()
    """Commands that the tool `shell` may run where it is to ask."""
    files_allow: tuple[str, ...] = ()
    """Globs of files that tools may change and make where they are to ask."""
    files_deny: tuple[str, ...] | None = None
    """Globs of files that the model does not even see; `SECRET_FILES` if None."""

    def over(self, base: PermissionPolicy) -> PermissionPolicy:
        """Return this policy where it says something, and `base` elsewhere; patterns of both."""
        denied = None
        if self.files_deny is not None or base.files_deny is not None:
            denied = (base.files_deny or ()) + (self.files_deny or ())
        return PermissionPolicy(
            {**base.tools, **self.tools},
            base.shell_allow + self.shell_allow,
            base.files_allow + self.files_allow,
            denied,
        )

    def permit(self, tool: str) -> ToolPermit | None:
        """Return what it says of a tool; None if it says nothing."""
        of_server = self.tools.get(f"{tool.partition('__')[0]}__*") if "__" in tool else None
        return self.tools.get(tool) or of_server or self.tools.get(EVERY_TOOL)

    def allows_command(self, line: str) -> bool:
        """Return whether a shell command may run where `shell` is to ask."""
        return any(pattern.matches(line) for pattern in self.shell_allow)

    def allows_file(self, path: str) -> bool:
        """Return whether a file may be changed or made where that is to ask."""
        return matches_path(path, self.files_allow)

    def denies_file(self, path: str) -> bool:
        """Return whether the model does not even see a file, in whatever case its name is."""
        denied = SECRET_FILES if self.files_deny is None else self.files_deny
        return matches_path(path, denied, ignores_case=True)


ALLOW_EVERYTHING: Final = PermissionPolicy({EVERY_TOOL: ToolPermit.ALLOW})
"""Policy of models that play recordings, which are the owner's own."""


class ModelKind(StrEnum):
    """Kind of a model: the wire format that it is asked in."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    """OpenAI's Responses."""
    OPENAI_CHAT = "openai-chat"
    """Chat Completions, of any compatible server."""
    GOOGLE = "google"
    LOCAL = "local"
    """A GGUF file, served by a child process of the kernel."""
    SCRIPTED = "scripted"
    """Recordings that are played."""


SERVICES: Final = {
    ModelKind.ANTHROPIC: ("anthropic", ("ANTHROPIC_API_KEY",), "MessagesModel"),
    ModelKind.OPENAI: ("openai", ("OPENAI_API_KEY",), "ResponsesModel"),
    ModelKind.OPENAI_CHAT: ("openai", ("OPENAI_API_KEY",), "ChatModel"),
    ModelKind.GOOGLE: ("google", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), "GeminiModel"),
}
"""For each kind of model: the service, as prices are published of it, which the extra of this
package with its library and the module that imports that are called like; variables that hold its
key, of which the first that is set counts; and its class in that module."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key of a provider; its value is in no representation."""

    value: str = field(repr=False)
    source: str
    """Place that the key comes from, for people: `$OPENAI_API_KEY`, or a file's path."""


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """Price of a model in US dollars for a million tokens."""

    input: float
    """Of a request."""
    output: float
    """Of an answer."""
    cached: float | None = None
    """Of input that is read from the cache; as other input if absent."""
    cache_write: float | None = None
    """Of input that is written to the cache; as other input if absent."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """One model that people can ask."""

    name: str
    """Name in messages, after `@`."""
    kind: ModelKind
    model: str
    """The provider's own name of it; of a local model the path of its file."""
    base_url: str | None = None
    """Address of the server; the provider's own if absent."""
    key: ApiKey | None = None
    window: ModelWindow | None = None
    """Limits in tokens; those that are known of the model if absent."""
    max_tokens: int | None = None
    """Most tokens of one answer."""
    thinking: int | None = None
    """Tokens of an answer that may be reasoning; 0 for none, the provider's default if absent."""
    system: str = ""
    """Instructions of the owner, behind the built-in ones."""
    tools: tuple[str, ...] | None = None
    """Names of the tools it may call; those that its window has room for if absent."""
    price: ModelPrice | None = None
    """Price; the published one if absent, where it is known."""
    permissions: PermissionPolicy | None = None
    """Rules that come before those for every model."""


_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens as providers count them, and their price where it is known."""

    requests: int = 0
    """How many there were."""
    input_tokens: int = 0
    """All of the requests, cached ones included."""
    cached_tokens: int = 0
    """Of the input, those read from a provider's cache."""
    cache_write_tokens: int = 0
    """Of the input, those written to a provider's cache."""
    output_tokens: int = 0
    """All of the answers, reasoning included."""
    reasoning_tokens: int = 0
    """Of the output, those of reasoning."""
    cost: float = 0.0
    """US dollars."""
    unpriced: int = 0
    """Requests whose price is not known, which `cost` leaves out."""

    def priced(self, price: ModelPrice | None) -> TokenUsage:
        """Return what one request has used, with its price if that is known."""
        if price is None:
            return replace(self, requests=1, unpriced=1)
        cached = price.cached if price.cached is not None else price.input
        written = price.cache_write if price.cache_write is not None else price.input
        plain = self.input_tokens - self.cached_tokens - self.cache_write_tokens
        dollars = (
            max(0, plain) * price.input
            + self.cached_tokens * cached
            + self.cache_write_tokens * written
            + self.output_tokens * price.output
        )
        return replace(self, requests=1, cost=dollars / _MILLION)

    def __add__(self, other: TokenUsage) -> TokenUsage:
        sums = {
            one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)
        }
        return TokenUsage(**sums)

    @property
    def tokens(self) -> int:
        """Return the tokens of requests and answers together."""
        return self.input_tokens + self.output_tokens

    def as_json(self) -> dict[str, Any]:
        """Return its fields that say something."""
        return {name: value for name, value in asdict(self).items() if value}

    @classmethod
    def parse(cls, stored: str) -> TokenUsage:
        """Read what `as_json` gave, here or in a version that counts more."""
        found: dict[str, Any] = json.loads(stored)
        known = {one.name for one in fields(cls)}
        return cls(**{name: value for name, value in found.items() if name in known})
