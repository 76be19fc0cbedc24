"""Windows of a model in tokens, and how many tokens an answer may have within them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from antiphon_kernel.types.errors import invalid_params

_UNKNOWN: Final = 8192


@dataclass(frozen=True, slots=True)
class ModelWindow:
    """Most tokens that a model takes and gives; as given here, of a model that nobody knows."""

    input: int = _UNKNOWN
    """Of a request; an answer counts against it unless the windows are `separate`."""
    output: int = _UNKNOWN
    """Of an answer."""
    total: int | None = None
    """Of both together, where there is such a limit."""
    separate: bool = False
    """Whether an answer has a window of its own beside that of the input."""

    def room(self, estimated: int) -> int:
        """Return what is left for an answer after so many tokens of input; may be negative."""
        by_total = self.output if self.total is None else self.total - estimated
        by_input = self.input - estimated
        if self.separate and by_input >= 0:
            by_input = self.output
        return min(self.output, by_input, by_total)


def clamp_max_tokens(requested: int | float, window: ModelWindow, estimated: int) -> int:
    """Return how many tokens an answer may have: what was asked for, as far as there is room.

    Args:
        requested: rounded down; at least 1 is returned.
        estimated: tokens of the input, with system prompt and tools.

    Raises:
        AntiphonError: invalid_params if `requested` is not a number.
    """
    if isinstance(requested, float) and math.isnan(requested):
        raise invalid_params(
            "max_tokens is a number of tokens, not NaN. Leave it out for the model's own limit.",
            field="max_tokens",
            expected="a number",
            found="NaN",
        )
    return max(1, math.floor(min(requested, window.room(estimated))))
