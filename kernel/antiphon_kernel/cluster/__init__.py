"""Several kernels on one database: which of them has a context, and what they tell each other."""

from antiphon_kernel.cluster.cluster import Cluster
from antiphon_kernel.cluster.news import NewsKind
from antiphon_kernel.cluster.ownership import PATIENCE_SECONDS, Ownership
from antiphon_kernel.cluster.routing import (
    forwarding,
    is_forwarding,
    is_unchanged,
    stop_forwarding,
)
