"""The machine against kernels that are broken on purpose: it must notice every time.

A fault that the checks let pass is a check that proves nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from antiphon_kernel.contexts import BlockOwners, Broadcast, Context
from antiphon_kernel.contexts.append_buffer import AppendBuffers
from antiphon_kernel.contexts.undo_stack import UndoStacks
from antiphon_kernel.document.history.block_history import BlockHistory, VersionMap
from antiphon_kernel.document.history.undo_units import UpdatePlan
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.storage import Commit, Journal, StoredContext
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.records import Run
from antiphon_kernel.types.signal import Signal
from antiphon_kernel.yjs.id_set import IdRange
from antiphon_kernel.yjs.update import EMPTY_UPDATE
from tests.kernel.invariants.cases import run_cases
from tests.kernel.invariants.machine import run_machine
from tests.kernel.invariants.oracle import Violation

Fault = Callable[[pytest.MonkeyPatch], None]
"""Breaks the kernel until the patch is undone."""


def appended(patch: pytest.MonkeyPatch, change: Callable[[str], str]) -> None:
    """Every chunk that is appended arrives as `change` says."""

    def add(self: AppendBuffers, actor: Any, block: str, text: str, *rest: Any) -> int:
        return found(self, actor, block, change(text), *rest)

    found = AppendBuffers.add
    patch.setattr(AppendBuffers, "add", add)


def a_chunk_is_lost(patch: pytest.MonkeyPatch) -> None:
    appended(patch, lambda text: text[1:])


def chunks_change_places(patch: pytest.MonkeyPatch) -> None:
    appended(patch, lambda text: text[::-1])


def loaded(patch: pytest.MonkeyPatch, change: Callable[[StoredContext], StoredContext]) -> None:
    """Every context is read as `change` says."""

    async def load(self: Journal, *args: Any, **kwargs: Any) -> StoredContext:
        return change(await found(self, *args, **kwargs))

    found = Journal.load
    patch.setattr(Journal, "load", load)


def undo_is_forgotten_when_the_kernel_ends(patch: pytest.MonkeyPatch) -> None:
    loaded(patch, lambda stored: replace(stored, undo=()))


def the_last_transaction_is_not_read_again(patch: pytest.MonkeyPatch) -> None:
    loaded(patch, lambda one: replace(one, updates=(*one.updates[:-1], EMPTY_UPDATE)))


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
    def notify(self: Signal[*tuple[Any, ...]], *values: Any) -> None:
        lost = (one for one in values if isinstance(one, Broadcast) and not one.seq % 7)
        if not any(lost):
            found(self, *values)

    found = Signal.notify
    patch.setattr(Signal, "notify", notify)


# Histories: undo, blame and earlier versions that are nearly right

PlanTurn = Callable[[BlockHistory, int, Any, int], UpdatePlan]


def planned(
    patch: pytest.MonkeyPatch, change: Callable[[BlockHistory, UpdatePlan], UpdatePlan]
) -> None:
    """Every undo and redo is carried out as `change` says."""

    def plan(self: BlockHistory, unit: int, turn: Any, client: int) -> UpdatePlan:
        found = plan_turn(self, unit, turn, client)
        return change(self, found) if found else found

    plan_turn: PlanTurn = BlockHistory.plan_undo
    patch.setattr(BlockHistory, "plan_undo", plan)


def nothing_comes_back_by_undo(patch: pytest.MonkeyPatch) -> None:
    planned(patch, lambda _, plan: replace(plan, items=()) if plan.deletions else plan)


def what_comes_back_stands_at_the_beginning(patch: pytest.MonkeyPatch) -> None:
    def at_the_beginning(history: BlockHistory, plan: UpdatePlan) -> UpdatePlan:
        sequence = history.sequence()
        first = next((one.first for one in sequence or ()), None)
        items = tuple(replace(one, origin=None, right_origin=first) for one in plan.items)
        return replace(plan, items=items)

    planned(patch, at_the_beginning)


def undo_takes_a_neighbour_along(patch: pytest.MonkeyPatch) -> None:
    def and_another(history: BlockHistory, plan: UpdatePlan) -> UpdatePlan:
        for one in history.sequence() or ():
            if one.alive and one.size:
                return replace(
                    plan, deletions=(*plan.deletions, IdRange(one.client, one.clock, one.end))
                )
        return plan

    planned(patch, and_another)


def what_comes_back_is_new_text(patch: pytest.MonkeyPatch) -> None:
    planned(
        patch,
        lambda _, plan: replace(plan, items=tuple(replace(i, sources=()) for i in plan.items)),
    )


def a_new_edit_leaves_what_could_be_redone(patch: pytest.MonkeyPatch) -> None:
    def keep(self: UndoStacks, actor: Any, *rest: Any) -> Any:
        stacks = vars(self)["_stacks"]
        redo = list(stacks.get((actor.principal.id, "redo"), []))
        change = record(self, actor, *rest)
        stacks[actor.principal.id, "redo"] = redo
        return change._replace(dropped=())

    record = UndoStacks.record
    patch.setattr(UndoStacks, "record", keep)


def blame_names_the_wrong_author(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: BlockHistory, section: str | None = None) -> list[Run]:
        runs = blame(self, section)
        return [replace(run, stamp=runs[0].stamp) for run in runs]

    blame = BlockHistory.blame
    patch.setattr(BlockHistory, "blame", wrong)


def blame_leaves_the_end_out(patch: pytest.MonkeyPatch) -> None:
    blame = BlockHistory.blame
    patch.setattr(BlockHistory, "blame", lambda self, section=None: blame(self, section)[:-1])


def an_edit_of_an_earlier_version_takes_its_line_numbers_for_those_of_now(
    patch: pytest.MonkeyPatch,
) -> None:
    patch.setattr(VersionMap, "lines", lambda self, start, end: (start, end))


def a_splice_of_an_earlier_version_ignores_what_has_come_since(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(VersionMap, "splice", lambda self, offset, deleted: min(offset, len(self.now)))


def an_earlier_version_is_read_one_too_late(patch: pytest.MonkeyPatch) -> None:
    def late(self: BlockHistory, section: str | None = None, version: int | None = None) -> str:
        return text(self, section, version and version + 1)

    text = BlockHistory.text
    patch.setattr(BlockHistory, "text", late)


FAULTS: dict[Fault, int] = {
    a_chunk_is_lost: 0,
    chunks_change_places: 0,
    undo_is_forgotten_when_the_kernel_ends: 0,
    the_last_transaction_is_not_read_again: 1,
    acknowledged_before_it_is_on_disk: 0,
    a_failed_call_leaves_something: 0,
    what_was_running_goes_on_without_its_writer: 12,
    drafts_are_interrupted_too: 1,
    a_broadcast_is_lost: 0,
    nothing_comes_back_by_undo: 2,
    what_comes_back_stands_at_the_beginning: 0,
    undo_takes_a_neighbour_along: 0,
    what_comes_back_is_new_text: 2,
    a_new_edit_leaves_what_could_be_redone: 2,
    blame_names_the_wrong_author: 0,
    blame_leaves_the_end_out: 0,
    an_edit_of_an_earlier_version_takes_its_line_numbers_for_those_of_now: 1,
    a_splice_of_an_earlier_version_ignores_what_has_come_since: 1,
    an_earlier_version_is_read_one_too_late: 11,
}
"""Each with the first seed that shows it."""


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault.__name__))
async def test_machine_notices_that(monkeypatch: pytest.MonkeyPatch, fault: Fault) -> None:
    """A check fails, or the kernel notices by itself."""
    fault(monkeypatch)
    with pytest.raises((Violation, RuntimeError, AntiphonError)):
        await run_cases(40, run_machine, FAULTS[fault])
