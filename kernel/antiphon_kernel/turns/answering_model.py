"""A model of the kernel while it runs: its provider, and what is learned about it."""

from __future__ import annotations

from dataclasses import dataclass, field

from antiphon_kernel.messages import Calibration
from antiphon_kernel.providers.model_config import ModelConfig
from antiphon_kernel.providers.provider import Provider
from antiphon_kernel.types.ids import ContextId


@dataclass(eq=False, slots=True)
class AnsweringModel:
    """One model that turns are played with."""

    name: str
    provider: Provider
    config: ModelConfig | None = None
    """None of a model that plays recordings."""
    calibration: Calibration = field(default_factory=Calibration)
    """Correction of the estimate of tokens, by what its provider has reported."""
    looked: dict[ContextId, int] = field(default_factory=dict)
    """For each context, its version when the model last read it."""
