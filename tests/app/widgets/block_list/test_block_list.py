"""The list in an app: what stays still, what is followed, what is said."""

from __future__ import annotations

import asyncio

import pytest
from textual import events

from antiphon.widgets.block_list import BlockList, CellModel
from antiphon_kernel.types.drift import DriftOrigin
from antiphon_kernel.types.enums import BlockKind, Status
from tests.app.widgets.block_list.sample import (
    AMY,
    BEN,
    Sample,
    on_screen,
)
from tests.waiting import until


async def test_copies_of_a_drift_stand_at_its_header_and_an_answer_by_itself(
    sample: Sample,
) -> None:
    drift = {"drift": DriftOrigin("d", "c", "tidy", 12, "ben").as_json()}
    for said in ("", "1 block added"):
        header = sample.add(said, kind=BlockKind.DRIFT, author=BEN, metadata=drift)
        sample.add("Found it", parent=header, metadata={"drift": "d"})
        sample.add("Good", parent=header)
    async with on_screen(sample) as (app, _):
        shown = [row.strip() for row in app.screen_text()]
    head, copy = ["ben", "║ ⇢ from tidy · ben"], ["aria", "║ Found it", "", "aria", "│ Good", ""]
    expected = [*head, *copy, *head, "║ 1 block added", *copy]
    assert shown[: len(expected)] == expected


def test_cell_from_another_context_tells_its_label(sample: Sample) -> None:
    source = CellModel(sample.here)
    block = sample.add("found it", kind=BlockKind.DRIFT, source_context="c0ffee")
    before = source.view(block).source_context
    source.show_labels({"c0ffee": "notes"})
    assert (before, source.view(block).source_context) == (None, "notes")


@pytest.mark.usefixtures("every_frame")
async def test_away_from_the_tail_nothing_moves_and_new_lines_are_counted(sample: Sample) -> None:
    blocks = sample.add_turns(6)
    async with on_screen(sample) as (app, pilot):
        app.cells.scroll_rows(-20)
        await pilot.pause()
        before = app.screen_text()
        last = sample.add("a\n\nb\n\nc", status=Status.RUNNING)
        sample.peer.splice(blocks[0], 0, 0, "much\n\nmore\n\ntext above\n\n")
        sample.add("somewhere above\n\nin the middle", before=blocks[3], author=BEN)
        await until(lambda: app.cells.unread_lines > 0, "new lines are counted")
        assert app.screen_text() == before
        assert not app.cells.following
        app.cells.to_tail()
        await until(lambda: app.cells.unread_lines == 0, "nothing is new any more")
        assert app.screen_text()[-1] == " │ c"
        sample.peer.append(last, "\n\nd")
        await until(lambda: app.screen_text()[-1] == " │ d", "the tail is followed")


async def test_text_above_does_not_move_the_focused_cell_that_is_read_from_a_blank_line(
    sample: Sample,
) -> None:
    block = sample.add("\n\n".join(f"paragraph {number}" for number in range(40)))
    async with on_screen(sample) as (app, pilot):
        app.cells.focus()
        app.cells.focus_cell(block)
        app.cells.viewport.anchor_on(block, 21, 0)
        await pilot.pause()
        before = app.screen_text()
        assert before[1].endswith("paragraph 11")
        sample.peer.splice(block, 0, 0, "much\n\nmore\n\ntext above\n\n")
        await pilot.pause()
        app.cells.draw()
        assert app.screen_text() == before


async def test_block_list_with_many_new_blocks_shows_their_end(sample: Sample) -> None:
    async with on_screen(sample) as (app, _):
        sample.add_turns(50)
        await until(lambda: "   return x" in app.screen_text()[-1], "the end is drawn")
        assert not app.cells.focus_unread(1)
        app.cells.first_cell()
        await until(lambda: app.screen_text()[1] == " ┃ What is 0?", "the start")


async def test_drafts_are_not_cells_until_they_are_sent(sample: Sample) -> None:
    sample.add("hello", author=AMY)
    mine = sample.add("my own draft", author=AMY, status=Status.PENDING)
    async with on_screen(sample) as (app, _):
        bens = sample.add("half a thought", author=BEN, status=Status.RUNNING)
        sample.add("an answer")
        await until(lambda: " │ an answer" in app.screen_text(), "the answer is drawn")
        assert [(draft.username, draft.text) for draft in app.source.drafts()] == [
            ("ben", "half a thought")
        ]
        assert not any("draft" in row or "thought" in row for row in app.screen_text())
        with sample.peer.transaction(None):
            sample.peer.set_fields(bens, status="done", order="zz")
        await until(lambda: " │ half a thought" in app.screen_text(), "it is sent")
        assert app.screen_text().index(" │ half a thought") > app.screen_text().index(
            " │ an answer"
        )
        assert app.source.drafts() == []
        sample.peer.set_fields(mine, status="done")
        await until(lambda: " │ my own draft" in app.screen_text(), "mine is sent")


async def test_list_that_is_mounted_finds_old_drafts_by_itself(sample: Sample) -> None:
    sample.add("an old draft", author=BEN, status=Status.PENDING)
    sample.add_turns(80)
    async with on_screen(sample) as (app, _):
        await until(lambda: bool(app.source.drafts()), "the draft is found")


@pytest.mark.usefixtures("every_frame")
async def test_list_whose_place_is_asked_for_before_it_is_laid_out_is_drawn(sample: Sample) -> None:
    sample.add("the first words")
    async with on_screen(sample) as (app, pilot):
        cells = BlockList(app.source)
        await app.screen.mount(cells)
        app.screen._clear_arrangement_cache()  # noqa: SLF001
        app.screen._compositor._full_map_invalidated = True  # noqa: SLF001 (as a scroll does)
        assert cells.region.height
        await pilot.pause()
        assert any("the first words" in cells.render_line(y).text for y in range(20))


async def test_fold_opens_and_closes_where_it_is(sample: Sample) -> None:
    sample.add_turns(6)
    async with on_screen(sample) as (app, pilot):
        thinking = [
            place.block
            for place in app.cells.viewport.places
            if place and sample.here.header(place.block).kind == BlockKind.THINKING
        ][-1]
        app.cells.focus_cell(thinking)
        await pilot.pause()
        before = app.screen_text()
        row = next(row for row, text in enumerate(before) if text == "┃aria  ▸ thinking · 9 lines")
        app.cells.toggle_fold()
        await pilot.pause()
        opened = app.screen_text()
        assert opened[row] == " aria" or opened[row].endswith("▾ thinking · 9 lines")
        assert sum("hm" in text for text in opened) > 3
        app.cells.toggle_fold()
        await pilot.pause()
        assert app.screen_text()[row] == before[row]


async def test_focus_goes_from_cell_to_cell_and_through_a_high_one(sample: Sample) -> None:
    first = sample.add("first", author=AMY)
    high = sample.add("\n\n".join(f"paragraph {number}" for number in range(40)))
    last = sample.add("last", author=AMY)
    async with on_screen(sample) as (app, pilot):
        app.cells.first_cell()
        await pilot.pause()
        assert app.cells.focused_cell == first
        seen: set[str] = set()
        for _ in range(12):
            assert app.cells.focused_cell in (first, high, last)
            if app.cells.focused_cell == last:
                break
            app.cells.focus_neighbour(1)
            await pilot.pause()
            seen.update(text.removeprefix(" ┃ ") for text in app.screen_text() if "┃" in text)
        assert app.cells.focused_cell == last
        assert {f"paragraph {number}" for number in range(40)} <= seen
        assert not app.cells.focus_neighbour(1)


async def test_next_unread_goes_to_cells_that_changed_unseen(sample: Sample) -> None:
    blocks = sample.add_turns(10)
    async with on_screen(sample) as (app, pilot):
        app.cells.first_cell()
        await pilot.pause()
        sample.peer.splice(blocks[15], 0, 0, "edited ")
        sample.peer.splice(blocks[21], 0, 0, "edited ")
        await pilot.pause()
        assert app.cells.focus_unread(1) and app.cells.focused_cell == blocks[15]
        await pilot.pause()
        assert app.cells.focus_unread(1) and app.cells.focused_cell == blocks[21]
        await pilot.pause()
        assert not app.cells.focus_unread(1)


async def test_resizing_keeps_the_first_line_that_one_reads(sample: Sample) -> None:
    for number in range(40):
        sample.add(f"cell {number} begins. " + "and goes on with many words " * 8)
    async with on_screen(sample) as (app, pilot):
        app.cells.reveal(sample.here.block_ids()[12])
        app.cells.scroll_rows(-2)
        await pilot.pause()
        first = app.cells.viewport.anchor
        await pilot.resize_terminal(50, 30)
        await pilot.pause()
        now = app.cells.viewport.anchor
        assert first is not None and now is not None
        assert (now.block, now.row) == (first.block, first.row)


async def test_click_on_the_line_of_a_fold_opens_and_closes_it(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample.add_turns(1)
    async with on_screen(sample) as (app, pilot):
        monkeypatch.setattr(type(app), "CLICK_CHAIN_TIME_THRESHOLD", 0)
        for mark, other in ("▸▾", "▾▸"):
            text = app.screen_text()
            row = next(row for row, line in enumerate(text) if f"{mark} thinking" in line)
            await pilot.click(app.cells, offset=(10, row))
            await pilot.pause()
            assert any(f"{other} thinking" in line for line in app.screen_text())


async def test_click_on_a_line_that_has_gone_since_it_was_drawn_focuses_the_cell(
    sample: Sample,
) -> None:
    block = sample.add("one\n\ntwo\n\nthree", author=BEN)
    async with on_screen(sample) as (app, pilot):
        await pilot.pause()
        row = app.row_with("three")
        sample.peer.splice(block, 3, len("\n\ntwo\n\nthree"), "")
        app.cells.on_click(events.Click(app.cells, 10, row, 0, 0, 1, False, False, False))
        await pilot.pause()
        assert app.cells.focused_cell == block


async def test_click_focuses_a_cell_and_the_wheel_scrolls(sample: Sample) -> None:
    sample.add_turns(8)
    async with on_screen(sample) as (app, pilot):
        row = next(
            row for row, text in enumerate(app.screen_text()) if text.startswith(" │ What is")
        )
        await pilot.click(app.cells, offset=(10, row))
        await pilot.pause()
        assert app.screen_text()[row].startswith(" ┃ What is")
        before = app.screen_text()
        app.post_message(
            events.MouseScrollUp(app.cells, 10, 5, 0, -1, 0, False, False, False, 10, 5)
        )
        await pilot.pause()
        # The first row was a running head.
        assert app.screen_text()[4:] == before[1:-3]


async def test_stream_is_drawn_thirty_times_a_second_and_a_person_at_once(sample: Sample) -> None:
    words = sample.add("Words", author=BEN)
    block = sample.add("", status=Status.RUNNING)
    async with on_screen(sample) as (app, pilot):
        times: list[float] = []
        app.cells.drawn.listen(lambda: times.append(asyncio.get_running_loop().time()))
        drawn = -1
        while drawn != len(times):
            drawn = len(times)
            await pilot.pause(0.1)
        start = asyncio.get_running_loop().time()
        for _ in range(60):
            sample.peer.append(block, "token ")
            await asyncio.sleep(0.005)
        elapsed = asyncio.get_running_loop().time() - start
        assert len(times) - drawn <= elapsed * 30 + 2
        sample.peer.append(block, "token ")
        drawn = len(times)
        sample.peer.splice(words, 5, 0, "!")
        await pilot.pause()
        assert len(times) > drawn


async def test_folding_the_cell_that_fills_the_view_leaves_no_blank_rows(sample: Sample) -> None:
    for number in range(30):
        sample.add(f"Cell {number}", author=(AMY, BEN)[number % 2])
    long = sample.add("\n\n".join(f"line {number}" for number in range(60)))
    async with on_screen(sample) as (app, pilot):
        await pilot.pause()
        app.cells.focus_cell(long)
        app.cells.scroll_rows(-5)
        app.cells.toggle_fold()
        await pilot.pause()
        assert app.screen_text()[-1].endswith("▸ line 0 · 119 lines")
        assert app.cells.following and None not in app.cells.viewport.places


@pytest.mark.parametrize("size", [(80, 24), (120, 24)], ids=["narrow", "wide"])
async def test_cell_that_begins_above_the_view_has_its_author_and_prompt_in_the_first_row(
    sample: Sample, size: tuple[int, int]
) -> None:
    prompt = sample.add("How many\nlines?", author=AMY)
    sample.add("\n\n".join(f"line {number}" for number in range(60)), parent=prompt)
    async with on_screen(sample, size=size) as (app, pilot):
        await pilot.pause()
        assert app.screen_text()[0].split() == ["aria", "How", "many"]
        app.cells.first_cell()
        await pilot.pause()
        assert "How many" not in app.screen_text()[0] or "you" in app.screen_text()[0]
        assert "aria" not in app.screen_text()[0]


@pytest.mark.parametrize("size", [(80, 24), (120, 24)], ids=["narrow", "wide"])
async def test_click_on_the_running_head_goes_to_the_head_of_its_cell(
    sample: Sample, size: tuple[int, int]
) -> None:
    sample.add("above", author=BEN)
    answer = sample.add("\n\n".join(f"line {number}" for number in range(60)))
    sample.add("below", author=BEN)
    async with on_screen(sample, size=size) as (app, pilot):
        await pilot.pause()
        app.cells.reveal(answer)
        app.cells.scroll_rows(50)
        await pilot.pause()
        await pilot.click(app.cells, offset=(10, 0))
        await pilot.pause()
        assert app.cells.focused_cell == answer
        assert app.row_with("line 0") in (1, 2)


@pytest.mark.parametrize(("height", "row"), [(24, 1), (1, 0)])
async def test_revealed_line_is_not_below_the_running_head(
    sample: Sample, height: int, row: int
) -> None:
    text = "\n\n".join(f"line {number}" for number in range(60))
    answer = sample.add(text)
    async with on_screen(sample, size=(80, height)) as (app, pilot):
        await pilot.pause()
        app.cells.reveal(answer, text.index("line 7"))
        await pilot.pause()
        assert "line 7" in app.screen_text()[row]


async def test_only_row_of_a_cell_in_the_view_is_not_covered_by_its_running_head(
    sample: Sample,
) -> None:
    sample.add("\n\n".join(f"line {number}" for number in range(60)))
    sample.add("\n\n".join(f"below {number}" for number in range(60)), author=BEN)
    async with on_screen(sample, size=(80, 24)) as (app, pilot):
        await pilot.pause()
        app.cells.first_cell()
        app.cells.scroll_rows(app.cells.viewport.measured(sample.here.block_ids()[0]).rows - 2)
        await pilot.pause()
        assert "line 59" in app.screen_text()[1]
        app.cells.scroll_rows(1)
        await pilot.pause()
        assert "line 59" in app.screen_text()[0]
