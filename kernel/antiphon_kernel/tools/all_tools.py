"""Every tool of the kernel layer; higher layers add theirs when the process is put together."""

from __future__ import annotations

from typing import Final

from antiphon_kernel.registry import Tool, tools_of
from antiphon_kernel.tools import (
    block,
    compaction,
    content,
    context,
    drift,
    drift_commit,
    drift_merge,
    edit,
    file,
    file_edit,
    history,
    kernel,
    keys,
    layout,
    message,
    message_import,
    read,
    search,
    sources,
    subscribe,
    usage,
)

KERNEL_TOOLS: Final[tuple[Tool, ...]] = tools_of(
    block,
    edit,
    read,
    search,
    content,
    history,
    subscribe,
    context,
    drift,
    compaction,
    layout,
    usage,
    sources,
    message,
    message_import,
    file,
    file_edit,
    drift_commit,
    drift_merge,
    kernel,
    keys,
)
