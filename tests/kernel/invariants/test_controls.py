"""The machine against kernels that are broken on purpose: it must notice every time.

A fault that the checks let pass is a check that proves nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.contexts import BlockOwners, Context
from antiphon_kernel.contexts.append_buffer import AppendBuffers
from antiphon_kernel.contexts.commits import Commits
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.storage import Commit, Journal, StoredContext
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.yjs.update import EMPTY_UPDATE
from tests.kernel.invariants.broken import Fault, is_noticed


def a_chunk_is_lost(patch: pytest.MonkeyPatch) -> None:
    def add(self: AppendBuffers, actor: Any, block: str, text: str, *rest: Any) -> int:
        return found(self, actor, block, text[1:], *rest)

    found = AppendBuffers.add
    patch.setattr(AppendBuffers, "add", add)


def chunks_change_places(patch: pytest.MonkeyPatch) -> None:
    def add(self: AppendBuffers, actor: Any, block: str, text: str, *rest: Any) -> int:
        return found(self, actor, block, text[::-1], *rest)

    found = AppendBuffers.add
    patch.setattr(AppendBuffers, "add", add)


def undo_is_forgotten_when_the_kernel_ends(patch: pytest.MonkeyPatch) -> None:
    async def load(self: Journal, *args: Any, **kwargs: Any) -> StoredContext:
        return replace(await found(self, *args, **kwargs), undo=())

    found = Journal.load
    patch.setattr(Journal, "load", load)


def the_last_transaction_is_not_read_again(patch: pytest.MonkeyPatch) -> None:
    async def load(self: Journal, *args: Any, **kwargs: Any) -> StoredContext:
        stored = await found(self, *args, **kwargs)
        return replace(stored, updates=(*stored.updates[:-1], EMPTY_UPDATE))

    found = Journal.load
    patch.setattr(Journal, "load", load)


def acknowledged_before_it_is_on_disk(patch: pytest.MonkeyPatch) -> None:
    def early(self: Journal, one: Commit) -> asyncio.Future[None]:
        found = commit(self, one)
        if one.operation not in ("splice", "edit", "sync"):
            return found
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    commit = Journal.commit
    patch.setattr(Journal, "commit", early)


def a_failed_call_leaves_something(patch: pytest.MonkeyPatch) -> None:
    async def call(self: Kernel, actor: Any, tool: str, params: Any = None) -> dict[str, Any]:
        try:
            return await found(self, actor, tool, params)
        except AntiphonError:
            context = await self.context()
            block = context.document.block_ids()[0]
            context.write(
                actor, "edit", lambda: context.document.splice(block, 0, 0, "a"), blocks=[block]
            )
            raise

    found = Kernel.call
    patch.setattr(Kernel, "call", call)


def what_was_running_goes_on_without_its_writer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BlockOwners, "interrupt", lambda self, context, left: False)


def drafts_are_interrupted_too(patch: pytest.MonkeyPatch) -> None:
    def interrupt(self: BlockOwners, context: Context, left: Any) -> bool:
        drafts = [b for b in context.document.block_ids() if context.document.header(b).is_draft]

        def end() -> None:
            for block in drafts:
                context.document.set_fields(block, status="error")

        if drafts:
            context.write(self.system, "interrupt", end, blocks=drafts, undo=None)
        return found(self, context, left)

    found = BlockOwners.interrupt
    patch.setattr(BlockOwners, "interrupt", interrupt)


def a_broadcast_is_lost(patch: pytest.MonkeyPatch) -> None:
    def subscribe(self: Commits, listener: Any) -> Callable[[], None]:
        return found(self, lambda one: listener(one) if one.seq % 7 else None)

    found = Commits.subscribe
    patch.setattr(Commits, "subscribe", subscribe)


FAULTS: tuple[Fault, ...] = (
    a_chunk_is_lost,
    chunks_change_places,
    undo_is_forgotten_when_the_kernel_ends,
    the_last_transaction_is_not_read_again,
    acknowledged_before_it_is_on_disk,
    a_failed_call_leaves_something,
    what_was_running_goes_on_without_its_writer,
    drafts_are_interrupted_too,
    a_broadcast_is_lost,
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
async def test_a_kernel_is_caught_in_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    fault(monkeypatch)
    assert await is_noticed(tmp_path)
