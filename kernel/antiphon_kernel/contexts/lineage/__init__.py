"""Forks of contexts."""

from antiphon_kernel.contexts.lineage.forking import (
    FORK,
    Fork,
    InitialChange,
    copied_names,
    read_now,
    read_version,
    split_calls,
    start_fork,
    start_with,
)
