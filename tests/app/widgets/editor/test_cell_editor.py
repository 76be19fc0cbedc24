"""The editor of a cell: its text is the block's, its cursor stays, keys and pastes work."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual._xterm_parser import XTermParser
from textual.document._document import Selection

from antiphon.widgets.editor import CellEditor
from antiphon_kernel.types.enums import BlockKind
from tests.app.widgets.block_list.sample import (
    AMY,
    Heard,
    Sample,
    on_screen,
)
from tests.app.widgets.editor.texts import edits, fractions, rows_of, splice_of, texts

steps = st.lists(
    st.one_of(
        st.tuples(st.just("type"), texts),
        st.tuples(st.just("move"), st.tuples(fractions, fractions)),
        st.tuples(st.just("remote"), edits),
        st.tuples(st.just("append"), texts),
        st.tuples(st.just("action"), st.sampled_from(["left", "right", "delete_left", "word"])),
    ),
    max_size=14,
)


@given(text=texts, steps=steps)
def test_text_is_equal_after_every_event(text: str, steps: list[tuple[str, object]]) -> None:
    sample = Sample()
    block = sample.add(text)
    editor = CellEditor(sample.here, block)
    editor.set_text_width(20)
    for what, how in steps:
        match what, how:
            case "type", str(inserted):
                editor.replace(inserted, *editor.selection, maintain_selection_offset=False)
            case "move", (float(start), float(end)):
                length = editor.document.length
                places = [editor.document.location_of(round(at * length)) for at in (start, end)]
                editor.selection = Selection(*places)
            case "remote", (float(where), float(length), str(inserted)):
                sample.sync()
                splice = splice_of(sample.peer.text(block), where, length, inserted)
                sample.peer.splice(block, splice.offset, splice.deleted, splice.inserted)
            case "append", str(inserted):
                sample.peer.append(block, inserted)
            case "action", "left":
                editor.action_cursor_left()
            case "action", "right":
                editor.action_cursor_right(select=True)
            case "action", "delete_left":
                editor.action_delete_left()
            case _:
                editor.action_delete_word_left()
        assert editor.text == sample.here.text(block)
        assert editor.document.lines == editor.text.split("\n")
        assert editor.row_count == len(
            [row for rows in rows_of(editor.wrapped_document) for row in rows]
        )
    sample.sync()
    assert sample.peer.text(block) == editor.text


@given(text=texts, cursor=fractions, anchor=fractions, edit=edits)
def test_cell_editor_cursor_stays_at_its_text_while_others_write(
    text: str, cursor: float, anchor: float, edit: tuple[float, float, str]
) -> None:
    sample = Sample()
    block = sample.add(text)
    offset, other = round(cursor * len(text)), round(anchor * len(text))
    editor = CellEditor(sample.here, block, offset=offset, anchor=other)
    splice = splice_of(text, *edit)
    sample.peer.splice(block, splice.offset, splice.deleted, splice.inserted)

    def expected(at: int) -> int:
        if at <= splice.offset:
            return at
        return max(splice.offset, at - splice.deleted) + len(splice.inserted)

    end = splice.offset + splice.deleted
    for before, after in (
        (offset, editor.cursor_offset),
        (other, editor.document.offset_of(editor.selection.start)),
    ):
        if before <= splice.offset or before >= end:
            assert after == expected(before)
        else:
            assert splice.offset <= after <= splice.offset + len(splice.inserted)


def test_typing_is_one_transaction_with_the_editors_origin(sample: Sample) -> None:
    block = sample.add("abc")
    origins: list[object] = []
    sample.here.watch(lambda change: origins.append(change.origin))
    editor = CellEditor(sample.here, block, offset=3, anchor=1)
    editor.replace("X", *editor.selection, maintain_selection_offset=False)
    assert sample.here.text(block) == "aX"
    assert origins == ["editor"]
    editor.insert("a\ud800b")
    assert editor.text == sample.here.text(block) == "aXa?b", "a lone surrogate is no text"


async def test_keys_that_are_not_text_leave_it_alone(sample: Sample) -> None:
    first = sample.add("first", author=AMY)
    sample.add("ls", kind=BlockKind.TOOL_CALL, tool_kind="shell")
    second = sample.add("second")
    heard = Heard()
    async with on_screen(sample, heard=heard) as (app, pilot):
        app.area.edit(second, 6)
        await pilot.press("!", "ctrl+z", "ctrl+y")
        app.area.edit_neighbour(-1)
        await pilot.pause()
        assert sample.here.text(second) == "second!", "undo is not the text area's"
        editor = app.area.editor
        assert editor is not None and editor.block == first
        (edited,) = heard.of(CellEditor.Edited)
        assert edited.inserted == 1
        moved = heard.of(CellEditor.CursorMoved)[-1].editor
        assert (moved.block, moved.cursor_offset, moved.anchor_offset) == (first, 0, None)
        await pilot.press("escape")
        await pilot.pause()
        assert app.area.editor is None
        assert heard.of(CellEditor.Left)


async def test_every_character_that_is_no_control_is_text(sample: Sample) -> None:
    block = sample.add("")
    typed = "a\u00a0b\u3000\u200c\u200d\ufe0f\u2028\u00ad👩\u200d👩\u200d👧\ue000\U000e0067z"
    async with on_screen(sample) as (app, pilot):
        app.area.edit(block)
        await pilot.pause()
        for event in XTermParser().feed(typed + "\x01\x9b"):
            app.post_message(event)
        await pilot.pause()
        assert sample.here.text(block) == typed


async def test_paste_has_plain_line_ends_and_the_rest_as_it_was(sample: Sample) -> None:
    block = sample.add("")
    async with on_screen(sample) as (app, pilot):
        app.area.edit(block)
        await pilot.pause()
        app.post_message(events.Paste("a\r\nb\rc\td\x0c\u2028\x1b[31m"))
        await pilot.pause()
        assert sample.here.text(block) == "a\nb\nc\td\x0c\u2028\x1b[31m"
        assert app.row_with("␛[31m") == app.row_with("c   d␌↵")


async def test_tab_indents_as_the_text_does(sample: Sample) -> None:
    spaces, tabs = sample.add("if x:\ny"), sample.add("if x:\n\ty\nz")
    async with on_screen(sample) as (app, pilot):
        app.area.edit(spaces, 6)
        await pilot.press("tab", "end", "enter", "z", "tab", "shift+tab")
        await pilot.pause()
        assert sample.here.text(spaces) == "if x:\n    y\nz   "
        app.area.edit(tabs, 9)
        await pilot.press("tab", "ctrl+a", "shift+up", "shift+up", "tab", "shift+tab")
        await pilot.pause()
        assert sample.here.text(tabs) == "if x:\n\ty\n\tz"
