"""Tables of a configuration file, as they are written there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from antiphon_kernel.providers import ModelKind
from antiphon_kernel.text.simple_command import CommandPattern


def _web_address(url: str) -> str:
    """Return an address that names a server and nothing secret."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("an address such as http://127.0.0.1:8080/v1")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ValueError(
            "an address without user name, query or fragment: keys belong into key_env or key_file"
        )
    return url


VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
"""Name of an environment variable that may hold a key."""


def _variable(name: str) -> str:
    if not VARIABLE.fullmatch(name):
        raise ValueError("the name of an environment variable, of A-Z, 0-9 and _; not the key")
    return name


def _command_pattern(text: str) -> str:
    CommandPattern.parse(text)
    return text


_Count = Annotated[int, Field(ge=1, le=10**9)]
_Dollars = Annotated[float, Field(ge=0, le=10**6, allow_inf_nan=False)]


class ConfigTable(BaseModel):
    """Base of every table: nothing unknown, nothing converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PriceTable(ConfigTable):
    """Price in US dollars for a million tokens."""

    input: _Dollars
    output: _Dollars
    cached: _Dollars | None = None
    cache_write: _Dollars | None = None


class WindowTable(ConfigTable):
    """Limits in tokens."""

    input: _Count
    output: _Count | None = None
    total: _Count | None = None
    separate: bool = False


class PermissionsTable(ConfigTable):
    """Permissions of a model's tool calls."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)
    __pydantic_extra__: dict[str, Literal["allow", "ask", "deny"]]

    shell_allow: list[Annotated[str, AfterValidator(_command_pattern)]] = Field(
        default_factory=list, max_length=1_000
    )

    def permits(self) -> dict[str, str]:
        """Return `allow`, `ask` or `deny` by name of a tool."""
        return dict(self.__pydantic_extra__)


class ModelTable(ConfigTable):
    """One model."""

    kind: Annotated[ModelKind, Field(strict=False)]
    model: str = Field(min_length=1, max_length=4_096)
    base_url: Annotated[str, AfterValidator(_web_address)] | None = None
    key_env: Annotated[str, AfterValidator(_variable)] | None = Field(default=None, max_length=200)
    key_file: str | None = Field(default=None, min_length=1)
    max_tokens: _Count | None = None
    thinking: int | None = Field(default=None, ge=0, le=10**9)
    system: str = Field(default="", max_length=50_000)
    tools: list[str] | None = None
    price: PriceTable | None = None
    window: WindowTable | _Count | None = None
    permissions: PermissionsTable | None = None


class ContextTable(ConfigTable):
    """Settings of contexts and turns."""

    default_model: str | None = None
    budget: _Count | None = None
    max_rounds: int | None = Field(default=None, ge=1, le=10_000)
    max_turn_tokens: _Count | None = None
    max_turn_dollars: _Dollars | None = None
    max_turn_seconds: _Count | None = None


class DiscoveryTable(ConfigTable):
    """Models that are there without being named."""

    environment: bool = True
    local_ports: list[Annotated[int, Field(ge=1, le=65_535)]] | None = Field(
        default=None, max_length=20
    )


NESTED: Final[Mapping[str, type[ConfigTable]]] = {"price": PriceTable, "window": WindowTable}
"""Tables inside that of a model."""

TABLES: Final = ("models", "context", "permissions", "discovery")
"""Tables that a file may hold."""
