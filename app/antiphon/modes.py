"""Input modes, which decide the meaning of keys."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """Always exactly one; the footer says which. It follows from what has the focus."""

    WRITE = "WRITE"
    """A message, in the composer."""
    NAVIGATE = "NAVIGATE"
    """Choosing a cell."""
    EDIT = "EDIT"
    """Inside a cell: all keys are text."""
    CONTEXTS = "CONTEXTS"
    """In the sidebar, choosing a context."""
