"""Place that a model's call works in: its own context, or elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.constants import DEFAULT_CONTEXT
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.roles import Permission

_GROUPS: Final = frozenset({"block", "source"})
"""Groups of tools that work on a context, and may also write there without being asked about."""

_NOT_HERE: Final = frozenset({"block.attach"})
"""Tools that read files of the kernel's host."""

_BLOCKS: Final = frozenset(
    {"block_id", "parent_id", "after", "before", "after_block", "message", "parent", "summary"}
)
"""Parameters that name a block by a reference, wherever they are strings."""

_CONTEXT: Final = "context"


async def is_harmless(
    kernel: Kernel, context_id: str, tool: str, arguments: Mapping[str, Any]
) -> bool:
    """Return whether a call reads, or writes blocks, in one context only.

    Args:
        tool: name of the tool for models.
    """
    name = tool.replace("_", ".", 1)
    if name not in kernel.registry.names or name in _NOT_HERE:
        return False
    found = kernel.registry[name]
    if found.needs is not Permission.READ and name.partition(".")[0] not in _GROUPS:
        return False
    takes = found.params.model_fields.keys()
    references = [
        value
        for key, value in arguments.items()
        if key in _BLOCKS and key in takes and isinstance(value, str)
    ]
    stated = arguments.get(_CONTEXT)
    if _CONTEXT not in takes and not references:
        return False
    if _CONTEXT in takes and (stated is not None or not references):
        if not await _is_context(kernel, context_id, stated or DEFAULT_CONTEXT):
            return False
    for reference in references:
        try:
            context, _ = await kernel.find_block(reference)
        except AntiphonError:
            continue  # the tool says so
        if context.id != context_id:
            return False
    return True


async def _is_context(kernel: Kernel, context_id: str, reference: object) -> bool:
    try:
        context = await kernel.context(str(reference))
    except AntiphonError:
        return True  # the tool says so
    return context.id == context_id
