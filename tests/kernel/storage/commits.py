"""Commits as a context makes them, and who makes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from antiphon_kernel.storage import (
    BlockRow,
    Commit,
    ContextRow,
    FenceError,
    Journal,
    SessionRow,
    UndoRow,
)
from antiphon_kernel.storage.database import Statement
from antiphon_kernel.types.enums import ContextKind, PrincipalKind
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.ids import ContextId, PrincipalId, SessionId
from antiphon_kernel.types.records import Actor, Principal
from antiphon_kernel.types.roles import AccessRole

AMY = Principal(PrincipalId("a" * 32), "amy", PrincipalKind.HUMAN)
BO = Principal(PrincipalId("b" * 32), "bo", PrincipalKind.MODEL)
AT_WORK = Actor(AMY, SessionId("s" * 32), AccessRole.EDITOR, "test", 5)
SESSION = SessionRow(AT_WORK.session, AMY.id, AT_WORK.via, AT_WORK.since)
UNDO = UndoRow(2, "x" * 8, AMY.id, "splice", "undo", 2, 7)


def found(journal: Journal, label: str = "main") -> tuple[ContextRow, Commit]:
    """A new context and the commit that founds it."""
    context = ContextId(label.ljust(32, "c"))
    row = journal.add_context(context, label, "epoch", 3, ContextKind.CONVERSATION)
    row = replace(row, creator=AMY.id)
    return row, commit(row, 1, operation="found")


def commit(row: ContextRow, seq: int, **values: Any) -> Commit:
    start: dict[str, Any] = {
        "actor": AT_WORK,
        "blocks": (),
        "update": b"\0update",
        "operation": "append",
    }
    return Commit(context=row, seq=seq, time=10 + seq, **(start | values))


def blocks(*numbers: int, version: int = 1) -> tuple[BlockRow, ...]:
    return tuple(BlockRow(number, f"block{number}", version) for number in numbers)


class KernelFence:
    """Fence of kernel 1, which has every context in epoch 1 and knows amy in epoch 1."""

    def __init__(self, *, with_principals: bool = True) -> None:
        self._principals = [AMY.id] if with_principals else []

    def statement(self, group: Sequence[Commit], *others: int) -> Statement:
        roots = sorted({*others, *(one.context.number for one in group)})
        principals = self._principals if group else []
        values = (1, [], roots, [1] * len(roots), principals, [1] * len(principals))
        return "SELECT check_commit(?, ?, ?, ?, ?, ?)", [values]

    async def refusals(
        self, error: FenceError, group: Iterable[Commit]
    ) -> list[AntiphonError | None]:
        names = error.contexts | error.principals
        return [
            error if {one.context.number, one.actor.principal.id} & names else None for one in group
        ]
