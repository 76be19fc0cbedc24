"""Rules that hold for any document: no orphan, pure rendering, prefixes that stay."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence

from antiphon_kernel.layout import (
    ItemType,
    Layout,
    LayoutBlock,
    LayoutItem,
    arrange,
    first_break,
    visible,
)
from antiphon_kernel.layout.reading import ModelView, cache_points, model_view
from antiphon_kernel.layout.text_forms import LayoutReader, item_text
from antiphon_kernel.messages import (
    ContentBlock,
    Message,
    ToolMessage,
    UserMessage,
    open_tool_uses,
    tool_uses,
)
from tests.kernel.layout.written import (
    MODELS,
    marked,
    noting,
    random_blocks,
    written,
)

CASES = int(os.environ.get("ANTIPHON_CASES", "40"))


def orphans(messages: Sequence[Message]) -> list[str]:
    """Return the calls and results that are without each other, or not directly behind it."""
    found: list[str] = []
    waiting: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id in waiting:
                waiting.remove(message.tool_call_id)
            else:
                found.append(message.tool_call_id)
            continue
        found += waiting
        waiting = [use.id for use in tool_uses(message)]
        found += [one for one in waiting if one in seen]
        seen.update(waiting)
    return found + waiting


def views(blocks: Sequence[LayoutBlock]) -> list[ModelView]:
    """Return what each model is given."""
    layout = arrange(blocks)
    items = visible(layout).items
    return [model_view(items, LayoutReader.of(layout, model.id)) for model in MODELS]


def parts_no_call_from_its_results(blocks: Sequence[LayoutBlock]) -> None:
    for view in views(blocks):
        assert orphans(view.messages) == []
        assert not open_tool_uses(view.messages)
    items = visible(arrange(blocks)).items
    for point in cache_points(items).indices:
        keys = {item.round for item in items[: point + 1] if item.is_exchange}
        assert keys.isdisjoint(item.round for item in items[point + 1 :] if item.is_exchange)


def begins_with_a_user_and_leaves_nothing_out(blocks: Sequence[LayoutBlock]) -> None:
    items = visible(arrange(blocks)).items
    said = [item.block.text for item in items if item.type in ("user.prompt", "react.notes")]
    for view in views(blocks):
        assert not view.messages or isinstance(view.messages[0], UserMessage)
        given = "\n".join(map(repr, view.messages))
        assert all(repr(text)[1:-1].rstrip("\\n") in given for text in said)


def holds_each_block_once_under_a_path_of_its_own(blocks: Sequence[LayoutBlock]) -> None:
    items = [item for item in arrange(blocks).items if item.is_block]
    assert sorted(item.block.id for item in items) == sorted(block.id for block in blocks)
    assert len({item.path for item in items}) == len(items)


def opens_each_turn_once_and_shows_the_live_prompt(blocks: Sequence[LayoutBlock]) -> None:
    layout = arrange(blocks)
    read = visible(layout).items
    headers = [item.turn for item in read if not item.is_block]
    assert len(headers) == len(set(headers))
    live = layout.turns[-1].items if layout.turns else ()
    prompt = next((item for item in live if item.type is ItemType.USER_PROMPT), None)
    if prompt is not None and prompt.block.text.strip() and not prompt.block.excluded:
        assert prompt in read


def is_rendered_purely(blocks: Sequence[LayoutBlock]) -> None:
    before = repr(blocks)
    assert texts(arrange(blocks), MODELS[0].id) == texts(arrange(tuple(blocks)), MODELS[0].id)
    assert views(blocks) == views(blocks)
    assert repr(blocks) == before


RULES: tuple[Callable[[Sequence[LayoutBlock]], None], ...] = (
    parts_no_call_from_its_results,
    begins_with_a_user_and_leaves_nothing_out,
    holds_each_block_once_under_a_path_of_its_own,
    opens_each_turn_once_and_shows_the_live_prompt,
    is_rendered_purely,
)


def test_layout_of_random_documents_holds_every_rule() -> None:
    for seed in range(CASES):
        with noting(seed):
            blocks = random_blocks(random.Random(seed)).blocks
            for rule in RULES:
                rule(blocks)


def test_arrange_again_makes_only_the_turn_anew_that_has_changed() -> None:
    blocks = written("U A · U C1 R1 A · U A")
    before = arrange(blocks)
    blocks[5] = blocks[5]._replace(text="Edited")
    after = arrange(blocks, before)
    kept = [one is other for one, other in zip(before.turns, after.turns, strict=True)]
    assert kept == [True, False, True]


def contents(messages: Sequence[Message]) -> list[tuple[str, ContentBlock]]:
    return [(message.role, block) for message in messages for block in message.content]


def test_prefix_up_to_each_cache_point_stays_when_rounds_are_appended() -> None:
    for seed in range(CASES):
        with noting(seed):
            rng = random.Random(seed)
            writing = random_blocks(rng, people=False)
            if not writing.blocks:
                continue
            before = arrange(writing.blocks)
            items = visible(before).items
            points = cache_points(items).indices
            prompt = [block for block in writing.blocks if block.begins_turn][-1]
            writing.requests = len(writing.blocks)
            for _ in range(rng.randint(1, 12)):
                writing.go_on(prompt)
            writing.finish()
            after = arrange(writing.blocks)
            for model in MODELS:
                reader = LayoutReader.of(before, model.id)
                old = [item_text(item, reader) for item in items]
                new = [item_text(item, reader) for item in visible(after).items]
                for point in points:
                    assert new[: point + 1] == old[: point + 1]
                assert_same_beginning(items, visible(after).items, reader, points)


def assert_same_beginning(
    before: Sequence[LayoutItem],
    after: Sequence[LayoutItem],
    reader: LayoutReader,
    points: Sequence[int],
) -> None:
    old, new = model_view(before, reader), model_view(after, reader)
    for mark in marked(old, points):
        length = mark.block + 1 + sum(len(one.content) for one in old.messages[: mark.message])
        assert contents(new.messages)[:length] == contents(old.messages)[:length]


def texts(layout: Layout, model: str | None) -> list[str]:
    reader = LayoutReader.of(layout, model)
    return [item_text(item, reader) for item in visible(layout).items]


def test_first_break_is_where_the_streams_begin_to_differ() -> None:
    for seed in range(CASES):
        with noting(seed):
            rng = random.Random(seed)
            writing = random_blocks(rng)
            before = arrange(writing.blocks)
            for _ in range(rng.randint(0, 3)):
                writing.step()
            after, model = arrange(writing.blocks), rng.choice([None, MODELS[0].id])
            found = first_break(before, after, model)
            old, new = texts(before, model), texts(after, model)
            if found is None:
                assert new[: len(old)] == old
            else:
                assert new[: found.index] == old[: found.index]
                assert new[found.index : found.index + 1] != old[found.index : found.index + 1]
                assert found.items
