"""Blocks into turns and rounds."""

from __future__ import annotations

import pytest

from antiphon_kernel.layout import LayoutBlock, arrange
from antiphon_kernel.layout.arrange import rounds_of
from antiphon_kernel.layout.paths import tool_call_id, turn_id
from antiphon_kernel.types.enums import BlockKind, Role, Status
from tests.kernel.layout.written import AMY, BEN, KERNEL, LYRA, OPUS, Writing, names, written


def paths(blocks: list[LayoutBlock]) -> list[str]:
    """Return the paths of all blocks without their turns, in the order of the layout."""
    items = [item for item in arrange(blocks).items if item.is_block]
    return [str(item.path).replace(item.turn, "T") for item in items]


def test_arrange_without_blocks_has_no_turns() -> None:
    assert arrange([]).items == []


def test_arrange_of_parallel_calls_puts_results_behind_their_calls() -> None:
    layout = arrange(written("U C1 C2 R2 R1 A"))
    assert names(layout) == "H U C R C R A"
    one, two = layout.items[2:4], layout.items[4:6]
    assert one[1].block.parent == one[0].block.id
    assert two[1].block.parent == two[0].block.id


def test_arrange_of_answers_to_an_earlier_prompt_puts_them_into_its_turn() -> None:
    writing = Writing()
    first = writing.user()
    second = writing.user(author=BEN)
    writing.say(second)
    writing.say(first)
    layout = arrange(writing.blocks)
    assert [item.block.id for item in layout.items] == [
        first.id,
        first.id,
        writing.blocks[3].id,
        second.id,
        second.id,
        writing.blocks[2].id,
    ]


def test_arrange_of_blocks_without_parent_puts_them_into_the_turn_before() -> None:
    writing = Writing()
    opening = writing.call(None, AMY)
    writing.user()
    note = writing.add(BEN, Role.USER, BlockKind.DRIFT, text="from elsewhere")
    layout = arrange(writing.blocks)
    assert names(layout) == "H C H U drift"
    assert layout.turns[0].id == turn_id(opening.id, opening.created)
    assert layout.turns[1].items[-1].block == note


def test_arrange_of_parents_in_a_circle_puts_them_into_the_turn_before() -> None:
    writing = Writing()
    prompt = writing.user()
    one = writing.say(prompt)
    two = writing.say(one)
    writing.change(one, parent=two.id)
    assert names(arrange(writing.blocks)) == "H U A A"


def test_arrange_of_answers_that_stand_before_their_prompt_puts_them_behind_it() -> None:
    writing = Writing()
    prompt = writing.user()
    writing.say(prompt)
    writing.blocks.reverse()
    assert names(arrange(writing.blocks)) == "H U A"


def test_arrange_of_a_prompt_of_the_kernel_begins_a_turn() -> None:
    writing = Writing()
    prompt = writing.add(KERNEL, Role.SYSTEM, BlockKind.TEXT, text="Begin.")
    writing.say(prompt)
    assert names(arrange(writing.blocks)) == "H U A"


def test_arrange_of_results_without_their_call_keeps_them_as_other_blocks() -> None:
    writing = Writing()
    prompt = writing.user()
    call = writing.call(prompt)
    writing.result(call)
    writing.blocks.remove(call)
    assert names(arrange(writing.blocks)) == "H U block"


def test_rounds_of_a_turn_are_its_calls_and_then_its_last_texts() -> None:
    writing = Writing()
    prompt = writing.user()
    writing.think(prompt)
    writing.say(prompt)
    call = writing.call(prompt)
    writing.result(call)
    writing.result(call)
    writing.think(prompt)
    writing.say(prompt)
    layout = arrange(writing.blocks)
    assert names(layout) == "H U T N C R R T A"
    last = f"{layout.turns[0].id}.{OPUS.id}"
    assert rounds_of(layout.items) == {tool_call_id(call.id): [2, 3, 4, 5, 6], last: [7, 8]}


def test_rounds_of_two_models_do_not_take_each_others_texts() -> None:
    writing = Writing()
    prompt = writing.user()
    writing.say(prompt, author=LYRA)
    writing.call(prompt)
    assert names(arrange(writing.blocks)) == "H U A C"


def test_arrange_puts_attachments_behind_the_prompt() -> None:
    writing = Writing()
    prompt = writing.user()
    writing.say(prompt)
    writing.add(AMY, Role.USER, BlockKind.FILE, parent=prompt.id, file="docs/menu.pdf")
    assert names(arrange(writing.blocks)) == "H U F A"
    assert paths(writing.blocks)[1] == "fi:T.user.attachments/menu.pdf"


def test_paths_of_a_turn_name_each_block_once() -> None:
    writing = Writing()
    prompt = writing.user()
    writing.say(prompt)
    call = writing.call(prompt)
    first, second = writing.result(call), writing.result(call)
    writing.result(call, file="report.md")
    writing.say(prompt)
    key = tool_call_id(call.id)
    found = paths(writing.blocks)
    suffix = found[4].removeprefix(f"tc:T.{key}.result~")
    assert found == [
        "ar:T.user.prompt",
        f"ar:T.react.notes.{key}",
        f"tc:T.{key}.call",
        f"tc:T.{key}.result",
        f"tc:T.{key}.result~{suffix}",
        "fi:T.files/report.md",
        "ar:T.assistant.completion",
    ]
    assert len(suffix) == 6
    moved = [block for block in writing.blocks if block is not first]
    moved.insert(moved.index(second) + 1, first)
    assert set(paths(moved)) == set(found)


def test_paths_of_excluded_blocks_are_the_same() -> None:
    blocks = written("U C1 R1 R1 A A")
    before = paths(blocks)
    writing = Writing()
    writing.blocks = blocks
    for block in blocks:
        writing.change(block, excluded=True)
    assert paths(writing.blocks) == before


@pytest.mark.parametrize("status", [Status.PENDING, Status.RUNNING])
def test_arrange_of_a_text_that_is_not_submitted_begins_no_turn(status: Status) -> None:
    writing = Writing()
    writing.user()
    writing.user(status=status)
    assert names(arrange(writing.blocks)) == "H U M"
