from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

import pytest

from antiphon.running_blocks import InterruptTarget, RunningBlocks
from antiphon_kernel.document.document import Document
from antiphon_kernel.text.fractional_index import key_between
from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Role, Status
from antiphon_kernel.types.ids import ContextId
from antiphon_kernel.types.records import BlockHeader, Member

ME, GUEST, ARIA, BELA = (letter * 32 for letter in "abcd")


@dataclass
class Talk:
    """A document in which people and models take turns."""

    document: Document = field(
        default_factory=lambda: Document.create(
            1, context=ContextId("c" * 32), epoch="e" * 32, label="default"
        )
    )
    order: str | None = None
    numbers: count[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        for slot, (who, name, kind) in enumerate(
            [
                (ME, "amy", PrincipalKind.HUMAN),
                (GUEST, "guest", PrincipalKind.HUMAN),
                (ARIA, "aria", PrincipalKind.MODEL),
                (BELA, "bela", PrincipalKind.MODEL),
            ]
        ):
            self.document.set_member(Member(who, name, kind, slot))

    def block(
        self,
        author: str,
        role: Role = Role.MODEL,
        *,
        kind: BlockKind = BlockKind.TEXT,
        parent: str | None = None,
        status: Status = Status.RUNNING,
    ) -> str:
        self.order = key_between(self.order, None)
        block = f"{'c' * 32}.{author}.{next(self.numbers)}"
        self.document.create_block(
            BlockHeader(block, kind, role, status, self.order, "", author, parent=parent)
        )
        return block

    def prompt(self, author: str) -> str:
        return self.block(author, Role.USER, status=Status.DONE)


@pytest.fixture
def talk() -> Talk:
    return Talk()


def test_nobody_is_stopped_when_nothing_runs(talk: Talk) -> None:
    talk.prompt(ME)
    talk.block(ARIA, status=Status.DONE)
    assert RunningBlocks(talk.document).target(None, ME) is None


def test_the_writer_of_the_focused_cell_is_stopped_first(talk: Talk) -> None:
    talk.block(ARIA, parent=talk.prompt(ME))
    focused = talk.block(BELA, parent=talk.prompt(GUEST))
    assert RunningBlocks(talk.document).target(focused, ME) == InterruptTarget(BELA, "bela")


def test_else_the_model_that_answers_me(talk: Talk) -> None:
    talk.block(BELA, parent=talk.prompt(GUEST))
    call = talk.block(ARIA, parent=talk.prompt(ME), kind=BlockKind.TOOL_CALL)
    talk.document.set_fields(call, status=Status.DONE)
    work = RunningBlocks(talk.document)
    assert work.target(None, ME) == InterruptTarget(BELA, "bela")
    talk.block(ARIA, Role.TOOL, parent=call, kind=BlockKind.TOOL_RESULT)
    assert work.target(None, ME) == InterruptTarget(ARIA, "aria")


def test_else_everybody(talk: Talk) -> None:
    talk.block(ARIA, parent=talk.prompt(GUEST))
    talk.block(BELA, parent=talk.prompt(GUEST))
    assert RunningBlocks(talk.document).target(None, ME) == InterruptTarget(None, "all")


def test_the_result_of_a_tool_belongs_to_the_model_that_called_it(talk: Talk) -> None:
    call = talk.block(ARIA, kind=BlockKind.TOOL_CALL)
    result = talk.block(ME, Role.TOOL, parent=call, kind=BlockKind.TOOL_RESULT)
    assert RunningBlocks(talk.document).target(result, ME) == InterruptTarget(ARIA, "aria")


def test_a_persons_command_can_be_stopped(talk: Talk) -> None:
    talk.block(ME, Role.TOOL, kind=BlockKind.TOOL_CALL)
    assert RunningBlocks(talk.document).target(None, ME) == InterruptTarget(ME, "the command")


def test_work_that_begins_and_ends_is_told(talk: Talk) -> None:
    work = RunningBlocks(talk.document)
    told: list[tuple[str, ...]] = []
    work.watch(lambda: told.append(work.blocks))
    block = talk.block(ARIA)
    talk.document.append(block, "no news")
    talk.document.set_fields(block, status=Status.DONE)
    assert told == [(block,), ()]


def test_a_draft_is_no_work(talk: Talk) -> None:
    talk.block(ME, Role.USER)
    assert RunningBlocks(talk.document).blocks == ()
