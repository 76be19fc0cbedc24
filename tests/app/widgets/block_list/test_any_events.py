"""Whatever happens in whatever order: the screen is what a cold drawing of it would be.

`ANTIPHON_CASES` says how many orders are tried.
"""

from __future__ import annotations

import asyncio
import os
from itertools import pairwise

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from rich.segment import Segment
from textual.strip import Strip

from antiphon.widgets.block_list import CellModel
from antiphon.widgets.block_list.viewport import LineRef
from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.text.transform import shift_offset
from antiphon_kernel.types.enums import BlockKind, Status
from tests.app.render.notation import render_cell
from tests.app.widgets.block_list.sample import AMY, THEME, Sample, SampleApp, on_screen
from tests.app.widgets.editor.texts import edits, rows_of, splice_of, texts

numbers = st.integers(0, 50)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("splice"), numbers, edits),
        st.tuples(st.just("append"), numbers, texts),
        st.tuples(st.just("add"), numbers, st.booleans()),
        st.tuples(st.just("scroll"), st.integers(-30, 30), st.none()),
        st.tuples(st.just("fold"), numbers, st.none()),
        st.tuples(st.just("focus"), st.integers(-1, 1), st.none()),
        st.tuples(st.just("edit"), numbers, st.none()),
        st.tuples(st.just("type"), numbers, texts),
        st.tuples(st.just("leave"), st.none(), st.none()),
        st.tuples(st.just("cut"), numbers, st.none()),
        st.tuples(st.just("resize"), st.sampled_from([40, 60, 85]), st.integers(8, 40)),
    ),
    max_size=14,
)


MOVES = ("scroll", "fold", "focus", "edit", "type", "resize", "leave")
"""Steps in which the person here moves the view."""


class Watcher:
    """Follows the place that the view holds on to, by hand."""

    def __init__(self, app: SampleApp) -> None:
        self.app = app
        self.held: tuple[str, int, int] | None = None
        app.sample.here.watch(self._changed)

    def take(self) -> None:
        anchor = self.app.cells.viewport.anchor
        following = self.app.cells.viewport.following
        self.held = None
        if anchor is not None and anchor.offset is not None and not following:
            self.held = (anchor.block, anchor.offset, anchor.row)

    def _changed(self, change: DocumentChange) -> None:
        for text in change.texts:
            if self.held is not None and text.block == self.held[0]:
                block, offset, row = self.held
                for splice in text.splices:
                    offset = shift_offset(offset, splice, stick="left")
                self.held = (block, offset, row)

    def check(self) -> None:
        """The held place is on the row it was on, unless text was pulled over blank rows."""
        if self.held is None:
            return
        block, offset, row = self.held
        editor = self.app.area.editor
        if editor is not None and editor.block == block:
            line = editor.row_of(offset)
        else:
            line = self.app.cells.shown.rendering(block).place_of(offset)[0]
        viewport = self.app.cells.viewport
        now = viewport.row_of(block, line)
        assert now is not None
        if now != row:
            assert viewport.is_at_tail if now > row else viewport.first_row == 0


def check_screen(app: SampleApp) -> None:
    cells, editor = app.cells, app.area.editor
    fresh = CellModel(app.sample.here, me=AMY)
    places = [place for place in cells.viewport.places if place is not None]
    ids = [block for block in app.sample.here.block_ids() if not fresh.is_hidden(block)]
    width = cells.scrollable_content_region.width - 4
    for before, after in pairwise(places):
        if before.block == after.block:
            assert after.line == before.line + 1
        else:
            assert ids.index(after.block) == ids.index(before.block) + 1
            assert after.line == -cells.viewport.measured(after.block).head
    check_filled(app, ids)
    shown = app.screen_text()
    for row, place in enumerate(cells.viewport.places):
        if place is None or place.line < 0 or row == 0:  # the first may be a running head
            continue
        if editor is not None and editor.block == place.block:
            expected = [text for rows in rows_of(editor.wrapped_document) for text in rows]
            assert editor.text == app.sample.here.text(place.block)
            whole = Strip([Segment(expected[place.line])])
            assert shown[row][3:].rstrip("▌ ") == whole.crop(0, width + 1).text.rstrip()
        else:
            fresh.set_folded([place.block], app.source.is_folded(place.block))
            picture = render_cell(fresh.view(place.block), width, THEME)
            assert shown[row].endswith(picture.line(place.line).strip.text.rstrip())


def check_filled(app: SampleApp, ids: list[str]) -> None:
    """No row is blank that text above or below the screen could fill."""
    places = app.cells.viewport.places
    assert places[0] is not None
    if places[-1] is None:
        first = app.cells.viewport.measured(ids[0])
        assert places[0] == LineRef(ids[0], -first.head)


async def play(steps: list[tuple[str, object, object]]) -> None:
    sample = Sample()
    sample.add_turns(3)
    async with on_screen(sample, size=(60, 16)) as (app, pilot):
        watcher = Watcher(app)
        for what, which, how in steps:
            sample.sync()
            ids = sample.here.block_ids()
            block = ids[which % len(ids)] if isinstance(which, int) else ids[0]
            watcher.take()
            if what in MOVES and (what != "type" or app.area.editor is not None):
                watcher.held = None
            match what, which, how:
                case "splice", _, tuple(edit):
                    splice = splice_of(sample.peer.text(block), *edit)
                    sample.peer.splice(block, splice.offset, splice.deleted, splice.inserted)
                case "append", _, str(text):
                    sample.peer.append(block, text)
                case "add", _, bool(running):
                    status = Status.RUNNING if running else Status.DONE
                    sample.add("new\n\ncell", before=block, status=status, kind=BlockKind.TEXT)
                case "scroll", int(rows), _:
                    app.cells.scroll_rows(rows)
                case "fold", _, _:
                    if app.area.editor is None:
                        app.cells.toggle_fold(block)
                case "focus", int(direction), _:
                    app.cells.focus_neighbour(direction)
                case "edit", _, _:
                    app.area.edit(block)
                case "type", _, str(text) if app.area.editor is not None:
                    editor = app.area.editor
                    editor.replace(text, *editor.selection, maintain_selection_offset=False)
                case "cut", _, _:
                    sample.peer.splice(block, 0, len(sample.peer.text(block)), "")
                case "resize", int(columns), int(rows):
                    await pilot.resize_terminal(columns, rows)
                case "leave", _, _:
                    app.area.leave()
            await pilot.pause()
            app.cells.draw()
            await pilot.pause()
            watcher.check()
            check_screen(app)
            app.cells.draw()


@settings(
    max_examples=int(os.environ.get("ANTIPHON_CASES", "5")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=steps)
@example(steps=[("splice", 0, (0.0, 0.0, "漢a")), ("edit", 0, None)])
@example(steps=[("splice", 0, (0.0, 0.0, "👩\u200d👩\u200d👧a")), ("edit", 0, None)])
@example(steps=[("add", 0, True), ("edit", 0, None), ("type", 0, "a👩\u200d👩\u200d👧")])
def test_screen_is_what_a_cold_drawing_would_be(steps: list[tuple[str, object, object]]) -> None:
    asyncio.run(play(steps))
