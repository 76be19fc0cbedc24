"""Rights that are lost while a call waits for the disk, lost for that call too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.contexts.history.history_cache import HistoryCache
from antiphon_kernel.document.history.block_history import BlockHistory
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Caller, Make, refused

CALLS: dict[str, Callable[[str], dict[str, Any]]] = {
    "block.edit": lambda block: {
        "block_id": block,
        "base_version": 1,
        "operations": [{"op": "insert", "line": 0, "content": "late"}],
    },
    "block.splice": lambda block: {
        "block_id": block,
        "base_version": 1,
        "offset": 0,
        "insert": "x",
    },
    "block.append": lambda block: {"block_id": block, "text": "late"},
    "block.restore": lambda block: {"block_id": block, "version": 1},
    "block.undo": lambda block: {"block_id": block},
}


@pytest.mark.parametrize("tool", CALLS)
async def test_call_that_waited_for_a_history_is_refused_to_who_was_demoted_meanwhile(
    kernel: Kernel,
    context: Context,
    call: Caller,
    bo: Actor,
    make: Make,
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
) -> None:
    block = await make("one\ntwo\n")
    await kernel.call(bo, "block.splice", {"block_id": block, "offset": 7, "delete_count": 1})
    found, waited = HistoryCache.open, list[str]()

    async def demoting(self: HistoryCache, blocks: Sequence[str]) -> list[BlockHistory]:
        histories = await found(self, blocks)
        await call("kernel.role", principal="bo", role="viewer")
        waited.extend(blocks)
        return histories

    monkeypatch.setattr(HistoryCache, "open", demoting)
    before = context.document.text(block)
    error = await refused(kernel, bo, tool, CALLS[tool](block))
    assert waited == [block]
    assert error.code is ErrorCode.PERMISSION_DENIED
    assert context.document.text(block) == before
