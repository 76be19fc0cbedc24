"""Forks of contexts, and drift between them."""

from antiphon_kernel.contexts.lineage.drifting import (
    Changes,
    TakenBlocks,
    WrittenDrift,
    capture,
    write_drift,
)
from antiphon_kernel.contexts.lineage.drifts import Drifts
from antiphon_kernel.contexts.lineage.forking import (
    FORK,
    Fork,
    InitialChange,
    read_now,
    read_version,
    split_calls,
    start_fork,
    start_with,
)
from antiphon_kernel.contexts.lineage.merging import (
    MergedBlock,
    MergePlan,
    check_mergeable,
    plan_merge,
    runs_of_splices,
)
