"""A context as it is at the end of a replay, as one page to read and to print."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon_kernel.types.replay import ReplayLine


def static_page(lines: Iterable[ReplayLine]) -> str:
    """Return the page, as HTML without a script."""
    raise NotImplementedError
