"""Histories that are broken on purpose: undo, blame and earlier versions that are nearly right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.contexts.undo_stack import UndoStacks
from antiphon_kernel.document.history.block_history import BlockHistory, Run
from antiphon_kernel.document.history.update_builder import UpdatePlan
from antiphon_kernel.document.history.version_map import VersionMap
from antiphon_kernel.yjs.id_set import IdRange
from tests.kernel.invariants.broken import Fault, is_noticed

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
        return replace(change, dropped=())

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


@pytest.mark.parametrize(
    "fault",
    [
        nothing_comes_back_by_undo,
        what_comes_back_stands_at_the_beginning,
        undo_takes_a_neighbour_along,
        what_comes_back_is_new_text,
        a_new_edit_leaves_what_could_be_redone,
        blame_names_the_wrong_author,
        blame_leaves_the_end_out,
        an_edit_of_an_earlier_version_takes_its_line_numbers_for_those_of_now,
        a_splice_of_an_earlier_version_ignores_what_has_come_since,
        an_earlier_version_is_read_one_too_late,
    ],
    ids=lambda fault: str(fault.__name__),
)
async def test_a_kernel_is_caught_in_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    fault(monkeypatch)
    assert await is_noticed(tmp_path)
