"""Compaction of whole documents: the summary that is written, and what is read behind it."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from antiphon_kernel.layout import (
    CompactionError,
    ItemType,
    Layout,
    LayoutBlock,
    NewSummary,
    arrange,
    compact,
    read_record,
    visible,
    weigh,
)
from antiphon_kernel.layout.compaction import MAX_SUMMARY, plan_last_turns
from antiphon_kernel.layout.paths import summary_path
from antiphon_kernel.layout.reading import model_view
from antiphon_kernel.layout.summary import SummaryRecord, extract
from antiphon_kernel.layout.text_forms import LayoutReader, item_text
from antiphon_kernel.messages import estimate_text
from antiphon_kernel.types.block_metadata import SUMMARY_TYPE
from antiphon_kernel.types.frozen_json import JsonObject
from tests.kernel.layout.test_random_writing import orphans
from tests.kernel.layout.written import AMY, BEN, MODELS, Writing, names, random_blocks, written

CASES = int(os.environ.get("ANTIPHON_CASES", "20"))


def read(blocks: Sequence[LayoutBlock]) -> Layout:
    return visible(arrange(blocks))


def tokens(blocks: Sequence[LayoutBlock]) -> int:
    layout = arrange(blocks)
    reader = LayoutReader.of(layout)
    return sum(weigh(item, reader) for item in visible(layout).items)


def planned(blocks: Sequence[LayoutBlock], budget: int | None = None, **more: Any) -> NewSummary:
    found = attempted(blocks, budget, **more)
    assert found is not None
    return found


def attempted(
    blocks: Sequence[LayoutBlock], budget: int | None = None, **more: Any
) -> NewSummary | None:
    ids = [block.id for block in blocks]
    return compact(arrange(blocks), ids.index, budget=budget, **more)


def insert(writing: Writing, new: NewSummary) -> LayoutBlock:
    """Put a summary into the document where it belongs."""
    parent = next(block for block in writing.blocks if block.id == new.parent)
    block = writing.summary(parent, new.text, metadata=new.record.as_metadata())
    writing.blocks.remove(block)
    ids = [one.id for one in writing.blocks]
    writing.blocks.insert(ids.index(new.neighbour) + (not new.is_before), block)
    return block


def long(words: str) -> Writing:
    """Return the blocks of a stream, each with a long text of its own."""
    writing = Writing.of(written(words))
    for index, block in enumerate(writing.blocks):
        writing.change(block, text=f"{block.text} {index}: " + f"word{index} " * 60)
    return writing


def compacted(writing: Writing, budget: int | None = None, **more: Any) -> LayoutBlock:
    return insert(writing, planned(writing.blocks, budget, **more))


# Where it stands


def test_compact_of_earlier_turns_puts_the_summary_at_the_end_of_the_last_one_hidden() -> None:
    writing = long("U A U A U C1 R1 A")
    block = compacted(writing, 1_000)
    assert writing.blocks.index(block) == 4
    assert names(read(writing.blocks)) == "S H U C R A"
    path = read(writing.blocks).items[0].path
    assert path == summary_path(arrange(writing.blocks).turns[1].id)


def test_compact_inside_the_live_turn_puts_the_summary_before_a_round() -> None:
    writing = long("U C1 R1 C2 R2 C3 R3")
    block = compacted(writing, 900)
    assert names(read(writing.blocks)) == "S H U C R C R"
    assert writing.blocks.index(block) == 3


def test_compact_of_calls_side_by_side_hides_the_results_that_stand_behind_the_cut() -> None:
    writing = long("U C1 C2 C3 R1 R2 R3")
    block = compacted(writing, 900)
    assert writing.blocks.index(block) == 2
    assert names(read(writing.blocks)) == "S H U C R C R"


def test_compact_of_one_huge_result_keeps_its_beginning_its_end_and_its_path() -> None:
    writing = Writing()
    prompt = writing.user("Question")
    huge = "first line\n" + "x" * 30_000 + "\nlast line"
    writing.result(writing.call(prompt), huge)
    path = read(writing.blocks).items[-1].path
    compacted(writing, 2_000)
    shown = read(writing.blocks)
    assert names(shown) == "S H U"
    assert tokens(writing.blocks) <= 2_000
    text = shown.items[0].block.text
    assert "first line" in text and text.endswith("last line")
    assert text.count(str(path)) == 2 and "characters are left out here" in text


# What it says


def test_compact_of_the_live_turn_lists_every_call_with_arguments_size_and_path() -> None:
    writing = long("U A")
    prompt = writing.user("Count the files")
    call = writing.call(prompt, tool_name="grep", parameters=JsonObject({"pattern": "x y"}))
    writing.result(call, "a\nb\n" * 300, exit_code=2)
    path = read(writing.blocks).items[-1].path
    writing.say(prompt, "There are many " * 100)
    text = compacted(writing, 1_000).text
    assert f'- grep {{"pattern": "x y"}}: 600 lines, 1200 characters, exit code 2, {path}' in text
    assert "amy: Count the files" in text
    assert "Question U" in text


def test_compact_of_a_compacted_document_merges_the_summary_as_people_have_edited_it() -> None:
    writing = long("U A U A U A")
    first = compacted(writing, 700)
    writing.change(first, text=first.text + "\n\nThe port is 8080.")
    for block in long("U A U A").blocks:
        copy = writing.user(block.text) if block.begins_turn else writing.say(writing.blocks[-1])
        writing.change(copy, text=block.text)
    second = compacted(writing, 700)
    assert "The port is 8080." in second.text
    assert second.text.count("Earlier parts") == 1
    record, before = read_record(second.metadata), read_record(first.metadata)
    assert record is not None and before is not None
    assert record.previous is not None and record.previous.startswith("su:")
    assert record.begin == before.begin and record.end > before.end
    assert not set(record.turns) & set(before.turns)
    assert names(read(writing.blocks)).startswith("S H U")


def test_compact_of_a_summary_that_has_become_too_long_shortens_it() -> None:
    writing = long("U A U A U A")
    block = compacted(writing, 700)
    writing.change(block, text=block.text + "\n\n" + "written by a person " * 2_000)
    kept = names(read(writing.blocks))
    second = compacted(writing, 1_000)
    assert names(read(writing.blocks)) == kept
    assert tokens(writing.blocks) <= 1_000
    assert "written by a person" in second.text
    record = read_record(second.metadata)
    assert record is not None and record.turns == () and record.previous is not None


def test_compact_of_a_summary_that_would_not_be_shorter_keeps_the_history() -> None:
    blocks = written("U A " * 8)
    assert attempted(blocks, keep_turns=7) is None
    assert attempted(blocks, keep_turns=1) is not None
    assert attempted([]) is None


def test_extract_that_would_be_as_long_as_what_it_replaces_is_given_up() -> None:
    items = visible(arrange(long("U A C R A U A U A").blocks)).items
    reader = LayoutReader.of(arrange(long("U A C R A U A U A").blocks))
    weights = [weigh(item, reader) for item in items]
    plan = plan_last_turns(items, weights, 1)
    assert plan is not None
    given_up = 0
    for replaced in range(0, plan.replaced + 1, 9):
        text = extract(items, replace(plan, replaced=replaced, room=MAX_SUMMARY))
        given_up += text is None
        assert text is None or estimate_text(text) < replaced
    assert 0 < given_up < plan.replaced // 9


def test_compact_without_a_budget_hides_all_but_the_last_turns() -> None:
    writing = long("U A " * 9)
    compacted(writing)
    assert names(read(writing.blocks)) == "S " + " ".join(["H U A"] * 6)
    assert attempted(writing.blocks) is None


def test_compact_leaves_the_names_of_people_alone() -> None:
    writing = long("U A U A U A")
    before = [
        item_text(item, LayoutReader.of(read(writing.blocks)))
        for item in read(writing.blocks).items
    ]
    block = compacted(writing, 700)
    writing.change(block, author=BEN)
    shown = arrange(writing.blocks)
    after = [item_text(item, LayoutReader.of(shown)) for item in visible(shown).items]
    assert after[1:] == before[-len(after) + 1 :]
    assert after[0].startswith("[CONVERSATION SUMMARY]")


# The record


def test_record_names_turns_files_commands_and_times() -> None:
    writing = long("U A")
    prompt = writing.user("Second " * 100)
    call = writing.call(prompt, parameters=JsonObject({"command": "make\n  test", "path": "a.py"}))
    writing.result(call, "done " * 100, file="notes/b.md")
    writing.user("Third " * 30)
    turns = arrange(writing.blocks).turns
    record = planned(writing.blocks, 300).record
    assert record.turns == tuple(turn.id for turn in turns[:2])
    assert record.files == ("a.py", "notes/b.md")
    assert record.commands == ("make test",)
    assert record.begin < record.end
    assert read_record(record.as_metadata()) == record


def test_record_of_metadata_that_says_something_else_is_none() -> None:
    good = SummaryRecord(("t",), "a", "b").as_metadata()
    assert read_record(good) is not None
    for wrong in ({"type": "x"}, {"turns": "t"}, {"turns": [1]}, {"begin": 3}, {"previous": 1}):
        assert read_record({**good, **wrong}) is None
    assert read_record({"type": SUMMARY_TYPE}) is None


def test_record_that_is_moved_names_the_turns_of_the_copy() -> None:
    record = SummaryRecord(
        ("turn_1_aaaaaa", "turn_2_bbbbbb"), "a", "b", previous="su:turn_1_aaaaaa.x"
    )
    moved = record.moved({"turn_1_aaaaaa": "turn_1_cccccc"})
    assert moved.turns == ("turn_1_cccccc",)
    assert moved.previous == "su:turn_1_cccccc.x"
    assert record.moved({}).previous is None


# Random documents


def test_compact_of_random_documents_holds_every_rule() -> None:
    done, too_large = 0, []
    for seed in range(CASES):
        rng = random.Random(seed)
        writing = random_blocks(rng)
        for block in list(writing.blocks):
            if rng.random() < 0.3:
                writing.change(block, text=block.text + " and more" * rng.randint(1, 400))
        before = tokens(writing.blocks)
        budget = rng.randint(300, max(400, before))
        shown = read(writing.blocks)
        try:
            new = attempted(writing.blocks, budget)
        except CompactionError as error:
            too_large.append((error.tokens, before))
            continue
        if new is None:
            assert before <= budget, f"seed {seed}"
            continue
        done += 1
        kept = list(writing.blocks)
        check_compacted(writing, new, shown, budget, f"seed {seed}")
        # Without the summary everything is read again, and cut at the same place.
        assert read(kept) == shown
        assert attempted(kept, budget) == new
        for _ in range(10):
            writing.step()
            check_read(writing.blocks, f"seed {seed}")
    assert done > CASES // 10
    assert all(tokens <= before for tokens, before in too_large)


def check_compacted(
    writing: Writing, new: NewSummary, before: Layout, budget: int, seed: str
) -> None:
    block = insert(writing, new)
    after = read(writing.blocks)
    assert after.summary is not None and after.summary.block is block, seed
    now = tokens(writing.blocks)
    assert now <= new.tokens <= budget < new.tokens_before == sum_of(before, writing), seed
    assert attempted(writing.blocks, budget) is None, seed
    for model in MODELS:
        view = model_view(after.items, LayoutReader.of(after, model.id))
        assert orphans(view.messages) == [], seed
    said = [item.block.id for item in before.turns[-1].items if item.type in SAID]
    assert set(said) <= {item.block.id for item in after.items}, seed
    read_now = {item.block.id for item in after.items if item.is_block} - {block.id}
    read_before = {item.block.id for item in before.items if item.is_block}
    assert read_now <= read_before, seed
    previous = before.summary is not None
    assert len(read_before) - previous - len(read_now) == new.hidden, seed


def check_read(blocks: Sequence[LayoutBlock], seed: str) -> None:
    """Check that a document whatever has happened to it is read without orphans, prompt first."""
    after = read(blocks)
    for model in MODELS:
        view = model_view(after.items, LayoutReader.of(after, model.id))
        assert orphans(view.messages) == [], seed
    whole = read([one._replace(excluded=True) if one.is_summary else one for one in blocks])
    said = {item.block.id for turn in whole.turns[-1:] for item in turn.items if item.type in SAID}
    assert said <= {item.block.id for item in after.items}, seed


SAID = (ItemType.USER_PROMPT, ItemType.USER_ATTACHMENT, ItemType.USER_MESSAGE)


def sum_of(layout: Layout, writing: Writing) -> int:
    reader = LayoutReader.of(arrange(writing.blocks))
    return sum(weigh(item, reader) for item in layout.items)


def test_compact_of_a_growing_conversation_stays_within_the_budget() -> None:
    writing = Writing()
    prompt = writing.user("Begin", AMY)
    for step in range(35):
        if step % 7 == 0:
            prompt = writing.user(f"Question {step} " * 5)
        writing.result(writing.call(prompt), f"line {step}\n" * 40)
        new = attempted(writing.blocks, 1_500)
        if new is not None:
            insert(writing, new)
        assert tokens(writing.blocks) <= 1_500
        assert prompt.id in {item.block.id for item in read(writing.blocks).items}
