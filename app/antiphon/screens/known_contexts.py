"""The contexts of the kernel, as it lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from antiphon.render.display import displayable_in_a_row
from antiphon.screens.kernel_calls import KernelCalls
from antiphon.widgets.sidebar import ContextName


async def list_contexts(
    kernel: KernelCalls, seen: Mapping[str, int], *, archived: bool = False
) -> list[ContextName]:
    """Return the contexts, oldest first, with what changed since they were `seen`."""
    params: dict[str, Any] = {"seen": dict(seen), "archived": archived}
    result = await kernel.call("context.list", params, "The contexts cannot be listed")
    return [
        ContextName(
            one["context_id"],
            displayable_in_a_row(one["label"]),
            one["context_version"],
            one.get("changed", 0),
            source=one.get("source_context"),
            changed_at=one["last_change"],
            is_archived="archived" in one,
        )
        for one in ([] if result is None else result["contexts"])
    ]


async def create_context(kernel: KernelCalls, label: str) -> str | None:
    """Make a context; return its id, None if refused."""
    made = await kernel.call("context.create", {"label": label}, "Not made")
    return None if made is None else str(made["context_id"])


async def fork_context(kernel: KernelCalls, context: str, **part: Any) -> str | None:
    """Copy a context or a `part` of it; return the copy's id, None if refused."""
    made = await kernel.call("context.fork", {"context": context, **part}, "Not forked")
    return None if made is None else str(made["context_id"])


async def rename_context(kernel: KernelCalls, context: str, label: str) -> Mapping[str, Any] | None:
    """Give a context another label; None if refused."""
    params = {"context": context, "label": label}
    return await kernel.call("context.rename", params, "Not renamed")
