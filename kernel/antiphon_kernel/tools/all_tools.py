"""Every tool of the kernel layer; higher layers add theirs when the process is put together."""

from __future__ import annotations

from typing import Final

from antiphon_kernel.registry import Tool, tools_of
from antiphon_kernel.tools import (
    block,
    content,
    context,
    edit,
    history,
    kernel,
    keys,
    layout,
    message,
    message_import,
    read,
    sources,
)

KERNEL_TOOLS: Final[tuple[Tool, ...]] = tools_of(
    block,
    edit,
    read,
    content,
    history,
    context,
    layout,
    sources,
    message,
    message_import,
    kernel,
    keys,
)
