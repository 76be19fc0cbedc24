"""Every tool of this layer."""

from __future__ import annotations

from typing import Final

from antiphon_kernel.registry import Tool, tools_of
from antiphon_kernel.turns import model_listing, permission_tools, request, tools

TURN_TOOLS: Final[tuple[Tool, ...]] = tools_of(tools, request, permission_tools, model_listing)
