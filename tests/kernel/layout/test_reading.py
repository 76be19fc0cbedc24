"""Reading of a layout: cache points, the messages of a model, and what is read again.

Cache points with every worked case of the design, and which blocks a model may hide. What is taken
from an earlier reading changes nothing but the work.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from hashlib import sha256
from itertools import chain
from typing import Any

import pytest

from antiphon_kernel.layout import (
    EVERYTHING,
    BlockAuthor,
    ContributionFilter,
    ItemType,
    LayoutBlock,
    LayoutItem,
    LayoutReading,
    arrange,
    read_layout,
    visible,
    why_not_hidden,
)
from antiphon_kernel.layout.paths import tool_call_id, turn_id
from antiphon_kernel.layout.reading import CachePoints, ModelView, cache_points, model_view
from antiphon_kernel.layout.text_forms import LayoutReader, item_text
from antiphon_kernel.messages import (
    AssistantMessage,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UserMessage,
    estimate_message,
    estimate_text,
    open_tool_uses,
    tool_uses,
)
from antiphon_kernel.types.enums import BlockKind, Role, Status
from tests.kernel.layout.written import (
    AMY,
    BEN,
    LYRA,
    MODELS,
    OPUS,
    RandomWriting,
    Writing,
    marked,
    names,
    written,
)

SIX_ROUNDS = "H U " + " ".join(f"C{number} R{number}" for number in range(1, 7))
INTERLEAVED = "H U C1 C2 R1 R2 C3 R3 C4 R4 C5 R5"


def in_written_order(words: str) -> list[LayoutItem]:
    """Return items in the order of the words, also where a layout would put results elsewhere."""
    blocks = written(words)
    items = arrange(blocks).items
    headers = [item for item in items if not item.is_block]
    by_block = {item.block.id: item for item in items if item.is_block}
    ordered: list[LayoutItem] = []
    for block in blocks:
        ordered += [header for header in headers if header.block == block]
        ordered.append(by_block[block.id])
    return ordered


WORKED_CASES = {
    "empty": ("", CachePoints()),
    "H U": ("H U", CachePoints(None, 0, 1)),
    "H U C1 R1": ("H U C1 R1", CachePoints(None, None, 3)),
    "H U C1 R1 C2 R2": ("H U C1 R1 C2 R2", CachePoints(None, 3, 5)),
    "H U + 6 rounds": (SIX_ROUNDS, CachePoints(None, 5, 13)),
    "H U A · H U C1 R1": ("H U A · H U C1 R1", CachePoints(2, 2, 6)),
    "five turns of H U A": ("H U A · " * 5, CachePoints(11, 2, 14)),
    "interleaved calls": (INTERLEAVED, CachePoints(None, 4, 11)),
    "interleaved calls and another one": (f"{INTERLEAVED} C6 R6", CachePoints(None, 5, 13)),
}


@pytest.mark.parametrize(("words", "points"), WORKED_CASES.values(), ids=WORKED_CASES)
def test_cache_points_exact_of_worked_case(words: str, points: CachePoints) -> None:
    assert cache_points(in_written_order(words), exact=True) == points


def test_cache_point_inside_interleaved_calls_moves_before_both() -> None:
    assert cache_points(in_written_order(INTERLEAVED)) == CachePoints(None, 1, 11)


def test_cache_points_of_equal_places_are_one_index() -> None:
    items = in_written_order("H U A · H U C1 R1")
    assert cache_points(items, exact=True).indices == (2, 6)


def test_cache_point_at_the_tail_covers_trailing_messages() -> None:
    items = arrange(written("U C1 R1 U U")).items
    assert names(arrange(written("U C1 R1 U U"))) == "H U C R H U H U"
    assert cache_points(items).tail == len(items) - 1


def test_cache_point_at_the_tail_stands_before_a_call_that_is_running() -> None:
    writing = Writing()
    prompt = writing.user()
    call = writing.call(prompt, status=Status.RUNNING)
    assert cache_points(arrange(writing.blocks).items).tail == 1
    writing.result(call)
    assert cache_points(arrange(writing.blocks).items).tail == 1
    writing.change(call, status=Status.DONE)
    assert cache_points(arrange(writing.blocks).items).tail == 3


def test_cache_points_of_a_live_turn_before_others_begin_there() -> None:
    items = arrange(written("U A · U A · U A")).items
    live = items[3].turn
    assert cache_points(items, live=live).previous_turn == 2
    assert cache_points(items).previous_turn == 5


def test_cache_points_behind_a_summary_keep_it() -> None:
    items = visible(arrange(written("U A S U A"))).items
    assert cache_points(items).previous_turn == 0


def test_cache_points_of_a_filtered_layout_are_of_items_that_are_left() -> None:
    blocks = written(SIX_ROUNDS)
    hidden = [
        block._replace(excluded=block.is_call and number > 8) for number, block in enumerate(blocks)
    ]
    items = visible(arrange(hidden)).items
    assert max(cache_points(items).indices) == len(items) - 1


# Whether a model may hide a block

ITEMS = visible(arrange(written(SIX_ROUNDS))).items


def test_why_not_hidden_says_why_of_what_is_not_behind_the_pre_tail_point_or_not_read() -> None:
    assert cache_points(ITEMS).pre_tail == 5
    for index in (1, 4, 5):
        why = why_not_hidden(ITEMS, ITEMS[index].block.id)
        assert why is not None
        assert f"{ITEMS[index].path}" in why and f"{ITEMS[5].path}" in why
    assert "do not read" in (why_not_hidden(ITEMS, "somewhere else") or "")
    without_point = visible(arrange(written("U C1 R1"))).items
    for items, index in ((ITEMS, 6), (without_point, 1)):
        assert why_not_hidden(items, items[index].block.id) is None


def view_of(writing: Writing, model: BlockAuthor = OPUS) -> ModelView:
    layout = arrange(writing.blocks)
    return model_view(visible(layout).items, LayoutReader.of(layout, model.id))


def roles(view: ModelView) -> list[str]:
    return [str(message.role) for message in view.messages]


def heard(view: ModelView) -> list[str]:
    """Return the texts of user messages but the headers of turns."""
    return [
        block.text
        for message in view.messages
        if isinstance(message, UserMessage)
        for block in message.content
        if isinstance(block, TextBlock) and not block.text.startswith("[TURN ")
    ]


def answers(view: ModelView) -> list[Sequence[object]]:
    return [message.content for message in view.messages if isinstance(message, ToolMessage)]


def test_model_view_of_one_turn_alternates_and_correlates() -> None:
    writing = Writing()
    prompt = writing.user("Find it")
    writing.say(prompt, "Looking")
    call = writing.call(prompt)
    writing.result(call, "found\n")
    writing.say(prompt, "Here\n")
    key, turn = tool_call_id(call.id), turn_id(prompt.id, prompt.created)
    header, message, *rest = view_of(writing).messages[0].content + view_of(writing).messages[1:]
    assert header == TextBlock(f"[TURN {turn}] ts=2026-02-09T02:14:31.113Z")
    assert message == TextBlock(f"[USER MESSAGE]\n[path: ar:{turn}.user.prompt]\nFind it")
    assert rest == [
        AssistantMessage((TextBlock("Looking"), ToolUse(key, "shell", call.parameters))),
        ToolMessage((TextBlock("found\n"),), key),
        AssistantMessage((TextBlock("Here\n"),)),
    ]


def test_model_view_of_parallel_calls_answers_each_directly() -> None:
    writing = Writing()
    prompt = writing.user()
    one, two = writing.call(prompt), writing.call(prompt)
    writing.result(two, "2")
    writing.result(one, "1")
    assert roles(view_of(writing)) == ["user", "assistant", "tool", "assistant", "tool"]
    assert answers(view_of(writing)) == [(TextBlock("1"),), (TextBlock("2"),)]


def test_model_view_of_calls_of_one_round_is_one_message() -> None:
    writing = Writing()
    prompt = writing.user()
    keys = []
    for number, made_in in enumerate((0, 0, 1)):
        call = writing.call(prompt, metadata={"round": made_in})
        writing.result(call, f"{number}")
        keys.append(tool_call_id(call.id))
    view = view_of(writing)
    assert roles(view) == ["user", "assistant", "tool", "tool", "assistant", "tool"]
    assert [use.id for use in tool_uses(view.messages[1])] == keys[:2]
    ends = [item for item in view.ends if item is not None][-6:]
    assert [(end.message, end.block) for end in ends] == [
        *((1, 0), (2, 0), (1, 1), (3, 0), (4, 0), (5, 0))
    ]


def test_model_view_of_a_message_between_calls_of_one_round_keeps_its_place() -> None:
    writing = Writing()
    prompt = writing.user()
    writing.result(writing.call(prompt, metadata={"round": 0}))
    writing.user("Stop", status=Status.RUNNING)
    writing.result(writing.call(prompt, metadata={"round": 0}))
    assert roles(view_of(writing)) == ["user", "assistant", "tool", "user", "assistant", "tool"]


def test_model_view_of_several_results_is_one_tool_message() -> None:
    writing = Writing()
    call = writing.call(writing.user())
    writing.result(call, "1", metadata={"more": True})
    writing.result(call, "2", is_error=True)
    message = view_of(writing).messages[-1]
    assert message == ToolMessage((TextBlock("1"), TextBlock("2")), tool_call_id(call.id), True)


ENDINGS: tuple[tuple[dict[str, Any] | None, dict[str, Any], str], ...] = (
    ({"text": ""}, {}, "(no output)"),
    ({"text": "", "status": Status.RUNNING}, {}, "(still running)"),
    ({"text": "", "status": Status.ERROR, "stop_reason": "interrupted"}, {}, "(cancelled)"),
    ({"text": "no\n", "exit_code": 2}, {}, "no\n(exit code 2)"),
    ({"text": "a", "truncated": True}, {}, "a\n(the output was longer than what is kept)"),
    ({"text": "a\n", "exit_code": 0}, {}, "a\n"),
    (None, {}, "(no output)"),
    (None, {"status": Status.PENDING}, "(still running)"),
    (None, {"status": Status.ERROR, "stop_reason": "interrupted"}, "(cancelled)"),
)
"""Fields of a result, if there is one, and of its call."""


@pytest.mark.parametrize(("result", "call", "text"), ENDINGS)
def test_model_view_of_a_call_with_and_without_a_result_says_how_it_ended(
    result: dict[str, Any] | None, call: dict[str, Any], text: str
) -> None:
    writing = Writing()
    called = writing.call(writing.user(), **call)
    if result is not None:
        writing.result(called, **result)
    assert answers(view_of(writing)) == [(TextBlock(text),)]


def test_model_view_names_each_of_several_people() -> None:
    writing = Writing()
    writing.user("Hello")
    assert heard(view_of(writing))[0].startswith("[USER MESSAGE]\n[path: ")
    writing.user("Me too", BEN)
    first, second = heard(view_of(writing))
    assert first.startswith("[amy] [USER MESSAGE]\n") and first.endswith("\nHello")
    assert second.startswith("[ben] [USER MESSAGE]\n") and second.endswith("\nMe too")


def test_model_view_names_people_who_wrote_before_the_summary() -> None:
    writing = Writing()
    prompt = writing.user("Hello", BEN)
    writing.summary(prompt)
    writing.user("And now")
    summary, message = heard(view_of(writing))
    assert summary.startswith("[CONVERSATION SUMMARY]\n") and message.startswith("[amy] ")


def test_model_view_of_another_model_is_what_the_user_says() -> None:
    writing = Writing()
    prompt = writing.user()
    writing.say(prompt, "I think so", LYRA)
    call = writing.call(prompt, LYRA)
    writing.result(call)
    view = view_of(writing)
    assert roles(view) == ["user"]
    _, text, shown_call, shown_result = heard(view)
    assert text == "[lyra say]: I think so"
    assert shown_call.startswith("[lyra] [react.tool.call] (JSON)\n{")
    assert shown_result.startswith("[lyra] [react.tool.result] (JSON status)\n{")
    assert roles(view_of(writing, LYRA)) == ["user", "assistant", "tool"]


def test_model_view_of_a_persons_command_is_no_tool_message() -> None:
    writing = Writing()
    writing.result(writing.call(None, AMY))
    assert roles(view_of(writing)) == ["user"]


def test_model_view_of_an_error_of_the_turn_is_not_what_the_model_said() -> None:
    writing = Writing()
    prompt = writing.user()
    writing.add(OPUS, Role.MODEL, BlockKind.ERROR, text="No network", parent=prompt.id)
    assert heard(view_of(writing))[-1] == "[ERROR]: No network"


def test_model_view_of_signed_thinking_gives_it_back_unless_it_was_edited() -> None:
    writing = Writing()
    prompt = writing.user()
    signed = {"signature": "c2ln", "signed_sha256": sha256(b"Hm").hexdigest()}
    block = writing.think(prompt, "Hm", metadata=signed)
    writing.think(prompt, "Unsigned")
    writing.say(prompt, "Yes")
    thinking, text = Thinking("Hm", "c2ln"), TextBlock("Yes")
    assert view_of(writing).messages[-1] == AssistantMessage((thinking, text))
    writing.change(block, text="Hm.")
    assert view_of(writing).messages[-1] == AssistantMessage((text,))


def test_marked_content_of_cache_points_is_never_thinking() -> None:
    writing = Writing()
    prompt = writing.user()
    writing.say(prompt)
    signed = {"signature": "c2ln", "signed_sha256": sha256(b"Hm").hexdigest()}
    writing.think(prompt, "Hm", metadata=signed)
    layout = arrange(writing.blocks)
    view = view_of(writing)
    (tail,) = marked(view, [cache_points(layout.items).tail or 0])
    assert view.messages[tail.message].content[tail.block] == TextBlock("Well")


CASES = int(os.environ.get("ANTIPHON_CASES", "40"))
TOGETHER = 10
"""Cases of one test."""

STEPS = 20

FILTERS = (
    EVERYTHING,
    ContributionFilter(frozenset((ItemType.THINKING, ItemType.TOOL_RESULT))),
    ContributionFilter(include_only=frozenset((ItemType.ASSISTANT_COMPLETION,))),
)


def assert_as_from_scratch(
    reading: LayoutReading,
    blocks: Sequence[LayoutBlock],
    model: str | None,
    admitted: ContributionFilter,
    live: str | None,
    *,
    is_plain: bool = False,
) -> None:
    layout = arrange(blocks)
    items = visible(layout, admitted, live=live).items
    reader = LayoutReader.of(layout, model, is_plain=is_plain)
    view, points = model_view(items, reader), cache_points(items, live=live)
    assert not open_tool_uses(view.messages)
    assert reading.reader == reader
    assert list(reading.items) == items
    assert reading.points == points
    assert reading.request().messages == view.messages
    assert reading.request().marks == marked(view, points.indices)
    assert reading.message_tokens() == list(map(estimate_message, view.messages))
    texts = [item_text(item, reader) for item in items]
    tokens = chain.from_iterable(part.text_tokens for part in reading.parts)
    assert list(tokens) == list(map(estimate_text, texts))


@pytest.mark.parametrize("first", range(0, max(TOGETHER, CASES // 4), TOGETHER))
def test_reading_after_each_step_is_the_same_with_what_was_read_before(first: int) -> None:
    for seed in range(first, first + TOGETHER):
        rng = random.Random(seed)
        writing = RandomWriting(rng)
        layout = arrange([])
        readers: list[tuple[str | None, ContributionFilter, bool]] = [
            *((model.id, one, False) for model in MODELS for one in FILTERS),
            *((model.id, EVERYTHING, True) for model in MODELS),
            (None, EVERYTHING, False),
        ]
        before: dict[object, LayoutReading] = {}
        earlier: list[list[LayoutBlock]] = []
        for _ in range(STEPS):
            earlier.append(list(writing.blocks))
            for _ in range(rng.randint(1, 3)):
                writing.step()
            if rng.random() < 0.1:
                writing.blocks[:] = rng.choice(earlier)
            layout = arrange(writing.blocks, layout)
            live = rng.choice([None, *(turn.id for turn in layout.turns)])
            for key in rng.sample(readers, 2):
                model, admitted, is_plain = key
                reading = read_layout(
                    layout, model, admitted, live=live, is_plain=is_plain, before=before.get(key)
                )
                assert_as_from_scratch(
                    reading, writing.blocks, model, admitted, live, is_plain=is_plain
                )
                before[key] = reading


def kept(before: LayoutReading, after: LayoutReading) -> list[bool]:
    """Return for each part that is read whether it is the one that was read before."""
    return [any(part is one for one in before.parts) for part in after.parts]


def test_reading_again_makes_only_the_turn_anew_that_has_changed() -> None:
    writing = Writing.of(written("U A · U C1 R1 A · U A"))
    layout = arrange(writing.blocks)
    before = read_layout(layout, OPUS.id)
    writing.change(writing.blocks[5], text="Edited")
    layout = arrange(writing.blocks, layout)
    assert kept(before, read_layout(layout, OPUS.id, before=before)) == [True, False, True]


def test_reading_of_a_plain_model_joins_what_it_said_in_turns_without_a_question() -> None:
    writing = Writing.of(written("U A · U A · U A"))
    for index in (0, 2, 4):
        writing.change(writing.blocks[index], excluded=True)
    reading = read_layout(arrange(writing.blocks), OPUS.id, is_plain=True)
    assert_as_from_scratch(reading, writing.blocks, OPUS.id, EVERYTHING, None, is_plain=True)
    (message,) = reading.request().messages
    assert len(message.content) == 3
