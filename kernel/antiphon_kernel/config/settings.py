"""Values of a configuration that has been read: settings, problems, models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from antiphon_kernel.providers import ModelConfig

NO_MODEL: Final = (
    "No model is set up: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY before the kernel"
    " starts, start a local server such as Ollama, or name a model in config.toml."
)
"""One line for people where a kernel has no model."""


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """Something in a configuration that is wrong, and is left out."""

    file: str
    """Path; the name of an environment variable, or an address, where it is no file."""
    message: str
    """One sentence."""
    line: int | None = None
    """Line of the file, counted from 1, where there is one."""

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.message}"


@dataclass(frozen=True, slots=True)
class PermissionRules:
    """Rules for the tool calls of models, as a file states them."""

    permits: Mapping[str, str] = field(default_factory=dict)
    """`allow`, `ask` or `deny` by name of the tool, or `*`."""
    shell_allow: tuple[str, ...] = ()
    """Patterns of commands that run without a question."""


LOCAL_PORTS: Final = (11434, 1234, 8080, 8000)
"""Ports of Ollama, LM Studio, llama.cpp and vLLM."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """Places where models are looked for that no file names."""

    environment: bool = True
    """Keys of providers in the environment."""
    local_ports: tuple[int, ...] = ()
    """Ports of the loopback interface on which servers of models are looked for."""


@dataclass(frozen=True, slots=True)
class KernelConfig:
    """Everything that is configured of one kernel; as given here, of one without any file."""

    models: tuple[ModelConfig, ...] = ()
    """Of the files, then those of keys in the environment."""
    default_model: str | None = None
    """The one that answers messages that name none; the first if absent."""
    budget: int | None = None
    """Tokens of a request beyond which the context is compacted; as the model's window allows if
    absent."""
    max_rounds: int | None = None
    """Rounds of one turn; the built-in limit if absent."""
    max_turn_tokens: int | None = None
    """Tokens of all requests and answers of one turn."""
    max_turn_dollars: float | None = None
    """Price of one turn."""
    max_turn_seconds: int | None = None
    """Seconds of one turn."""
    permissions: PermissionRules = field(default_factory=PermissionRules)
    """Rules for every model."""
    model_permissions: Mapping[str, PermissionRules] = field(default_factory=dict)
    """By name of a model, rules that come before those for every model."""
    discovery: Discovery = field(default_factory=Discovery)
    problems: tuple[ConfigProblem, ...] = ()
