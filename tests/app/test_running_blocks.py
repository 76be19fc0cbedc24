from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

import pytest

from antiphon.screens.model_turns import InterruptTarget, RunningBlocks
from antiphon_kernel.document.document import Document
from antiphon_kernel.text.fractional_index import key_between
from antiphon_kernel.types.enums import Activity, BlockKind, PrincipalKind, Role, Status
from antiphon_kernel.types.ids import ContextId
from antiphon_kernel.types.presence import PresenceState
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


def test_interrupt_target_without_running_blocks_is_none(talk: Talk) -> None:
    talk.prompt(ME)
    talk.block(ARIA, status=Status.DONE)
    assert RunningBlocks(talk.document).target(None, ME) is None


def test_writer_of_the_focused_cell_is_stopped_first(talk: Talk) -> None:
    talk.block(ARIA, parent=talk.prompt(ME))
    focused = talk.block(BELA, parent=talk.prompt(GUEST))
    assert RunningBlocks(talk.document).target(focused, ME) == InterruptTarget(BELA, "bela")


def test_interrupt_target_without_focus_is_model_that_answers_user(talk: Talk) -> None:
    talk.block(BELA, parent=talk.prompt(GUEST))
    call = talk.block(ARIA, parent=talk.prompt(ME), kind=BlockKind.TOOL_CALL)
    talk.document.set_fields(call, status=Status.DONE)
    work = RunningBlocks(talk.document)
    assert work.target(None, ME) == InterruptTarget(BELA, "bela")
    talk.block(ARIA, Role.TOOL, parent=call, kind=BlockKind.TOOL_RESULT)
    assert work.target(None, ME) == InterruptTarget(ARIA, "aria")


def test_interrupt_target_without_own_model_is_all(talk: Talk) -> None:
    talk.block(ARIA, parent=talk.prompt(GUEST))
    talk.block(BELA, parent=talk.prompt(GUEST))
    assert RunningBlocks(talk.document).target(None, ME) == InterruptTarget(None, "all")


def test_interrupt_target_while_a_message_is_among_omitted_cells_is_not_all(talk: Talk) -> None:
    talk.block(ARIA, parent=f"{'c' * 32}.{ME}.99")
    talk.block(BELA, parent=talk.prompt(GUEST))
    assert RunningBlocks(talk.document).target(None, ME) == InterruptTarget(ARIA, "aria")


def test_interrupt_target_between_steps_of_a_turn_that_is_omitted_is_its_model(talk: Talk) -> None:
    turns = [turn(ARIA, f"{'c' * 32}.{ARIA}.99"), turn(BELA)]
    assert RunningBlocks(talk.document).target(None, ME, turns) == InterruptTarget(ARIA, "aria")


def test_result_of_a_tool_belongs_to_the_model_that_called_it(talk: Talk) -> None:
    call = talk.block(ARIA, kind=BlockKind.TOOL_CALL)
    result = talk.block(ME, Role.TOOL, parent=call, kind=BlockKind.TOOL_RESULT)
    assert RunningBlocks(talk.document).target(result, ME) == InterruptTarget(ARIA, "aria")


def test_persons_command_can_be_stopped(talk: Talk) -> None:
    talk.block(ME, Role.TOOL, kind=BlockKind.TOOL_CALL)
    assert RunningBlocks(talk.document).target(None, ME) == InterruptTarget(ME, "the command")


def test_draft_is_no_work(talk: Talk) -> None:
    talk.block(ME, Role.USER)
    assert RunningBlocks(talk.document).blocks == []


def turn(principal: str, block: str | None = None) -> PresenceState:
    return PresenceState(
        principal=principal,
        username="",
        kind=PrincipalKind.MODEL,
        colour=0,
        session="",
        block=block,
        activity=Activity.STREAMING,
    )


def test_target_is_a_model_whose_turn_runs_though_no_block_does(talk: Talk) -> None:
    work = RunningBlocks(talk.document)
    assert work.target(None, ME, [turn(ARIA)]) == InterruptTarget(ARIA, "aria")
    assert work.target(None, ME, [turn(ARIA), turn(BELA)]) == InterruptTarget(None, "all")
    mine = talk.block(ARIA, parent=talk.prompt(ME), status=Status.DONE)
    turns = [turn(BELA), turn(ARIA, mine)]
    assert work.target(None, ME, turns) == InterruptTarget(ARIA, "aria")
    assert work.target(mine, GUEST, turns) == InterruptTarget(ARIA, "aria")
