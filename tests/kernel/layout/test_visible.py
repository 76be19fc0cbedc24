"""Selection of what is read of a layout."""

from __future__ import annotations

import pytest

from antiphon_kernel.layout import ContributionFilter, ItemType, arrange, visible
from antiphon_kernel.types.enums import Status
from tests.kernel.layout.written import Writing, names, written

READ = {
    "begins with the summary": ("U A U A S U C1 R1 A", "S H U C R A"),
    "keeps the prompt of the live turn": ("U A U C1 R1 S C2 R2", "S H U C R"),
    "keeps that prompt alone": ("U A U C1 R1 S", "S H U"),
    "cuts a turn that is not live anywhere": ("U C1 R1 S C2 R2 A U", "S H C R A H U"),
    "begins with the latest one": ("U A S U A S U A", "S H U A"),
}


@pytest.mark.parametrize(("words", "shown"), READ.values(), ids=READ)
def test_visible_behind_a_summary(words: str, shown: str) -> None:
    assert names(visible(arrange(written(words)))) == shown


def test_visible_behind_a_summary_keeps_the_last_prompt_that_is_read() -> None:
    writing = Writing()
    prompt = writing.user()
    writing.summary(prompt)
    writing.result(writing.call(prompt))
    writing.user("Left out", excluded=True)
    assert names(visible(arrange(writing.blocks))) == "S H U C R"


def test_visible_of_a_summary_that_is_unfinished_blank_or_excluded_reads_everything() -> None:
    for fields in ({"status": Status.RUNNING}, {"text": " "}, {"excluded": True}):
        writing = Writing()
        prompt = writing.user()
        summary = writing.summary(prompt)
        writing.say(prompt)
        assert names(visible(arrange(writing.blocks))) == "S H U A"
        writing.change(summary, **fields)
        assert names(visible(arrange(writing.blocks))) == "H U A"


def test_visible_of_an_excluded_call_leaves_its_results_out() -> None:
    blocks = written("U C1 C2 R1 R2 A")
    writing = Writing()
    writing.blocks = blocks
    writing.change(blocks[1], excluded=True)
    assert names(visible(arrange(blocks))) == "H U C R A"


def test_visible_of_an_excluded_result_leaves_its_call_out_unless_it_has_others() -> None:
    writing = Writing()
    prompt = writing.user()
    call = writing.call(prompt)
    writing.result(call, excluded=True)
    other = writing.result(call)
    assert names(visible(arrange(writing.blocks))) == "H U C R"
    writing.change(other, excluded=True)
    assert names(visible(arrange(writing.blocks))) == "H U"


def test_visible_of_a_turn_without_items_has_no_header() -> None:
    writing = Writing()
    writing.user(excluded=True)
    writing.user()
    assert names(visible(arrange(writing.blocks))) == "H U"


def test_visible_of_blank_texts_leaves_them_out_but_keeps_empty_results() -> None:
    writing = Writing()
    prompt = writing.user()
    writing.say(prompt, " \n")
    writing.result(writing.call(prompt), "")
    assert names(visible(arrange(writing.blocks))) == "H U C R"


def test_filter_excludes_contributions_by_type_and_never_prompts() -> None:
    layout = arrange(written("U A C1 R1 A"))
    kinds = frozenset((ItemType.NOTES, ItemType.USER_PROMPT))
    assert names(visible(layout, ContributionFilter(kinds))) == "H U C R A"


def test_filter_of_calls_or_of_results_leaves_out_both() -> None:
    layout = arrange(written("U A C1 R1 A · U C1 R1"))
    for kind in (ItemType.TOOL_CALL, ItemType.TOOL_RESULT):
        assert names(visible(layout, ContributionFilter(frozenset((kind,))))) == "H U N A H U"


def test_filter_include_only_wins_over_exclude() -> None:
    layout = arrange(written("U A C1 R1 A"))
    kinds = frozenset((ItemType.ASSISTANT_COMPLETION,))
    assert names(visible(layout, ContributionFilter(kinds, include_only=kinds))) == "H U A"
    assert names(visible(layout, ContributionFilter(include_only=frozenset()))) == "H U"
