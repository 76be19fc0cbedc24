"""Commits as a context makes them, and who makes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from antiphon_kernel.storage import BlockRow, Commit, ContextRow, Journal, SessionRow, UndoRow
from antiphon_kernel.types.enums import ContextKind, PrincipalKind
from antiphon_kernel.types.ids import ContextId, PrincipalId
from antiphon_kernel.types.records import Principal

AMY = Principal(PrincipalId("a" * 32), "amy", PrincipalKind.HUMAN)
BO = Principal(PrincipalId("b" * 32), "bo", PrincipalKind.MODEL)
SESSION = SessionRow("s" * 32, AMY.id, "test", 5)
UNDO = UndoRow(2, "x" * 8, AMY.id, "splice", "undo", 2, 7)


def found(journal: Journal, label: str = "main") -> tuple[ContextRow, Commit]:
    """A new context and the commit that founds it."""
    context = ContextId(label.ljust(32, "c"))
    row = journal.add_context(context, label, "epoch", 3, ContextKind.CONVERSATION)
    row = replace(row, creator=AMY.id)
    return row, commit(row, 1, operation="found")


def commit(row: ContextRow, seq: int, **values: Any) -> Commit:
    start: dict[str, Any] = {
        "principal": AMY,
        "blocks": (),
        "update": b"\0update",
        "operation": "append",
    }
    return Commit(context=row, seq=seq, time=10 + seq, session=SESSION, **(start | values))


def blocks(*numbers: int, version: int = 1) -> tuple[BlockRow, ...]:
    return tuple(BlockRow(number, f"block{number}", version) for number in numbers)
