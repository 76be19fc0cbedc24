"""A replay as a recording that `antiphon demo --play` plays."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon_kernel.types.replay import ReplayLine


def recording_of(lines: Iterable[ReplayLine]) -> str:
    """Return the recording: models' turns, and people's messages as one person's keys."""
    raise NotImplementedError
