"""The tables, and the way from one version of them to the next.

``user_version`` counts migrations. Each stored binary record carries a format byte, so that the
encoding can change without touching what is on disk. Ids that stand in every row (context,
principal, session, block) are small numbers that refer to one row with the full id.
"""

from __future__ import annotations

from typing import Final

from antiphon_kernel.journal.migrations import (
    m01_founding,
    m02_snapshots,
    m03_undo_units,
    m04_search,
    m05_context_states,
    m06_numbered_ops,
)

RECORD_FORMAT: Final = 1
"""Format of the binary columns written by this version."""

READABLE_FORMATS: Final = frozenset({1})
"""Formats of transactions that this version reads."""

MIGRATIONS: Final[tuple[str, ...]] = (
    m01_founding.SQL,
    m02_snapshots.SQL,
    m03_undo_units.SQL,
    m04_search.SQL,
    m05_context_states.SQL,
    m06_numbered_ops.SQL,
)
"""In order; a new one goes to the end. What has been released is never edited."""
