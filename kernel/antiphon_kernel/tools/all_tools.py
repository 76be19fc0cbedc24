"""Every tool of the kernel layer; higher layers add theirs when the process is put together."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from antiphon_kernel import tools
from antiphon_kernel.registry import Tool, tools_of

KERNEL_TOOLS: Final[tuple[Tool, ...]] = tools_of(
    *(import_module(f"{tools.__name__}.{one.name}") for one in iter_modules(tools.__path__))
)
"""Those that the modules of this package define."""
