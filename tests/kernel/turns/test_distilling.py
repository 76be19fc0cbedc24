"""Distillation of blocks: given by number, named again, or quoted without a model."""

from __future__ import annotations

import pytest

from antiphon_kernel.layout import LayoutItem, arrange, visible
from antiphon_kernel.layout.summary import quote_turns
from antiphon_kernel.messages import estimate_text
from antiphon_kernel.turns.distilling import name_blocks, numbered_text
from tests.kernel.layout.written import AMY, OPUS, Writing

NAMES = ("tidy.amy.1", "tidy.opus.2", "tidy.opus.3")


def items_of(writing: Writing) -> list[LayoutItem]:
    return [item for item in visible(arrange(writing.blocks)).items if item.is_block]


def said(long: str = "") -> Writing:
    writing = Writing()
    prompt = writing.user("Why does it fail?")
    writing.result(writing.call(prompt), f"E: no file{long}\n")
    writing.say(prompt, "A file is missing.")
    return writing


def test_numbered_text_names_who_said_what() -> None:
    assert numbered_text(items_of(said()), 1_000) == (
        "[1] amy say:\nWhy does it fail?\n\n"
        "[2] opus tool_call shell:\nls\n\n"
        "[3] opus tool_result shell:\nE: no file\n\n"
        "[4] opus say:\nA file is missing."
    )


def test_numbered_text_shortens_what_is_longest() -> None:
    text = numbered_text(items_of(said(" x" * 4_000)), 300)
    assert 200 < estimate_text(text) < 400
    assert "Why does it fail?" in text and "A file is missing." in text
    assert "characters are left out here]" in text


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("It fails. [1, 3]", "It fails. [tidy.amy.1, tidy.opus.3]"),
        ("It fails [2].", "It fails [tidy.opus.2]."),
        ("A.[1]\n\nB. [2][3]", "A.[tidy.amy.1]\n\nB. [tidy.opus.2][tidy.opus.3]"),
        ("A. [1, 9]\nB. [0]", "A. [tidy.amy.1, 9]\nB. [0]"),
        ("call a[1]\nx[2] [link](1) [1] goes on", "call a[1]\nx[2] [link](1) [1] goes on"),
    ],
)
def test_name_blocks_at_the_ends_of_lines(text: str, named: str) -> None:
    assert name_blocks(text, NAMES) == named


def test_quote_turns_with_the_names_of_their_blocks() -> None:
    writing = said()
    writing.say(writing.user("Thanks", AMY), "Well", OPUS)
    items = items_of(writing)
    names = {item.block.id: f"tidy.{number}" for number, item in enumerate(items, 1)}
    first, second = quote_turns(items, 1_000, names)
    assert first.startswith("- amy: Why does it fail?\n- shell ")
    assert first.endswith("- opus: A file is missing.\n[tidy.1, tidy.2, tidy.3, tidy.4]")
    assert second == "- amy: Thanks\n- opus: Well\n[tidy.5, tidy.6]"
    assert quote_turns(items, 40, names)[-1] == second
