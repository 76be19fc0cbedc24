"""Rights to write that are lost while a call waits: it does not write, whatever the tool.

The tools here check nothing themselves after the beginning of a call, as if they had forgotten to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

import pytest

from antiphon_kernel.access import Members
from antiphon_kernel.contexts import Context
from antiphon_kernel.contexts.history.history_cache import HistoryCache
from antiphon_kernel.document.history.block_history import BlockHistory
from antiphon_kernel.kernel import Call, Kernel
from antiphon_kernel.storage import Dismissal
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole, Permission
from antiphon_kernel.yjs.close_codes import CloseCode
from tests.errors import raises
from tests.kernel.kernel.calls import Caller, Make, refused
from tests.kernel.reference.examples import Given, Shown, kind_of, read_example

WRITING = [
    tool.name
    for tool in KERNEL_TOOLS
    if (tool.needs is Permission.WRITE or tool.name == "context.import")
    # These take another program that writes, and a drift that is staged.
    and tool.name not in ("file.resolve", "drift.cancel")
]
"""The tools that write into a context, or make one."""

Lose = Callable[[pytest.MonkeyPatch, Kernel, Actor], None]


def dismissed(patch: pytest.MonkeyPatch, kernel: Kernel, actor: Actor) -> None:
    """The session is ended, as it is when a person is demoted or kicked."""
    ended = Dismissal(CloseCode.ROLE_CHANGED, "You are a viewer now.")
    assert kernel.sessions.dismiss(ended, lambda one: one == actor) == 1


def demoted(patch: pytest.MonkeyPatch, kernel: Kernel, actor: Actor) -> None:
    """The session goes on with another role, as that of a model does."""
    patch.setattr(Members, "role_of", lambda *_: AccessRole.VIEWER)


def loses_the_right_at_the_first_wait(
    patch: pytest.MonkeyPatch, kernel: Kernel, caller: Actor, lose: Lose
) -> None:
    found, checked = Call.check, list[str]()

    def check(self: Call) -> None:
        if not checked:
            found(self)
            checked.append(self.tool.name)
            lose(patch, kernel, caller)

    patch.setattr(Call, "check", check)


async def written(kernel: Kernel) -> list[tuple[str, int, bytes]]:
    contexts = [await kernel.context(row.id) for row in kernel.contexts.rows()]
    return [(one.label, one.seq, one.document.state_vector()) for one in contexts]


def _writes(tool: str, params: dict[str, Any]) -> bool:
    return "difference" in params if tool == "drift.commit" else not params.get("dry_run")


@pytest.mark.parametrize(("tool", "lose"), zip(WRITING, cycle([dismissed, demoted])))
async def test_writing_tool_that_forgets_to_check_is_stopped_at_the_write(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, tool: str, lose: Lose
) -> None:
    example = read_example(tool)
    assert example is not None
    sessions: dict[str, Actor] = {}

    async def session_of(call: Given | Shown) -> Actor:
        if call.caller not in sessions:
            principal = await kernel.principal(call.caller, kind_of(call.caller))
            sessions[call.caller] = kernel.open_session(principal, "unix")
        return sessions[call.caller]

    for call in example.given:
        await kernel.call(await session_of(call), call.tool, call.params)
    shown = next(one for one in example.shows if not one.fails and _writes(tool, one.params))
    caller = await session_of(shown)
    before = await written(kernel)
    loses_the_right_at_the_first_wait(monkeypatch, kernel, caller, lose)
    with raises(ErrorCode.PERMISSION_DENIED):
        await kernel.call(caller, tool, shown.params)
    await kernel.open_contexts.flush()
    assert await written(kernel) == before


@pytest.mark.parametrize("lose", [dismissed, demoted])
async def test_text_that_was_accepted_before_is_written(
    kernel: Kernel, bo: Actor, make: Make, monkeypatch: pytest.MonkeyPatch, lose: Lose
) -> None:
    block = await make("one ")
    request: dict[str, Any] = {"block_id": block, "text": "two", "stream": True}
    assert (await kernel.call(bo, "block.append", request))["unflushed"] == 3
    lose(monkeypatch, kernel, bo)
    with raises(ErrorCode.PERMISSION_DENIED):
        await kernel.call(bo, "block.append", request)
    await kernel.open_contexts.flush()
    assert (await kernel.context()).document.text(block) == "one two"


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
