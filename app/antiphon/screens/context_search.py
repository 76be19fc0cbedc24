"""Search for a text in all contexts of the kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from antiphon.screens.action_scope import ActionScope
from antiphon.screens.kernel_calls import KernelCalls
from antiphon.screens.picker import PickerEntry, PickerModal
from antiphon_kernel.types.enums import BlockKind

FOUND_BLOCKS: Final = 50

FOUND_IN_A_BLOCK: Final = 3

AROUND: Final = 60
"""Characters of a line that are shown around a match."""


async def choose_found(scope: ActionScope) -> tuple[str, str] | None:
    """Let the person look for a text, in a worker; return the block chosen and what was typed."""
    typed = [""]

    async def ask(query: str) -> Sequence[PickerEntry]:
        typed[0] = query
        return await _found(scope, query) if query.strip() else ()

    empty = "Type what to look for: lower case finds both cases."
    modal = PickerModal("Search in all contexts", ask, empty=empty)
    block = await scope.host.app.push_screen_wait(modal)
    return None if block is None else (block, typed[0])


async def _found(kernel: KernelCalls, query: str) -> Sequence[PickerEntry]:
    is_lower = query == query.lower()
    params = {
        "query": f"(?i){re.escape(query)}" if is_lower else query,
        "regex": is_lower,
        "kinds": [kind.value for kind in BlockKind],
        "context_lines": 0,
        "max_blocks": FOUND_BLOCKS,
        "max_matches_per_block": FOUND_IN_A_BLOCK,
    }
    found = await kernel.call("kernel.search", params)
    if found is None:
        return ()
    choices: list[PickerEntry] = []
    for one in found["results"]:
        lines = [_around(match) for match in one["matches"]]
        more = " …" if one.get("truncated") else ""
        label, _, rest = one["name"].partition(".")
        author = rest.partition(".")[0]
        detail = f"{label} · {author} · {one['kind']}"
        choices.append(PickerEntry(one["block_id"], " · ".join(lines) + more, detail))
    return choices


def _around(match: Mapping[str, Any]) -> str:
    """Return the part of a line around a match."""
    content = str(match["content"])
    start = max(0, int(match["match_start"]) - AROUND // 3)
    return ("…" if start else "") + content[start : start + AROUND].strip()
